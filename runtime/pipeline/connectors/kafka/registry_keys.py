"""The keys of Avro with a schema registry: names of Confluent's converter behind the converter's.

A key's converter and a value's have a registry each, as in Connect.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from .....actors.settings import Value
from ...spi.config import Definition, Importance, Width
from ...spi.key_kinds import flag_key, list_key, secret_key, text_key

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
    """How one converter's registry is reached; `key` is the config key of its address."""

    key: str
    urls: tuple[str, ...]
    user_info: str
    """`user:password`; empty: it asks for none."""

    @property
    def secret_key(self) -> str:
        """The config key of user and password."""
        return self.key.removesuffix(_URL) + _USER_INFO[0]


def registry_keys(converter: str, *, writes: bool) -> Sequence[Definition]:
    """Return the keys of a converter that goes by Avro; `writes`: it is a sink's."""
    register = flag_key(
        converter + _REGISTER,
        "Whether the schema of the rows is registered; if not, rows are written by the latest "
        "version that the subject has.",
        default=True,
        importance=Importance.LOW,
    )
    low = Importance.LOW
    return (
        list_key(
            converter + _URL,
            f"Where the schema registry of `{AVRO}` is: `http://host:port`; several are tried in "
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
            "Which subject of the registry a schema belongs to: that of the topic, of the record's "
            "name, or of both.",
            BY_TOPIC,
            validator=_strategy,
            recommended=_STRATEGIES,
            importance=low,
        ),
        *((register,) if writes else ()),
    )


def strategy_key(converter: str) -> str:
    """Return the key of how subjects are named: `value.converter.value.subject.name.strategy`."""
    return f"{converter}.{_side(converter)}{_STRATEGY}"


def registers(converter: str) -> str:
    """Return the key of whether schemas are registered."""
    return converter + _REGISTER


def is_avro(converter: str, config: Mapping[str, str]) -> bool:
    """Tell whether a converter, by its key, goes by Avro."""
    return config.get(converter, "").rpartition(".")[2] in {AVRO, "AvroConverter"}


def access(converter: str, config: Mapping[str, str]) -> RegistryAccess:
    """Return how a converter's registry is reached."""
    urls = tuple(each.strip().rstrip("/") for each in config.get(converter + _URL, "").split(","))
    given = (config.get(converter + name, "") for name in _USER_INFO)
    return RegistryAccess(
        converter + _URL, tuple(filter(None, urls)), next(filter(None, given), "")
    )


def strategy(converter: str, config: Mapping[str, str]) -> str:
    """Return how a converter's subjects are named, by the name of Confluent's class."""
    return config.get(strategy_key(converter), BY_TOPIC).rpartition(".")[2]


def subject_of(strategy: str, topic: str, converter: str, record: str) -> str:
    """Return the subject of a schema; `record` is the full name of the record that it is of."""
    if strategy == BY_RECORD:
        return record
    return f"{topic}-{record if strategy == BY_BOTH else _side(converter)}"


def complaints(converters: Sequence[str], config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is missing for those converters that go by Avro, by its key."""
    return {
        each + _URL: f"{each} needs the address of its schema registry"
        for each in converters
        if is_avro(each, config) and not config.get(each + _URL)
    }


def _side(converter: str) -> str:
    """Return what a converter is for: `key` or `value`."""
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
            return "must not hold a password: give it in basic.auth.user.info, which is sealed"
    return None


def _strategy(value: Value) -> str | None:
    if str(value or BY_TOPIC).rpartition(".")[2] in _STRATEGIES:
        return None
    return f"there are {', '.join(_STRATEGIES)}"
