"""Connect's transform Cast: converts fields to other types, as Java does.

Java narrows integers to their lowest bits, parses a text only if all of it is a number, and has
other texts than SQL for small decimals, dates and true. Each conversion here gives the result of
Connect's own class, or fails the job where that class fails. Differences:

* Texts with digits of other scripts are not parsed as integers.
* Dates and times become texts as Connect has it in a JVM in UTC: the time alone before 1970-01-02,
  the date alone at midnight, else both. Microseconds count for nothing, as Connect has none.
* A column of arrays, maps or structs is refused even if it holds nulls alone.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from .....actors.settings import Value
from ...engines.spelling import literal, refusal
from ...spi.config import ConfigDef, ConfigInvalid, Importance, ParsedConfig
from ...spi.context import Context
from ...spi.keys.kinds import list_key
from .fields import NULL_DEFAULTS, WHOLE_BITS
from .record import ConnectRecord, Field
from .record_transform import RecordTransform
from .simple_date_format import DAY_MS, SimpleDateFormat

_TARGETS: Final[Mapping[str, DataType]] = {
    "int8": ByteType(),
    "int16": ShortType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "float32": FloatType(),
    "float64": DoubleType(),
    "boolean": BooleanType(),
    "string": StringType(),
}
"""The target types by Connect's names."""
_FLOATS: Final = (FloatType, DoubleType)
_TIMES: Final = (DateType, TimestampType, TimestampNTZType)
_LEAST_PLAIN_SCALE: Final = 6
"""From the next scale on, Java writes small decimals with an exponent."""


class Cast(RecordTransform):
    """Converts fields, or the whole key or value, to other types."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the list of casts."""
        return ConfigDef(
            (
                list_key(
                    "spec",
                    "Fields and the type that each is cast to, as `field:type`; or one type alone, "
                    f"for the whole key or value. Types are {', '.join(_TARGETS)}. What is binary "
                    "can become a string alone.",
                    importance=Importance.HIGH,
                    required=True,
                    validator=_spec,
                ),
                NULL_DEFAULTS,
            )
        )

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        """Store the types by field; an empty name stands for the whole key or value."""
        super().__init__(settings, context)
        self._targets = {name: _TARGETS[kind] for name, kind in map(_read, settings.items("spec"))}

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Cast the fields that exist."""
        if "" in self._targets:
            whole = record.whole(self._part)
            return record.with_whole(self._part, cast(whole, self._targets[""], "it"))
        fields = {
            name: cast(field, self._targets[name], name) if name in self._targets else field
            for name, field in record.fields(self._part).items()
        }
        return record.with_fields(self._part, fields)


def cast(field: Field, target: DataType, name: str) -> Field:
    """Return a field cast to a type as in Java; raises `ConfigInvalid` if Connect cannot."""
    source = field.type
    is_number = isinstance(source, (DecimalType, *_FLOATS, *_TIMES)) or type(source) in WHOLE_BITS
    if isinstance(target, StringType):
        sql = as_text(field)
    elif isinstance(source, StringType):
        sql = _parsed(field.sql, target)
    elif isinstance(source, BooleanType):
        sql = f"CAST({field.sql} AS {target.simpleString()})"
    elif is_number:
        sql = _converted(_epoch(field), target)
    else:
        sql = None
    if sql is None:
        kinds = f"{source.simpleString()} to {target.simpleString()}"
        raise ConfigInvalid(f"{name} cannot be cast from {kinds}")
    return Field(sql, target)


def as_text(field: Field) -> str | None:
    """Return a value as Java's text; None: Connect cannot convert it."""
    source = field.type
    if isinstance(source, BinaryType):
        return f"replace(base64({field.sql}), CAST(X'0d0a' AS STRING), '')"
    if isinstance(source, DecimalType) and source.scale > _LEAST_PLAIN_SCALE:
        return _small_decimal(field.sql, source.scale)
    if isinstance(source, _TIMES):
        millis = millis_of(field)
        return (
            f"CASE WHEN {field.sql} IS NULL THEN NULL"
            f" WHEN {millis} < {DAY_MS} THEN {_TIME.formatted(millis)}"
            f" WHEN pmod({millis}, {DAY_MS}) = 0 THEN {_DATE.formatted(millis)}"
            f" ELSE {_BOTH.formatted(millis)} END"
        )
    is_plain = isinstance(source, (DecimalType, *_FLOATS, BooleanType, StringType))
    return f"CAST({field.sql} AS STRING)" if is_plain or type(source) in WHOLE_BITS else None


def millis_of(field: Field) -> str:
    """Return a date or a time as milliseconds since 1970 in UTC, Connect's form."""
    if isinstance(field.type, DateType):
        return f"(CAST(unix_date({field.sql}) AS BIGINT) * {DAY_MS})"
    if isinstance(field.type, TimestampNTZType):
        return f"unix_millis(CAST(concat(CAST({field.sql} AS STRING), 'Z') AS TIMESTAMP))"
    return f"unix_millis({field.sql})"


def _epoch(field: Field) -> Field:
    """Return a date as days, a time as milliseconds, other values unchanged."""
    if isinstance(field.type, DateType):
        return Field(f"unix_date({field.sql})", IntegerType())
    if isinstance(field.type, _TIMES):
        return Field(millis_of(field), LongType())
    return field


def _converted(number: Field, target: DataType) -> str:
    """Return a number converted by Java's `Number` methods, such as `byteValue`."""
    if isinstance(target, BooleanType):
        return f"({_whole(number, LongType())} <> 0)"
    if not isinstance(target, _FLOATS):
        return _whole(number, target)
    # A conversion through text rounds once, as Java does.
    plain = f"CAST({number.sql} AS STRING)" if isinstance(number.type, DecimalType) else number.sql
    return f"CAST({plain} AS {target.simpleString()})"


def _whole(number: Field, target: DataType) -> str:
    bits, name = WHOLE_BITS[type(target)], target.simpleString()
    if isinstance(number.type, DecimalType):
        cut = f"IF({number.sql} < 0, ceil({number.sql}), floor({number.sql}))"
        return f"CAST({_lowest(f'CAST({cut} AS DECIMAL(38,0))', bits)} AS {name})"
    if isinstance(number.type, _FLOATS):
        wide = max(bits, 32)
        sql = _saturated(number.sql, wide)
        return sql if wide == bits else f"CAST({_lowest(sql, bits)} AS {name})"
    if WHOLE_BITS[type(number.type)] <= bits:
        return f"CAST({number.sql} AS {name})"
    return f"CAST({_lowest(number.sql, bits)} AS {name})"


def _lowest(sql: str, bits: int) -> str:
    """Return the lowest bits of an integer, in two's complement."""
    rest = f"pmod({sql}, {_spelled(1 << bits)})"
    return f"IF({rest} >= {_spelled(1 << bits - 1)}, {rest} - {_spelled(1 << bits)}, {rest})"


def _spelled(number: int) -> str:
    return f"{number}" if number < 1 << 31 else f"{number}{'L' if number < 1 << 63 else ''}"


def _saturated(sql: str, bits: int) -> str:
    """Return a floating-point number as Java's integer: NaN is 0, large values saturate."""
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    name = "INT" if bits == 32 else "BIGINT"  # noqa: PLR2004
    return (
        f"CASE WHEN {sql} IS NULL THEN NULL WHEN isnan({sql}) THEN CAST(0 AS {name})"
        f" WHEN {sql} >= {float(most)!r}D THEN CAST('{most}' AS {name})"
        f" WHEN {sql} <= {float(least)!r}D THEN CAST('{least}' AS {name})"
        f" ELSE CAST({sql} AS {name}) END"
    )


def _parsed(sql: str, target: DataType) -> str:
    """Return a text parsed as in Java; an invalid text fails the job."""
    name = target.simpleString()
    if isinstance(target, BooleanType):
        return f"(lower({sql}) = 'true')"
    shape = _WHOLE_NUMBER if type(target) in WHOLE_BITS else _JAVA_DOUBLE
    told = refusal("'the value '", sql, f"' is no number of type {name}'")
    number = f"IF({sql} RLIKE {literal(shape)}, try_cast({sql} AS {name}), NULL)"
    return f"IF({sql} IS NULL, NULL, coalesce({number}, {told}))"


def _small_decimal(sql: str, scale: int) -> str:
    """Return a decimal as `BigDecimal.toString` does: small ones with an exponent."""
    plain = f"CAST({sql} AS STRING)"
    digits = f"trim(LEADING '0' FROM translate({plain}, '-.', ''))"
    digits = f"coalesce(nullif({digits}, ''), '0')"
    fraction = f"IF(length({digits}) > 1, concat('.', substr({digits}, 2)), '')"
    exponent = f"CAST(length({digits}) - {scale + 1} AS STRING)"
    small = f"concat(IF({sql} < 0, '-', ''), left({digits}, 1), {fraction}, 'E', {exponent})"
    return f"IF(abs({sql}) < 0.000001 AND NOT contains({plain}, 'E'), {small}, {plain})"


_WHOLE_NUMBER: Final = r"\A[+-]?[0-9]+\z"
_JAVA_DOUBLE: Final = (
    r"\A[\x00-\x20]*[+-]?(NaN|Infinity|((([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    r"|0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?))[\x00-\x20]*\z"
)
"""Matches what `Double.valueOf` accepts, by its documentation."""
_TIME: Final = SimpleDateFormat("HH:mm:ss.SSS'Z'")
_DATE: Final = SimpleDateFormat("yyyy-MM-dd")
_BOTH: Final = SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def _read(item: str) -> tuple[str, str]:
    """Return the field (empty: the whole) and the type of an item."""
    field, _, kind = item.rpartition(":")
    return field.strip(), kind.strip().lower()


def _spec(value: Value) -> str | None:
    items = value if isinstance(value, tuple) else ()
    if not items:
        return "must name a field to cast at least"
    for item in items:
        field, kind = _read(item)
        if ":" in field or kind not in _TARGETS:
            return f"{item!r} is none of the form `field:type` with a type of {', '.join(_TARGETS)}"
        if not field and len(items) > 1:
            return "the type of the whole stands alone"
    return None
