"""Connect's transforms of a record's structure: ValueToKey, ExtractField, HoistField, Flatten.

Names, keys and meanings are those of Connect's own classes. What differs, and why:

* A field that is taken out of the value, and is no struct, stands in the column `_value`: a row has
  names for all it holds.
* HoistField leaves a tombstone one: a struct with a null in it is the same here.
* ValueToKey ends the job at a tombstone, as Connect's class does, so that no key is lost; a row
  with a key and nulls alone is taken for one.
* Rows have no schema with a name or a version, so SetSchemaMetadata changes nothing.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from pyspark.sql.types import MapType, StructType

from .....actors.settings import SettingType, Value
from ...engines.spelling import refusal
from ...spi.config import ConfigDef, ConfigInvalid, Importance, ParsedConfig
from ...spi.context import Context
from ...spi.keys.kinds import list_key, number_key, text_key
from .fields import NULL_DEFAULTS, some_distinct
from .record import KEY, ConnectRecord, Field, RecordPart, fields_in, struct_of
from .record_transform import RecordTransform


class ValueToKey(RecordTransform):
    """Sets the key to a struct of fields of the value."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the fields."""
        return ConfigDef(
            (
                list_key(
                    "fields",
                    "Names of the fields of the value that make the key, which is a struct.",
                    importance=Importance.HIGH,
                    required=True,
                    validator=some_distinct,
                ),
                NULL_DEFAULTS,
            )
        )

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._fields = settings.items("fields")

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Copy the fields."""
        there = record.fields(RecordPart.VALUE)
        if missing := [name for name in self._fields if name not in there]:
            raise ConfigInvalid(f"the record has no field {missing[0]}; it has {', '.join(there)}")
        key = struct_of({name: there[name] for name in self._fields})
        if record.tombstone:
            error = refusal("'a tombstone has no fields to make a key of'")
            key = Field(f"IF({record.tombstone}, {error}, {key.sql})", key.type)
        return record.with_metadata(KEY, key)


class ExtractField(RecordTransform):
    """Replaces the whole key or value by one of its fields."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the field, and the syntax of its path."""
        return ConfigDef(
            (
                text_key(
                    "field",
                    "Name of the field to extract.",
                    required=True,
                ),
                NULL_DEFAULTS,
                text_key(
                    "field.syntax.version",
                    "With `V1`, the name is that of a field at the top. With `V2`, dots lead into "
                    "structs; a name that has dots itself stands between backticks.",
                    "V1",
                    importance=Importance.HIGH,
                    validator=_syntax_version,
                    recommended=("V1", "V2"),
                ),
            )
        )

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Check the backticks of a path."""
        try:
            _path_of(settings)
        except ValueError as error:
            return {"field": str(error)}
        return {}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._written = settings.text("field")
        self._path = _path_of(settings)

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Extract the field at the path; a null on the way gives null."""
        fields = record.fields(self._part)
        for step, following in pairwise((*self._path, None)):
            field = fields.get(step or "")
            if field is None or (following is not None and isinstance(field.type, MapType)):
                raise ConfigInvalid(f"unknown field {self._written}; there are {', '.join(fields)}")
            if following is None:
                return record.with_whole(self._part, field)
            fields = fields_in(field)
        raise ConfigInvalid(f"unknown field {self._written}")


class HoistField(RecordTransform):
    """Wraps the key or the value in a struct with one field."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the field."""
        return ConfigDef(
            (
                text_key(
                    "field",
                    "Name of the one field of the struct that is made.",
                    required=True,
                ),
            )
        )

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._field = settings.text("field")

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Wrap it; a null key becomes a struct with a null in it."""
        wrapped = {self._field: record.whole(self._part)}
        if self._part is RecordPart.KEY:
            return record.with_metadata(KEY, struct_of(wrapped))
        return record.with_fields(self._part, wrapped)


class Flatten(RecordTransform):
    """Flattens nested structs; new names have the path of the field."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the delimiter."""
        return ConfigDef(
            (
                text_key(
                    "delimiter",
                    "What stands between the names of a struct and of its field in the new name.",
                    ".",
                ),
            )
        )

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._delimiter = settings.text("delimiter")

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Flatten all structs; arrays stay unchanged."""
        leaves = list(self._leaves("", record.fields(self._part)))
        fields = dict(leaves)
        if len(fields) < len(leaves):
            raise ConfigInvalid("two fields would have one name: take another delimiter")
        return record.with_fields(self._part, fields)

    def _leaves(self, prefix: str, fields: Mapping[str, Field]) -> Iterator[tuple[str, Field]]:
        for name, field in fields.items():
            path = f"{prefix}{self._delimiter}{name}" if prefix else name
            if isinstance(field.type, StructType):
                yield from self._leaves(path, fields_in(field))
            elif isinstance(field.type, MapType):
                raise ConfigInvalid(f"{path} is a map: Flatten takes structs apart, and no maps")
            else:
                yield path, field


class SetSchemaMetadata(RecordTransform):
    """Changes nothing: the rows of a frame have no schema with a name or a version."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions that Connect has."""
        return ConfigDef(
            (
                text_key(
                    "schema.name",
                    "A name for the schema; it has no effect here.",
                    importance=Importance.HIGH,
                ),
                number_key(
                    "schema.version",
                    "A version for the schema; it has no effect here.",
                    None,
                    importance=Importance.HIGH,
                    least=None,
                    kind=SettingType.INT,
                ),
                NULL_DEFAULTS,
            )
        )

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Require a name or a version, as Connect does."""
        if settings.values["schema.name"] is None and settings.values["schema.version"] is None:
            return {"schema.name": "neither a name nor a version is given"}
        return {}

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record unchanged."""
        return record


def _syntax_version(value: Value) -> str | None:
    return None if str(value).upper() in {"V1", "V2"} else "must be V1 or V2"


def _path_of(settings: ParsedConfig) -> tuple[str, ...]:
    """Return the steps to a field (KIP-821); raises `ValueError` for an unpaired backtick."""
    written = settings.text("field")
    if settings.text("field.syntax.version").upper() == "V1":
        return (written,)
    steps: list[str] = []
    left = written
    while left:
        step, left = _quoted_step(left) if left.startswith("`") else _plain_step(left)
        steps.append(step)
    return (*steps, "") if written.endswith(".") else tuple(steps) or ("",)


def _plain_step(text: str) -> tuple[str, str]:
    step, _, left = text.partition(".")
    return step, left


def _quoted_step(text: str) -> tuple[str, str]:
    """Split off a step in backticks, which ends at a backtick before a dot or at the end.

    A backslash escapes such a backtick; any other backtick is part of the name.
    """
    step, place = "", 1
    while (end := text.find("`", place)) >= 0:
        is_last = end == len(text) - 1
        is_escaped = text[end - 1] == "\\"
        if not is_last and text[end + 1] != ".":
            step, place = step + text[place : end + 1], end + 1
        elif is_escaped and not is_last:
            step, place = step + text[place : end - 1] + "`", end + 1
        elif not is_escaped:
            return step + text[place:end], text[end + 2 :]
        else:
            break
    raise ValueError(f"a backtick of {text} has no other one that ends the name")
