"""The converters of records' keys and values: their words, and Connect's classes for the same.

Connect lists converters as plugins, each with keys of its own; so are these. A connector's config
has them behind the key that names the converter: `source.value.converter.schemas.enable`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from .....actors.settings import Value
from ...spi.config import ConfigDef, Definition, Importance
from ...spi.errors import PluginUnknown
from ...spi.key_kinds import flag_key, text_key
from ..installed import describe_unknown
from .registry_keys import AVRO, registry_keys

CONVERTERS: Final = ("string", "json", "bytes", AVRO)
_SCHEMAS_KEY: Final = replace(
    flag_key(
        "schemas.enable",
        "Whether JSON is Connect's envelope of `schema` and `payload`. Where it is not set, a "
        "source takes values for such, and a sink writes plain JSON.",
        default=True,
    ),
    default=None,
)


@dataclass(frozen=True, slots=True)
class ConverterPlugin:
    """One converter as Connect lists it."""

    name: str
    """The full name of Connect's class, or of Confluent's."""
    definitions: tuple[Definition, ...] = ()
    version: ClassVar[str] = "1.0"

    def config(self) -> ConfigDef:
        """Return its keys, by the names that they have behind that of a converter's key."""
        return ConfigDef(self.definitions)


def _of_registry() -> tuple[Definition, ...]:
    """Return the keys of Avro: how subjects are named is one key for keys, and one for values."""
    made = [
        replace(each, name=each.name.removeprefix(f"{converter}."))
        for converter in ("value.converter", "key.converter")
        for each in registry_keys(converter, writes=True)
    ]
    return tuple({each.name: each for each in made}.values())


_PLUGINS: Final[Mapping[str, ConverterPlugin]] = {
    "bytes": ConverterPlugin("org.apache.kafka.connect.converters.ByteArrayConverter"),
    AVRO: ConverterPlugin("io.confluent.connect.avro.AvroConverter", _of_registry()),
    "json": ConverterPlugin("org.apache.kafka.connect.json.JsonConverter", (_SCHEMAS_KEY,)),
    "string": ConverterPlugin("org.apache.kafka.connect.storage.StringConverter"),
}
_WORDS: Final = {each.name.rpartition(".")[2]: word for word, each in _PLUGINS.items()}
"""Our words, by the short names of classes."""
_CLASSES: Final = {each.name: each for each in _PLUGINS.values()}


def converter(text: str) -> str:
    """Return our word for a converter; Connect's classes are known by their names, too."""
    return _WORDS.get(text.rpartition(".")[2], text)


def converter_names() -> Sequence[str]:
    """Return the full names of all converters."""
    return list(_CLASSES)


def find_converter(name: str) -> ConverterPlugin:
    """Return a converter by the full or the short name of its class; raises `PluginUnknown`."""
    found = _CLASSES.get(name) or _PLUGINS.get(_WORDS.get(name, ""))
    if found is None:
        raise PluginUnknown(describe_unknown("converter", name, _CLASSES))
    return found


def converter_key(
    name: str,
    meaning: str,
    default: str = "string",
    words: tuple[str, ...] = CONVERTERS,
    importance: Importance = Importance.HIGH,
) -> Definition:
    """Return the key that names a converter, one of some words or of the classes for the same."""

    def flaw(value: Value) -> str | None:
        if converter(str(value)) in words:
            return None
        classes = (each for each, word in _WORDS.items() if word in words)
        return f"there are {', '.join(words)}, and {', '.join(classes)} for the same"

    return text_key(
        name, meaning, default, importance=importance, validator=flaw, recommended=words
    )
