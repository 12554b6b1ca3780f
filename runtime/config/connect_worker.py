"""Which keys of a Kafka Connect worker a node takes, and what it has instead of the others.

A worker's file starts a node as it is. Each key of it is one of these:

- a setting of the node that has the same name;
- one of `TAKEN`: the JVMs that run Connect's plugins are given it, the node itself has no use for
  it;
- one of `OTHERWISE`: it has no meaning here, and that is told at start.

`ssl.*` are settings of the node, for its REST interface, and also given to those JVMs for their
clients of Kafka: both, as in Connect. A test compares all this with Connect's own list of keys.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...actors.settings import HIDDEN, sounds_secret
from .references.resolving import is_reference, resolve
from .references.secret_patterns import redact
from .secrets import logins_in, passwords_in

_BROKERS: Final = "Where plugins' clients of Kafka find it."
_CONVERTERS: Final = "The converter of connectors that name none, and its own keys."
_CLIENTS: Final = "For the producers, consumers and admin clients of plugins."
_CONNECTION: Final = "For connections of plugins to Kafka."
_LOGIN: Final = "The login of plugins' clients at Kafka."
_OFFSETS: Final = "The topic in which Connect's own source tasks keep offsets, and its settings."
_TOPICS: Final = "Whether source plugins may have topics created for them, as in Connect."
_TRACKING: Final = "What Connect notes of the topics that a connector uses."
_PROVIDERS: Final = "What resolves ${PROVIDER:…} in the configs of plugins."
_MEASURES: Final = "What reports the metrics of plugins' JVMs, and how they are sampled."

TAKEN: Final[Mapping[str, str]] = {
    "bootstrap.servers": _BROKERS,
    "client.id": _BROKERS,
    "client.dns.lookup": _BROKERS,
    "key.converter": _CONVERTERS,
    "key.converter.": _CONVERTERS,
    "value.converter": _CONVERTERS,
    "value.converter.": _CONVERTERS,
    "header.converter": _CONVERTERS,
    "header.converter.": _CONVERTERS,
    "producer.": _CLIENTS,
    "consumer.": _CLIENTS,
    "admin.": _CLIENTS,
    "connector.client.config.override.": "Which of their settings a connector may override.",
    "security.": _LOGIN,
    "sasl.": _LOGIN,
    "exactly.once.source.support": "Whether a connector may demand exactly once of its source.",
    "offset.storage.": _OFFSETS,
    "topic.creation.enable": _TOPICS,
    "topic.tracking.": _TRACKING,
    "config.providers": _PROVIDERS,
    "config.providers.": _PROVIDERS,
    "metric.reporters": _MEASURES,
    "metrics.context.": _MEASURES,
    "metrics.jmx.": _MEASURES,
    "metrics.num.samples": _MEASURES,
    "metrics.recording.level": _MEASURES,
    "metrics.sample.window.ms": _MEASURES,
    "enable.metrics.push": _MEASURES,
    "ssl.provider": _CONNECTION,
    "ssl.keymanager.algorithm": _CONNECTION,
    "ssl.trustmanager.algorithm": _CONNECTION,
    "ssl.secure.random.implementation": _CONNECTION,
    "ssl.engine.factory.class": _CONNECTION,
    "ssl.endpoint.identification.algorithm": _CONNECTION,
    "ssl.allow.": _CONNECTION,
    "connections.max.idle.ms": _CONNECTION,
    "default.api.timeout.ms": _CONNECTION,
    "metadata.": _CONNECTION,
    "receive.buffer.bytes": _CONNECTION,
    "reconnect.backoff.": _CONNECTION,
    "request.timeout.ms": _CONNECTION,
    "retry.backoff.": _CONNECTION,
    "send.buffer.bytes": _CONNECTION,
    "socket.connection.setup.": _CONNECTION,
}
"""What each key is for that plugin hosts are given; one that ends with a dot is a family."""

_STORED: Final = "configs, states and offsets are in the event log below data.dir"
_MEASURED: Final = "GET /metrics has all metrics, for Prometheus"
_NOTHING: Final = ""

OTHERWISE: Final[Mapping[str, str]] = {
    "config.storage.": _STORED,
    "status.storage.": _STORED,
    "offset.storage.file.filename": _STORED,
    "internal.": _STORED,
    "plugin.discovery": "a plugin is scanned once, when it is added or has changed",
    "rest.extension.classes": "rest.authentication says who may call",
    "rest.port": "listeners has the port",
    "rest.host.name": "listeners has the host",
    "rest.advertised.listener": _NOTHING,
    "inter.worker.": _NOTHING,
    "worker.sync.": _NOTHING,
    "worker.unsync.": _NOTHING,
    "auto.include.jmx.reporter": _MEASURED,
    "topic.": "topic.creation.* of a connector says what topics are created",
    "confluent.": _NOTHING,
    "listeners.https.ssl.provider": _NOTHING,
    "listeners.https.ssl.keymanager.algorithm": _NOTHING,
    "listeners.https.ssl.trustmanager.algorithm": _NOTHING,
    "listeners.https.ssl.secure.random.implementation": _NOTHING,
    "listeners.https.ssl.engine.factory.class": _NOTHING,
    "listeners.https.ssl.endpoint.identification.algorithm": _NOTHING,
    "listeners.https.ssl.allow.": _NOTHING,
}
"""What there is instead of the keys that have no meaning here; one that ends with a dot is a
family."""

_TRUE_OR_FALSE: Final = ("true", "false")
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "exactly.once.source.support": ("disabled", "preparing", "enabled"),
    "metadata.recovery.strategy": ("rebootstrap", "none"),
    "metrics.recording.level": ("INFO", "DEBUG"),
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "topic.creation.enable": _TRUE_OR_FALSE,
    "topic.tracking.allow.reset": _TRUE_OR_FALSE,
    "topic.tracking.enable": _TRUE_OR_FALSE,
}
"""The values of those keys that have few; case does not count."""

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
REQUIRED: Final[Mapping[str, str]] = {
    "bootstrap.servers": "127.0.0.1:1",
    "key.converter": _JSON,
    "value.converter": _JSON,
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "-1",
}
"""What plugin hosts are given where a key has no value. No broker is at that address; the topic is
that of Kafka's sample file, with as many replicas as the broker makes by itself."""
SHARED: Final = (
    "group.id",
    "offset.flush.interval.ms",
    "offset.flush.timeout.ms",
    "task.shutdown.graceful.timeout.ms",
)
"""Settings of the node that its plugin hosts are given as well."""
_DISCOVERY: Final = {"plugin.discovery": "service_load"}
"""Hosts need no scan: what is not declared by a plugin, the catalogue has found and declared."""
SSL: Final = "ssl."
_OF_REST_ALONE: Final = "ssl.client.auth"


def is_taken(key: str) -> bool:
    """Return whether plugin hosts are given a key, if it is not a setting of the node."""
    return len(_match(key, TAKEN)) > len(_match(key, OTHERWISE))


def is_otherwise(key: str) -> bool:
    """Return whether a key of a worker has no meaning here, if it is not a setting of the node."""
    return bool(_match(key, OTHERWISE)) and not is_taken(key)


def is_of_clients(key: str) -> bool:
    """Return whether a setting of the node is also one of the plugins' clients of Kafka."""
    return key.startswith(SSL) and key != _OF_REST_ALONE


def meaning_of(key: str) -> str:
    """Return the use of a key that plugin hosts are given; "" if they are not."""
    return TAKEN.get(_match(key, TAKEN), "")


def flaw_in(key: str, text: str) -> str:
    """Return what is allowed if a key has few values and this is none of them; else ""."""
    words = WORDS.get(key, ())
    if not words or "${" in text or text.strip().lower() in map(str.lower, words):
        return ""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def hides_secret(key: str, text: str) -> bool:
    """Return whether a value is not to be shown: by its name, or by what it looks like."""
    if not text or is_reference(text):
        return False
    is_named = sounds_secret(key) or key.endswith((".jaas.config", ".keystore.key"))
    return is_named or redact(text) != text or bool(passwords_in(text))


def secrets_of(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the values to mask in logs: those that are not shown, and the passwords in them."""
    whole = {text for key, text in properties.items() if hides_secret(key, text)}
    parts = {part for text in whole for part in logins_in(text) | passwords_in(text)}
    return frozenset(whole | parts)


def resolve_properties(
    properties: Mapping[str, str], own: str, learn: Callable[[Mapping[str, str]], None]
) -> dict[str, str]:
    """Return properties without references; `own` is the node's folder, in which none reads.

    `learn` is called with the secrets among them, and what to show instead of each. Raises
    `ReferenceBroken`.
    """
    references: dict[str, str] = {}
    plain = resolve(properties, references, own=own)
    learn({**dict.fromkeys(secrets_of(plain), HIDDEN), **references})
    return plain


def complete(given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a plugin host: those given, and what else it needs."""
    required = {key: text for key, text in REQUIRED.items() if not given.get(key, "").strip()}
    return {**given, **required, **_DISCOVERY}


def describe_passed_over(keys: Sequence[str]) -> list[str]:
    """Return lines that list keys without a meaning here, and what there is instead."""
    instead: dict[str, list[str]] = {}
    for key in keys:
        entry = _match(key, OTHERWISE)
        named = f"{entry}*" if entry.endswith(".") else key
        names = instead.setdefault(OTHERWISE.get(entry, _NOTHING), [])
        names.extend([named] if named not in names else [])
    lines = [f"instead of {', '.join(names)}: {text}" for text, names in instead.items() if text]
    return [f"these keys have no meaning here: {', '.join(keys)}", *lines] if keys else []


def _match(key: str, table: Mapping[str, str]) -> str:
    """Return the entry of a table that a key matches, the longest of several; "" for none."""
    return max((each for each in table if _covers(each, key)), key=len, default="")


def _covers(entry: str, key: str) -> bool:
    if entry.endswith("."):
        return key.startswith(entry) and key != entry
    return key == entry
