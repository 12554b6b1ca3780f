"""Connect's transform TimestampConverter: converts times between texts, numbers and dates.

On its way from one to the other a time is a count of milliseconds, as in Connect, so microseconds
of a column are lost; a TIMESTAMP that stays one keeps them. What differs from Connect's own class:

* Rows have no type for a time of day: `Time` makes an INT of the day's milliseconds, which is what
  Connect has below that type.
* A Spark timestamp ends in the year 294247: what is later ends the job.
* What `simple_date_format` says of patterns.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import (
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from .....actors.settings import one_of
from ...spi.config import ConfigDef, ConfigInvalid, Importance, ParsedConfig
from ...spi.context import Context
from ...spi.keys.kinds import choice_key, text_key
from .cast import millis_of
from .fields import NULL_DEFAULTS
from .record import ConnectRecord, Field
from .record_transform import RecordTransform
from .simple_date_format import DAY_MS, SimpleDateFormat, day_of

_TYPES: Final = ("string", "unix", "Date", "Time", "Timestamp")
_LONGEST: Final = (1 << 63) - 1
_PER_UNIT: Final = {"seconds": 1000, "milliseconds": 1}
_PER_MILLI: Final = {"microseconds": 1_000, "nanoseconds": 1_000_000}


class TimestampConverter(RecordTransform):
    """Converts one field, or the whole key or value."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the field, the target type, the format and the unit."""
        return ConfigDef(
            (
                text_key(
                    "field",
                    "Name of the field with the time; empty: the whole key or value is one.",
                    "",
                    importance=Importance.HIGH,
                ),
                choice_key(
                    "target.type",
                    "What the time becomes: a text, a number since 1970, a date, a time of day, or "
                    "a timestamp.",
                    *_TYPES,
                    importance=Importance.HIGH,
                    required=True,
                ),
                text_key(
                    "format",
                    "How times are spelled as text, in the words of Java's SimpleDateFormat: "
                    "`yyyy-MM-dd HH:mm:ss`. For `string`, and for fields that are texts.",
                    "",
                ),
                text_key(
                    "unix.precision",
                    "What numbers count since 1970. Below a millisecond nothing is kept.",
                    "milliseconds",
                    importance=Importance.LOW,
                    validator=one_of(*_PER_MILLI, *_PER_UNIT),
                    recommended=(*_PER_MILLI, *_PER_UNIT),
                ),
                NULL_DEFAULTS,
            )
        )

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Require a valid format if the target is text."""
        pattern = settings.text("format")
        if not pattern.strip():
            is_needed = settings.text("target.type") == "string"
            return {"format": "the target type string needs it"} if is_needed else {}
        try:
            SimpleDateFormat(pattern)
        except ValueError as error:
            return {"format": str(error)}
        return {}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._field = settings.text("field")
        self._target = settings.text("target.type")
        self._precision = settings.text("unix.precision")
        pattern = settings.text("format")
        self._format = SimpleDateFormat(pattern) if pattern.strip() else None

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Convert the field if it exists."""
        if not self._field:
            return record.with_whole(self._part, self._converted(record.whole(self._part)))
        fields = record.fields(self._part)
        if self._field not in fields:
            return record
        converted = self._converted(fields[self._field])
        return record.with_fields(self._part, {**fields, self._field: converted})

    def _converted(self, field: Field) -> Field:
        if isinstance(field.type, TimestampType) and self._target == "Timestamp":
            return field
        millis = self._millis(field)
        sql, kind = self._made_of(millis)
        return Field(f"IF({field.sql} IS NULL, NULL, {sql})", kind)

    def _millis(self, field: Field) -> str:
        if isinstance(field.type, DateType | TimestampType | TimestampNTZType):
            return millis_of(field)
        if isinstance(field.type, LongType):
            return self._counted(field.sql)
        if isinstance(field.type, StringType):
            if self._format is None:
                raise ConfigInvalid("format: a text can be no time without it")
            return self._format.parsed(field.sql)
        raise ConfigInvalid(f"{field.type.simpleString()} is no type that a time can have")

    def _counted(self, number: str) -> str:
        """Return a number since 1970 as milliseconds, truncated, or saturated to a BIGINT."""
        if self._precision in _PER_MILLI:
            return f"({number} div {_PER_MILLI[self._precision]})"
        return _times(number, _PER_UNIT[self._precision])

    def _made_of(self, millis: str) -> tuple[str, DataType]:
        match self._target:
            case "string" if self._format:
                return self._format.formatted(millis), StringType()
            case "Date":
                return day_of(millis), DateType()
            case "Time":
                return f"CAST(pmod({millis}, {DAY_MS}) AS INT)", IntegerType()
            case "Timestamp":
                return f"timestamp_millis({millis})", TimestampType()
            case _ if self._precision in _PER_MILLI:
                return _times(millis, _PER_MILLI[self._precision]), LongType()
            case _:
                return f"({millis} div {_PER_UNIT[self._precision]})", LongType()


def _times(number: str, factor: int) -> str:
    """Return a product that saturates to a BIGINT, as Java's TimeUnit does."""
    if factor == 1:
        return number
    most = _LONGEST // factor
    return (
        f"CASE WHEN {number} > {most}L THEN {_LONGEST}L"
        f" WHEN {number} < -{most}L THEN CAST('{-_LONGEST - 1}' AS BIGINT)"
        f" ELSE {number} * {factor}L END"
    )
