"""The keys of a connection to a Kafka cluster, and the librdkafka settings that they give.

Both ends of a pipeline have the same keys, behind `source.` or `sink.`; `overrides` has the
settings that a config may make beside them. librdkafka reads a file while it holds the interpreter:
so each is looked at before.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .....actors.settings import Value, not_blank, one_of
from ...spi.config import ConfigInvalid, Definition, Importance, Width, strip_prefix
from ...spi.keys.kinds import choice_key, secret_key, text_key
from ...spi.lineage import Dataset
from ...untrusted.plain_file import flaw_in_plain_file
from .encryption import (
    JAVA_KEYS,
    KEYSTORE,
    TRUSTSTORE,
    java_stores,
    store_keys,
    store_settings,
)
from .overrides import JAVA_NAMES, flaws_in_overrides

Settings = dict[str, str | int | float | bool]
"""The settings of a librdkafka client."""

SERVERS: Final = "bootstrap.servers"
REQUEST_S: Final = 5.0
"""The timeout of requests; shorter than the time that a cancelled task has to end."""

LOOK_S: Final = 3.0
"""The timeout of the check of a config, for which a user waits."""

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
_MODULE: Final = "org.apache.kafka.common.security"
_MODULES: Final = {
    "PLAIN": f"{_MODULE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_MODULE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_MODULE}.scram.ScramLoginModule",
}
"""The mechanisms, and what Java logs in with."""
_MECHANISMS: Final = (*_MODULES,)
_JAAS: Final = "sasl.jaas.config"
_MECHANISM: Final = "sasl.mechanism"
_JAAS_OPTION: Final = re.compile(r"""\b(username|password)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_DEFAULTS: Final[Settings] = {"log_level": 0, "reconnect.backoff.max.ms": 1000}
"""Only critical errors go to standard error; others are reported by the callback."""


def connection_keys(end: str) -> Sequence[Definition]:
    """Return the connection keys of one end of a pipeline."""
    files = "of each worker, in PEM"
    return (
        text_key(
            f"{end}.{SERVERS}",
            "Some brokers of the cluster, which name the others: `host:port,host:port`.",
            importance=Importance.HIGH,
            required=True,
            validator=not_blank,
            width=Width.LONG,
        ),
        choice_key(
            f"{end}.security.protocol",
            "The protocol of the connection to the brokers.",
            "PLAINTEXT",
            "SSL",
            "SASL_PLAINTEXT",
            "SASL_SSL",
        ),
        text_key(
            f"{end}.{_MECHANISM}",
            f"The SASL mechanism: {', '.join(_MECHANISMS)}.",
            validator=_mechanism,
            recommended=_MECHANISMS,
        ),
        text_key(f"{end}.sasl.username", "The user, for PLAIN and SCRAM."),
        secret_key(f"{end}.sasl.password", "The password, for PLAIN and SCRAM.", width=Width.LONG),
        secret_key(
            f"{end}.sasl.jaas.config",
            "User and password in the format of Java's clients, instead of these two keys.",
            width=Width.LONG,
        ),
        text_key(f"{end}.ssl.ca.location", f"A file {files}, with the trusted authorities."),
        text_key(
            f"{end}.ssl.certificate.location", f"A file {files}, with the client's certificate."
        ),
        text_key(f"{end}.ssl.key.location", f"A file {files}, with the client's private key."),
        secret_key(f"{end}.ssl.key.password", "The password of the private key.", width=Width.LONG),
        *store_keys(end),
    )


def _mechanism(value: Value) -> str | None:
    return one_of(*_MECHANISMS)(value) if value else None


def client_settings(end: str, config: Mapping[str, str], overrides: str) -> Settings:
    """Return the librdkafka settings of one end; raises `ConfigInvalid`.

    `overrides` is the prefix of keys with settings of the user's own.
    """
    if flaws := refused_settings(config, overrides):
        raise ConfigInvalid("; ".join(f"{key}: {why}" for key, why in flaws.items()))
    mine = strip_prefix(f"{end}.", config)
    own: Settings = {key: mine[key] for key in _PASSED_ON if mine.get(key)}
    for name, *values in _JAAS_OPTION.findall(mine.get(_JAAS, "")):
        own.setdefault(f"sasl.{name}", "".join(values))
    for key, path in locations(end, config).items():
        if flaw := flaw_in_plain_file(path):
            raise ConfigInvalid(f"{key}: {flaw}")
    overridden = {
        JAVA_NAMES.get(key, key): value for key, value in strip_prefix(overrides, config).items()
    }
    return {**own, **store_settings(end, mine), **_DEFAULTS, **overridden}


def java_settings(settings: Settings) -> dict[str, str]:
    """Return the settings of a client of Java's that reaches what a client of librdkafka does.

    Settings of librdkafka's own, which do not say how a broker is reached, are left out. Raises
    `ConfigInvalid`.
    """
    texts = {key: str(value) for key, value in settings.items()}
    protocol, mechanism = texts.get("security.protocol", "PLAINTEXT"), texts.get(_MECHANISM)
    stores = java_stores(texts) if "SSL" in protocol else {}
    login: dict[str, str] = {}
    if mechanism:
        user, password = (
            _quoted(texts.get(f"sasl.{each}", "")) for each in ("username", "password")
        )
        entry = f"{_MODULES[mechanism]} required username={user} password={password};"
        login = {_MECHANISM: mechanism, _JAAS: entry}
    return {SERVERS: texts[SERVERS], "security.protocol": protocol, **stores, **login}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


def complaints(end: str, config: Mapping[str, str], overrides: str) -> Mapping[str, str]:
    """Return errors of overrides, and of keys that do not fit together, by the key to change."""
    flaws = refused_settings(config, overrides)
    refused = "; ".join(f"{key} {why}" for key, why in flaws.items())
    found = {f"{end}.{SERVERS}": refused} if refused else {}
    protocol = config.get(f"{end}.security.protocol", "")
    if protocol.startswith("SASL_") and not config.get(f"{end}.{_MECHANISM}"):
        found[f"{end}.{_MECHANISM}"] = f"{protocol} needs one of {', '.join(_MECHANISMS)}"
    return found


def refused_settings(config: Mapping[str, str], overrides: str) -> Mapping[str, str]:
    """Return the errors of overrides that are not allowed, by their keys."""
    own = {*_PASSED_ON, *JAVA_KEYS, _JAAS}
    flaws: dict[str, str] = {}
    for name in strip_prefix(overrides, config):
        if name in own:
            flaws[overrides + name] = f"set {overrides.split('.', 1)[0]}.{name} instead"
    given = {
        name: value for name, value in strip_prefix(overrides, config).items() if name not in own
    }
    return flaws | {overrides + name: why for name, why in flaws_in_overrides(given)}


def locations(end: str, config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the paths of the files that clients read, by their keys."""
    named = {f"{end}.{each}": config.get(f"{end}.{each}", "") for each in _LOCATIONS}
    return {key: path for key, path in named.items() if path}


def datasets_in(end: str, config: Mapping[str, str], topics: Iterable[str]) -> Sequence[Dataset]:
    """Return the lineage datasets of topics; the namespace has the cluster's first server."""
    first = config[f"{end}.{SERVERS}"].split(",", 1)[0].strip()
    return [Dataset(f"kafka://{first}", each) for each in topics if each]
