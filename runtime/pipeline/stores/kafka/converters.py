"""The converters of record keys and values: their short names, and Connect's class names.

As in Connect, each converter is a plugin with its own keys. In a connector's config they follow the
key that names the converter: `source.value.converter.schemas.enable`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from .....actors.settings import Value
from ...installed import describe_unknown
from ...spi.config import ConfigDef, Definition, Importance
from ...spi.errors import PluginUnknown
from ...spi.keys.kinds import flag_key, text_key
from .registry_keys import AVRO, registry_keys

CONVERTERS: Final = ("string", "json", "bytes", AVRO)
_SCHEMAS_KEY: Final = replace(
    flag_key(
        "schemas.enable",
        "Whether JSON is Connect's envelope of `schema` and `payload`. Default: true for a "
        "source, false for a sink.",
        default=True,
    ),
    default=None,
)


@dataclass(frozen=True, slots=True)
class ConverterPlugin:
    """One converter in the list of plugins."""

    name: str
    """The full name of Connect's class, or of Confluent's."""
    definitions: tuple[Definition, ...] = ()
    version: ClassVar[str] = "1.0"

    def config(self) -> ConfigDef:
        """Return the definitions of its keys, named without the converter's key."""
        return ConfigDef(self.definitions)


def _of_registry() -> tuple[Definition, ...]:
    """Return the keys of Avro, with the subject name strategies for keys and for values."""
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
"""The kinds of converters, by the short names of classes."""
_CLASSES: Final = {each.name: each for each in _PLUGINS.values()}


def converter_kind(text: str) -> str:
    """Return the kind of a converter, given by its kind or by the name of Connect's class."""
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
    importance: Importance = Importance.HIGH,
) -> Definition:
    """Return the key that names a converter, by a kind or by a class name."""

    def flaw(value: Value) -> str | None:
        if converter_kind(str(value)) in CONVERTERS:
            return None
        return f"must be one of {', '.join(CONVERTERS)}, or {', '.join(_WORDS)}"

    return text_key(
        name, meaning, default, importance=importance, validator=flaw, recommended=CONVERTERS
    )
