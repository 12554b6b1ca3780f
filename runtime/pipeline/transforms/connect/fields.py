"""Connect's transforms of single fields: InsertField, ReplaceField, MaskField.

Names, keys and meanings are those of Connect's own classes. What differs, and why:

* Columns have no defaults, so `replace.null.with.default` is accepted without effect.
* MaskField passes a tombstone, where Connect's class fails: here a tombstone is the same as a
  struct of nulls, which that class takes. A replacement that does not fit the type of a field, or
  that a DECIMAL would round, is refused before there is a row.
* ReplaceField keeps a field with the new name of a missing field; Connect's class
  fails.
* InsertField fails on a required field (`topic!`) that is null itself; Connect's converter does.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from .....actors.settings import Value
from ...engines.spelling import literal, refusal
from ...spi.config import ConfigDef, ConfigInvalid, Importance, ParsedConfig
from ...spi.context import Context
from ...spi.keys.kinds import flag_key, list_key, text_key
from .record import OFFSET, PARTITION, TIMESTAMP, TOPIC, ConnectRecord, Field, RecordPart, unless
from .record_transform import RecordTransform, not_empty

NULL_DEFAULTS: Final = flag_key(
    "replace.null.with.default",
    "Whether a null in a field that has a default becomes that default. Columns have none, so this "
    "has no effect; it is taken so that configs of Connect need no change.",
    default=True,
)


class InsertField(RecordTransform):
    """Adds fields with the record's metadata, or with a static value."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: one for each kind of field, all optional."""
        keys = {
            f"{what}.field": f"Name of the field for {meaning}. With `!` behind it the field is "
            "required, with `?`, as without, it may be null."
            for what, (_, _, meaning) in _INSERTED.items()
        }
        keys["static.field"] = "Name of the field that is the same for all; `!` and `?` as above."
        keys["static.value"] = "The value of that field."
        definitions = (text_key(name, documentation) for name, documentation in keys.items())
        return ConfigDef((*definitions, NULL_DEFAULTS))

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Require a field, and a value for a static field."""
        fields = [what for what in (*_INSERTED, "static") if settings.values[f"{what}.field"]]
        if not fields:
            return {"static.field": "no field to insert is named, by this key or its siblings"}
        if "static" in fields and settings.values["static.value"] is None:
            return {"static.value": "the static field needs a value"}
        return {}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._wanted = {what: settings.text(f"{what}.field") for what in _INSERTED}
        self._static = settings.text("static.field")
        self._static_value = settings.text("static.value")

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Append the fields; a null key or value stays null."""
        fields = dict(record.fields(self._part))
        is_null = record.tombstone if self._part is RecordPart.VALUE else ""
        for name, field in self._inserted(record):
            plain = name.removesuffix("?").removesuffix("!") if name[-1] in "?!" else name
            if plain in fields:
                raise ConfigInvalid(f"the record has a field {plain} already")
            if name.endswith("!"):
                missing = refusal(literal(f"the required field {plain} is null"))
                field = field._replace(sql=f"coalesce({field.sql}, {missing})")  # noqa: PLW2901
            fields[plain] = unless(is_null, field)
        return record.with_fields(self._part, fields)

    def _inserted(self, record: ConnectRecord) -> Iterator[tuple[str, Field]]:
        for what, name in self._wanted.items():
            if name:
                column, kind, _ = _INSERTED[what]
                field = record.metadata(column)
                is_number = isinstance(field.type, LongType) and column == TIMESTAMP
                sql = f"timestamp_millis({field.sql})" if is_number else field.sql
                yield name, Field(f"CAST({sql} AS {kind.simpleString()})", kind)
        if self._static:
            yield self._static, Field(literal(self._static_value), StringType())


_INSERTED: Final[Mapping[str, tuple[str, DataType, str]]] = {
    "topic": (TOPIC, StringType(), "the topic"),
    "partition": (PARTITION, IntegerType(), "the partition in Kafka"),
    "offset": (OFFSET, LongType(), "the offset in Kafka"),
    "timestamp": (TIMESTAMP, TimestampType(), "the time of the record"),
}


class ReplaceField(RecordTransform):
    """Keeps, removes and renames fields."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: three lists."""
        lists = (
            ("exclude", "Fields to leave out; this counts more than those to keep.", distinct),
            ("include", "Fields to keep, and no others. Empty: all.", distinct),
            ("renames", "New names of fields, each as `old:new`.", _pairs),
        )
        definitions = (
            list_key(name, documentation, validator=valid) for name, documentation, valid in lists
        )
        return ConfigDef((*definitions, NULL_DEFAULTS))

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._exclude = frozenset(settings.items("exclude"))
        self._include = frozenset(settings.items("include"))
        self._renames = dict(each.split(":") for each in settings.items("renames"))

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Select fields by the old names, then rename."""
        chosen = [
            (self._renames.get(name, name), field)
            for name, field in record.fields(self._part).items()
            if name not in self._exclude and (not self._include or name in self._include)
        ]
        fields = dict(chosen)
        if len(fields) < len(chosen):
            raise ConfigInvalid("two fields would have one name")
        return record.with_fields(self._part, fields)


class MaskField(RecordTransform):
    """Masks the values of fields with the zero value of their type, or a replacement."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the fields, and the replacement."""
        return ConfigDef(
            (
                list_key(
                    "fields",
                    "Names of the fields to mask.",
                    importance=Importance.HIGH,
                    required=True,
                    validator=some_distinct,
                ),
                text_key(
                    "replacement",
                    "What stands in the fields instead, all of which are numbers or texts. Without "
                    "it they are 0, false, empty, or the first moment of 1970.",
                    importance=Importance.LOW,
                    validator=not_empty,
                ),
                NULL_DEFAULTS,
            )
        )

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._masked = frozenset(settings.items("fields"))
        replacement = settings.values["replacement"]
        self._replacement = None if replacement is None else str(replacement)

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Mask values that are not null."""
        fields = {
            name: self._mask(name, field) if name in self._masked else field
            for name, field in record.fields(self._part).items()
        }
        return record.with_fields(self._part, fields, "masking fields")

    def _mask(self, name: str, field: Field) -> Field:
        if self._replacement is None:
            mask = _nothing_of(field)
        else:
            mask = _replacement_of(field.type, self._replacement)
        if mask is None:
            how = "" if self._replacement is None else " with a replacement"
            raise ConfigInvalid(f"{name} is {field.type.simpleString()}: that has no mask{how}")
        return field._replace(sql=f"IF({field.sql} IS NULL, NULL, {mask})")


_NOTHING: Final[Mapping[type[DataType], str]] = {
    BooleanType: "false",
    StringType: "''",
    DateType: "DATE'1970-01-01'",
    TimestampType: "timestamp_millis(0)",
    TimestampNTZType: "TIMESTAMP_NTZ'1970-01-01 00:00:00'",
}
_MOST_DIGITS: Final = 400
_FRACTIONS: Final = (DecimalType, FloatType, DoubleType)
WHOLE_BITS: Final[Mapping[type[DataType], int]] = {
    ByteType: 8,
    ShortType: 16,
    IntegerType: 32,
    LongType: 64,
}
"""The bits of integer types."""


def _nothing_of(field: Field) -> str | None:
    """Return Connect's mask for a type; None: Connect refuses the type."""
    if isinstance(field.type, ArrayType):
        return f"filter({field.sql}, x -> false)"
    if isinstance(field.type, MapType):
        return f"map_filter({field.sql}, (k, v) -> false)"
    if (
        isinstance(field.type, FloatType | DoubleType | DecimalType)
        or type(field.type) in WHOLE_BITS
    ):
        return f"CAST(0 AS {field.type.simpleString()})"
    return _NOTHING.get(type(field.type))


def _replacement_of(kind: DataType, text: str) -> str | None:
    """Return a replacement as a value of a type; None: Connect refuses the type."""
    if isinstance(kind, StringType):
        return literal(text)
    if not isinstance(kind, _FRACTIONS) and type(kind) not in WHOLE_BITS:
        return None
    try:
        number = Decimal(text) if text == text.strip() and "_" not in text else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number.adjusted() > _MOST_DIGITS:
        raise ConfigInvalid(f"the replacement {text} is no number that a column could hold")
    bits = WHOLE_BITS.get(type(kind))
    if bits is not None:  # Java narrows to the lowest bits
        whole = int(number) & (1 << bits) - 1
        number = Decimal(whole - (1 << bits) if whole >> bits - 1 else whole)
    if isinstance(kind, DecimalType) and not _fits(number, kind):
        raise ConfigInvalid(f"the replacement {text} does not fit into {kind.simpleString()}")
    shown = literal(str(number))
    shown = f"CAST({shown} AS DOUBLE)" if isinstance(kind, FloatType) else shown
    return f"CAST({shown} AS {kind.simpleString()})"


def _fits(number: Decimal, kind: DecimalType) -> bool:
    scaled = number.scaleb(kind.scale)
    return scaled == scaled.to_integral_value() and abs(scaled) < Decimal(10) ** kind.precision


def distinct(value: Value) -> str | None:
    """Refuse lists with blank or duplicate items, as Connect does."""
    items = value if isinstance(value, tuple) else ()
    if "" in items:
        return "no name in it may be empty"
    return "no name may be in it twice" if len(set(items)) < len(items) else None


def some_distinct(value: Value) -> str | None:
    """Refuse empty lists as well."""
    return distinct(value) if value else "must not be empty"


def _pairs(value: Value) -> str | None:
    items = value if isinstance(value, tuple) else ()
    wrong = next((each for each in items if not _is_pair(each)), None)
    return None if wrong is None else f"{wrong!r} is none of the form `old:new`"


def _is_pair(text: str) -> bool:
    old, _, new = text.partition(":")
    return bool(old and new) and ":" not in new
