"""The keys of the Avro converter and its schema registry, with the names of Confluent's converter.

As in Connect, the key converter and the value converter each have their own registry.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from .....actors.settings import Value
from ...spi.config import Definition, Importance, Width
from ...spi.keys.kinds import flag_key, list_key, secret_key, text_key

AVRO: Final = "avro"
_URL: Final = ".schema.registry.url"
_USER_INFO: Final = (".schema.registry.basic.auth.user.info", ".basic.auth.user.info")
_REGISTER: Final = ".auto.register.schemas"
_STRATEGY: Final = ".subject.name.strategy"
BY_TOPIC, BY_RECORD, BY_BOTH = (
    "TopicNameStrategy",
    "RecordNameStrategy",
    "TopicRecordNameStrategy",
)
_STRATEGIES: Final = (BY_TOPIC, BY_RECORD, BY_BOTH)


class RegistryAccess(NamedTuple):
    """The connection settings of one converter's registry."""

    key: str
    """The config key of the addresses."""
    urls: tuple[str, ...]
    user_info: str
    """`user:password`; empty: without authentication."""

    @property
    def secret_key(self) -> str:
        """The config key of user and password."""
        return self.key.removesuffix(_URL) + _USER_INFO[0]


def registry_keys(converter: str, *, writes: bool) -> Sequence[Definition]:
    """Return the Avro keys of a converter; `writes`: it is a sink's."""
    register = flag_key(
        converter + _REGISTER,
        "Whether to register the schema of the rows; if not, rows are written with the latest "
        "version of the subject.",
        default=True,
        importance=Importance.LOW,
    )
    low = Importance.LOW
    return (
        list_key(
            converter + _URL,
            f"The URL of the schema registry of `{AVRO}`: `http://host:port`; several are tried in "
            "turn.",
            validator=_addresses,
            width=Width.LONG,
        ),
        *(
            secret_key(converter + name, "`user:password` for the registry.", importance=low)
            for name in _USER_INFO
        ),
        text_key(
            strategy_key(converter),
            "How the subject of a schema is named: by the topic, by the record's name, or by both.",
            BY_TOPIC,
            validator=_strategy,
            recommended=_STRATEGIES,
            importance=low,
        ),
        *((register,) if writes else ()),
    )


def strategy_key(converter: str) -> str:
    """Return the key of the strategy: `value.converter.value.subject.name.strategy`."""
    return f"{converter}.{_side(converter)}{_STRATEGY}"


def register_key(converter: str) -> str:
    """Return the key `auto.register.schemas` of a converter."""
    return converter + _REGISTER


def is_avro(converter: str, config: Mapping[str, str]) -> bool:
    """Return whether a converter, given by its key, is Avro."""
    return config.get(converter, "").rpartition(".")[2] in {AVRO, "AvroConverter"}


def registry_access(converter: str, config: Mapping[str, str]) -> RegistryAccess:
    """Return the connection settings of a converter's registry."""
    urls = tuple(each.strip().rstrip("/") for each in config.get(converter + _URL, "").split(","))
    given = (config.get(converter + name, "") for name in _USER_INFO)
    return RegistryAccess(
        converter + _URL, tuple(filter(None, urls)), next(filter(None, given), "")
    )


def subject_strategy(converter: str, config: Mapping[str, str]) -> str:
    """Return the subject name strategy of a converter, as the name of Confluent's class."""
    return config.get(strategy_key(converter), BY_TOPIC).rpartition(".")[2]


def subject_of(strategy: str, topic: str, converter: str, record: str) -> str:
    """Return the subject of a schema; `record` is the full name of its record."""
    if strategy == BY_RECORD:
        return record
    return f"{topic}-{record if strategy == BY_BOTH else _side(converter)}"


def complaints(converters: Sequence[str], config: Mapping[str, str]) -> Mapping[str, str]:
    """Return an error for each Avro converter without a registry, by the key to set."""
    return {
        each + _URL: f"{each} needs the address of its schema registry"
        for each in converters
        if is_avro(each, config) and not config.get(each + _URL)
    }


def _side(converter: str) -> str:
    """Return whether it is the converter of the `key` or of the `value`."""
    return converter.split(".")[-2]


def _addresses(value: Value) -> str | None:
    for each in value if isinstance(value, tuple) else ():
        try:
            parts = urlsplit(each)
            port = parts.port  # raises where it is none
        except ValueError:
            return "must be http://host:port"
        if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
            return "must be http://host:port"
        if "@" in parts.netloc:
            return "must not have a password: set it in basic.auth.user.info, which is encrypted"
    return None


def _strategy(value: Value) -> str | None:
    if str(value or BY_TOPIC).rpartition(".")[2] in _STRATEGIES:
        return None
    return f"must be one of {', '.join(_STRATEGIES)}"
