"""How a cluster is reached: the keys that say it, and what clients of librdkafka are told of it.

Both ends of a pipeline have the same keys, behind `source.` or `sink.`. Whoever writes a config is
not the node's operator: settings that would have librdkafka run a program or load a library are
refused, and so are those that the connector has to set for itself, and secrets, which only keys of
their own have sealed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .....actors.settings import Value, not_blank, one_of
from ...spi.config import ConfigInvalid, Definition, Importance, Width, strip_prefix
from ...spi.key_kinds import choice_key, secret_key, text_key
from ...spi.lineage import Dataset
from .encryption import JAVA_KEYS, KEYSTORE, TRUSTSTORE, store_keys, store_settings

Settings = dict[str, str | int | float | bool]
"""What a client of librdkafka is made of."""

SERVERS: Final = "bootstrap.servers"
REQUEST_S: Final = 5.0
"""How long a cluster has for an answer: less than what a task that is cancelled has to end."""

LOOK_S: Final = 3.0
"""How long it has where people wait for it."""

_PASSED_ON: Final = (
    SERVERS,
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)
_LOCATIONS: Final = (
    *(each for each in _PASSED_ON if each.endswith(".location")),
    TRUSTSTORE,
    KEYSTORE,
)
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_JAVA_NAMES: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""What Java's clients call a setting that librdkafka has under another name."""
_JAAS: Final = "sasl.jaas.config"
_MECHANISM: Final = "sasl.mechanism"
_JAAS_OPTION: Final = re.compile(r"""\b(username|password)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_DEFAULTS: Final[Settings] = {"log_level": 0, "reconnect.backoff.max.ms": 1000}
"""Only what is critical goes to the process's standard error: the remainder is told."""

_REFUSED: Final = re.compile(
    r"plugin\.library\.paths|ssl\.engine\.location|ssl\.providers|sasl\.kerberos\..*"
    r"|sasl\.oauthbearer\..*|.*\.location|.*\.password|ssl\.key\.pem|.*_cb|opaque|debug|log[._].*|statistics\..*|enable\.(?!ssl).*"
    r"|group\..*|auto\.offset\.reset|isolation\.level|transactional\.id|acks|max\.in\.flight.*"
)
"""Settings that are not handed on."""


def connection_keys(end: str) -> Sequence[Definition]:
    """Return the keys of how a cluster is reached, for one end of a pipeline."""
    files = "of each worker, in PEM"
    return (
        text_key(
            f"{end}.{SERVERS}",
            "Some brokers of the cluster, from which the others are learnt: `host:port,host:port`.",
            importance=Importance.HIGH,
            required=True,
            validator=not_blank,
            width=Width.LONG,
        ),
        choice_key(
            f"{end}.security.protocol",
            "How the brokers are spoken to.",
            "PLAINTEXT",
            "SSL",
            "SASL_PLAINTEXT",
            "SASL_SSL",
        ),
        text_key(
            f"{end}.{_MECHANISM}",
            f"How the user is made known: {', '.join(_MECHANISMS)}.",
            validator=_mechanism,
            recommended=_MECHANISMS,
        ),
        text_key(f"{end}.sasl.username", "The user, for PLAIN and SCRAM."),
        secret_key(f"{end}.sasl.password", "The password, for PLAIN and SCRAM.", width=Width.LONG),
        secret_key(
            f"{end}.sasl.jaas.config",
            "User and password as Java's clients are given them, instead of the two.",
            width=Width.LONG,
        ),
        text_key(f"{end}.ssl.ca.location", f"A file {files}, with the authorities to be trusted."),
        text_key(
            f"{end}.ssl.certificate.location", f"A file {files}, with the client's certificate."
        ),
        text_key(f"{end}.ssl.key.location", f"A file {files}, with the client's private key."),
        secret_key(f"{end}.ssl.key.password", "What opens the private key.", width=Width.LONG),
        *store_keys(end),
    )


def _mechanism(value: Value) -> str | None:
    return one_of(*_MECHANISMS)(value) if value else None


def client_settings(end: str, config: Mapping[str, str], overrides: str) -> Settings:
    """Return what clients of one end are made of; raises `ConfigInvalid`.

    `overrides` is the prefix of the settings that are handed on as they are.
    """
    if flaws := refused_settings(config, overrides):
        raise ConfigInvalid("; ".join(f"{key}: {why}" for key, why in flaws.items()))
    mine = strip_prefix(f"{end}.", config)
    made: Settings = {key: mine[key] for key in _PASSED_ON if mine.get(key)}
    for name, *values in _JAAS_OPTION.findall(mine.get(_JAAS, "")):
        made.setdefault(f"sasl.{name}", "".join(values))
    given = {
        _JAVA_NAMES.get(key, key): value for key, value in strip_prefix(overrides, config).items()
    }
    return {**made, **store_settings(end, mine), **_DEFAULTS, **given}


def complaints(end: str, config: Mapping[str, str], overrides: str) -> Mapping[str, str]:
    """Return what is wrong with the keys together, under one that is defined."""
    flaws = refused_settings(config, overrides)
    told = "; ".join(f"{key} {why}" for key, why in flaws.items())
    found = {f"{end}.{SERVERS}": told} if told else {}
    protocol = config.get(f"{end}.security.protocol", "")
    if protocol.startswith("SASL_") and not config.get(f"{end}.{_MECHANISM}"):
        found[f"{end}.{_MECHANISM}"] = f"{protocol} needs one of {', '.join(_MECHANISMS)}"
    return found


def refused_settings(config: Mapping[str, str], overrides: str) -> Mapping[str, str]:
    """Return what is wrong with settings that are to be handed on, by their keys."""
    own = {*_PASSED_ON, *JAVA_KEYS, _JAAS}
    flaws: dict[str, str] = {}
    for name in strip_prefix(overrides, config):
        if name in own:
            flaws[overrides + name] = f"set {overrides.split('.', 1)[0]}.{name} instead"
        elif _REFUSED.fullmatch(name):
            flaws[overrides + name] = "is not handed on: leave it out"
    return flaws


def locations(end: str, config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the files that a config has clients read, by their keys."""
    named = {f"{end}.{each}": config.get(f"{end}.{each}", "") for each in _LOCATIONS}
    return {key: path for key, path in named.items() if path}


def datasets_in(end: str, config: Mapping[str, str], topics: Iterable[str]) -> Sequence[Dataset]:
    """Return topics of a config's cluster as lineage names them: by its first server."""
    first = config[f"{end}.{SERVERS}"].split(",", 1)[0].strip()
    return [Dataset(f"kafka://{first}", each) for each in topics if each]
