# pyright: basic
"""The language of values: which texts are values of a type, and which value each of them is.

It holds for csv and for json, in files and in records, whatever else stands beside a value. Spark's
own conversions take more than a text says: a time of day for that time of the present day, `12D`
for 12.0, `1e400` for Infinity, an hour that the clocks skip for the next one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, Self

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

TIMES: Final = (DateType, TimestampType, TimestampNTZType)
"""The types whose values are read as texts unless they are plain: Spark takes too much for them."""

_PATTERNS: Final[Mapping[type[DataType], str]] = {
    DateType: "dateformat",
    TimestampType: "timestampformat",
    TimestampNTZType: "timestampntzformat",
}
"""The options, in lower case, with the patterns of dates and times."""
_OF_ZONES: Final = frozenset("VzOXx")
"""The letters for a zone in a pattern."""

_FIXED: Final = re.compile(
    r"(?:Etc/)?(?:UTC|GMT|UCT|Zulu|Z)|(?:(?:Etc/)?(?:UTC|GMT|UT))?[+-][0-9:]+"
)
"""Matches zones whose clocks are never changed."""

_BLANK: Final = r"[\x00-\x20]*"
_YEAR: Final = r"[+-]?(?:[0-9]{4,5}|1[0-9]{5}|2[0-8][0-9]{4}|29[0-3][0-9]{3})"
"""Years up to 293999: a little later the microseconds of a time are more than a number holds."""
_DAY: Final = rf"{_YEAR}-[0-9]{{1,2}}-[0-9]{{1,2}}"
_CLOCK: Final = r"[0-9]{1,2}(?::[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]*)?)?)?"
_DATE: Final = rf"^{_BLANK}{_DAY}{_BLANK}\z"
_LOCAL: Final = rf"^{_BLANK}{_DAY}(?:[ T]{_CLOCK})?{_BLANK}\z"
_TIME: Final = rf"^{_BLANK}{_DAY}(?:[ T]{_CLOCK}(?:[^0-9:.].*)?)?{_BLANK}\z"
"""Matches a date, or a date and a time, perhaps with what may be a zone."""
_TOO_FINE: Final = r"\.[0-9]{6}[0-9]*[1-9]"
_SECONDS: Final = r"^-?(?:[0-9]{1,3}|[0-9]{5,11})\z"
"""Matches seconds since 1970; 4 digits may be a year, and 12 are the milliseconds of 1973."""
_INTEGER: Final = r"^[+-]?[0-9]+\z"
_FRACTION: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_FLOAT: Final = rf"^{_BLANK}{_FRACTION}(?:[eE][+-]?[0-9]+)?{_BLANK}\z"
_NO_NUMBER: Final = rf"^{_BLANK}(?:NaN|-?Inf|[+-]INF|[+-]?Infinity){_BLANK}\z"
_NOT_ZERO: Final = r"^[^eE]*[1-9]"
_EXACT: Final = rf"^{_FRACTION}(?:[eE][+-]?[0-9]{{1,3}})?\z"
_MOST_DIGITS: Final = 1_000
"""The longest text of a DECIMAL; with more, or with a larger exponent, one can take minutes."""
NUMERIC_CODE: Final = r"^(\+|-?0[0-9])"
"""Matches the beginning of a text that loses characters as a number."""

OF_CODES: Final = (
    ", which loses zeros or a sign as a number: give the columns in `source.schema`, this one as "
    "STRING, or as a number type to read it as a number"
)
OF_CLOCKS: Final = (
    ", a time without a zone that the clocks of {} have not, or have twice: write times with their "
    "zone, or give the columns in `source.schema`, this one as TIMESTAMP_NTZ or STRING"
)


@dataclass(frozen=True, slots=True)
class TextValues:
    """The values of texts, with the texts for null and the options of Spark's reader."""

    nulls: tuple[str, ...] = ()
    """The texts for null."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """The user's options of Spark's reader, with names in lower case."""
    is_inferred: bool = False
    """Whether texts that say more than the value of their type holds are bad values."""
    has_seconds: bool = False
    """Whether an integer is a TIMESTAMP, as in JSON: the seconds since 1970."""
    has_blank_nulls: bool = True
    """Whether an empty text is null, but for a STRING."""
    zone: str = "UTC"
    """The zone of times without a zone."""
    is_of_session: bool = True
    """Whether it is the zone of Spark's session."""

    def within(self, session_zone: str) -> Self:
        """Return these values for a session's zone, if the options name none."""
        zone = self.options.get("timezone", session_zone)
        return replace(self, zone=zone, is_of_session=zone == session_zone)

    def value(self, text: "Column", kind: DataType) -> "Column":
        """Return the value of a text; any value, or null, if the text does not fit the type."""
        return self._typed(self._present(text, kind), kind)

    def is_misfit(self, text: "Column", kind: DataType) -> "Column":
        """Return whether a text does not fit a type; never null."""
        if isinstance(kind, StringType):
            return sf.expr("false")
        there = self._present(text, kind)
        value = self._typed(there, kind)
        is_other = value.isNull() | self._is_other(there, value, kind)
        return there.isNotNull() & sf.coalesce(is_other, sf.expr("true"))

    def hint(self, text: "Column", kind: DataType) -> "Column":
        """Return a hint about a text that does not fit; empty: there is none."""
        if isinstance(kind, NumericType):
            is_code = text.rlike(NUMERIC_CODE) & self._typed(text, kind).isNotNull()
            return sf.when(is_code, OF_CODES).otherwise("")
        if isinstance(kind, TimestampType) and self._has_changes:
            is_local = text.rlike(_LOCAL) & self._is_unclear(text.try_cast(TimestampNTZType()))
            return sf.when(is_local, OF_CLOCKS.format(self.zone)).otherwise("")
        return sf.lit("")

    def _present(self, text: "Column", kind: DataType) -> "Column":
        """Return a text, or null if it stands for null."""
        is_plain = isinstance(kind, StringType) or not self.has_blank_nulls
        absent = self.nulls if is_plain else ("", *self.nulls)
        return sf.when(~text.isin(*absent), text) if absent else text

    def _typed(self, text: "Column", kind: DataType) -> "Column":
        """Return Spark's value of a text; null if there is none."""
        if isinstance(kind, StringType):
            return text
        if isinstance(kind, DecimalType):
            is_short = (sf.length(text) <= _MOST_DIGITS) & text.rlike(_EXACT)
            return sf.when(is_short, text.try_cast(kind))
        if isinstance(kind, FloatType | DoubleType):
            return self._with_words(text, text.try_cast(kind), kind)
        value = self._time(text, kind) if isinstance(kind, TIMES) else text.try_cast(kind)
        if self.has_seconds and isinstance(kind, TimestampType):
            seconds = sf.timestamp_seconds(text.try_cast("bigint"))
            return sf.when(text.rlike(_SECONDS), seconds).otherwise(value)
        return value

    def _time(self, text: "Column", kind: DataType) -> "Column":
        pattern = self._pattern(kind)
        value = _by_pattern(text, kind, pattern) if pattern else text.try_cast(kind)
        if self.is_of_session or not isinstance(kind, TimestampType):
            return value
        local = self._local(text, pattern)
        return sf.when(local.isNotNull(), _instant(self._utc(local))).otherwise(value)

    def _local(self, text: "Column", pattern: str) -> "Column":
        """Return the local time of a text without a zone; null if there is none."""
        ntz = TimestampNTZType()
        if not pattern:
            return sf.when(text.rlike(_LOCAL), text.try_cast(ntz))
        return sf.lit(None).cast(ntz) if _OF_ZONES & {*pattern} else _by_pattern(text, ntz, pattern)

    def _is_other(self, text: "Column", value: "Column", kind: DataType) -> "Column":
        """Return whether a text does not say, or says more than, the value that Spark finds."""
        if isinstance(kind, FloatType | DoubleType):
            return self._is_other_number(text, value)
        if isinstance(kind, IntegralType):
            is_other = ~text.rlike(_INTEGER)
            return is_other | text.rlike(NUMERIC_CODE) if self.is_inferred else is_other
        if isinstance(kind, DecimalType):
            return text.rlike(NUMERIC_CODE) if self.is_inferred else sf.expr("false")
        if isinstance(kind, BooleanType):
            return ~sf.lower(text).isin("true", "false")
        return self._is_other_time(text, kind) if isinstance(kind, TIMES) else sf.expr("false")

    def _is_other_number(self, text: "Column", value: "Column") -> "Column":
        is_lost = (sf.abs(value) == float("inf")) | ((value == 0) & text.rlike(_NOT_ZERO))
        is_word = reduce(or_, (text == each for each in self._words()), text.rlike(_NO_NUMBER))
        is_other = sf.when(text.rlike(_FLOAT), is_lost).otherwise(~is_word)
        return is_other | text.rlike(NUMERIC_CODE) if self.is_inferred else is_other

    def _is_other_time(self, text: "Column", kind: DataType) -> "Column":
        pattern = self._pattern(kind)
        is_other = sf.expr("false") if pattern else self._is_otherwise(text, kind)
        if isinstance(kind, TimestampType) and self._has_changes:
            local = self._local(text, pattern)
            is_other |= local.isNotNull() & self._is_unclear(local)
        return is_other

    def _is_otherwise(self, text: "Column", kind: DataType) -> "Column":
        """Return whether a text is no date, or no date and time, whatever Spark makes of it."""
        if isinstance(kind, DateType):
            is_no_time = ~text.rlike(_TIME) | text.try_cast(TimestampType()).isNull()
            return sf.when(~text.rlike(_DATE), is_no_time).otherwise(sf.expr("false"))
        is_other = ~text.rlike(_TIME if isinstance(kind, TimestampType) else _LOCAL)
        if self.has_seconds and isinstance(kind, TimestampType):
            is_other &= ~text.rlike(_SECONDS)
        return is_other | text.rlike(_TOO_FINE) if self.is_inferred else is_other

    @property
    def _has_changes(self) -> bool:
        return has_changes(self.zone)

    def _is_unclear(self, local: "Column") -> "Column":
        """Return whether the zone does not have a local time, or has it twice.

        Of two instants Spark takes the first: the second one comes when the clocks were set back.
        """
        hours, utc = sf.expr("INTERVAL '6' HOUR"), self._utc(local)
        other = utc + (hours - (self._of_utc(utc + hours) - local))
        is_twice = (other != utc) & (self._of_utc(other) == local)
        return (self._of_utc(utc) != local) | is_twice

    def _utc(self, local: "Column") -> "Column":
        if self.is_of_session:
            return local.cast(TimestampType())
        return sf.convert_timezone(sf.lit(self.zone), sf.lit("UTC"), local)

    def _of_utc(self, utc: "Column") -> "Column":
        if self.is_of_session:
            return utc.cast(TimestampNTZType())
        return sf.convert_timezone(sf.lit("UTC"), sf.lit(self.zone), utc)

    def _pattern(self, kind: DataType) -> str:
        return pattern_given(self.options, kind)

    def _words(self) -> Mapping[str, float]:
        """Return the user's words for what is no number."""
        given = {"nanvalue": "nan", "positiveinf": "inf", "negativeinf": "-inf"}
        return {self.options[name]: float(it) for name, it in given.items() if name in self.options}

    def _with_words(self, text: "Column", value: "Column", kind: DataType) -> "Column":
        for word, number in self._words().items():
            value = sf.when(text == word, sf.lit(number).cast(kind)).otherwise(value)
        return value


def has_changes(zone: str) -> bool:
    """Return whether the clocks of a zone are changed at times."""
    return not _FIXED.fullmatch(zone)


def pattern_given(options: Mapping[str, str], kind: DataType) -> str:
    """Return the user's pattern for the dates or times of a type; empty: there is none."""
    return options.get(_PATTERNS.get(type(kind), ""), "")


def _by_pattern(text: "Column", kind: DataType, pattern: str) -> "Column":
    if isinstance(kind, DateType):
        return sf.try_to_date(text, pattern)
    time = sf.try_to_timestamp(text, sf.lit(pattern))
    if isinstance(kind, TimestampType):
        return time
    # There is no try_to_timestamp_ntz: try_to_timestamp tells whether the text is a timestamp.
    return sf.when(time.isNotNull(), sf.to_timestamp_ntz(text, sf.lit(pattern)))


def _instant(utc: "Column") -> "Column":
    """Return the instant of a local time in UTC.

    Spark would add an interval day by day on the clocks of the session's zone.
    """
    since = utc - sf.expr("timestamp_ntz'1970-01-01 00:00:00'")
    seconds = since.cast("interval second").cast("decimal(20, 6)")
    return sf.timestamp_micros((seconds * 1_000_000).cast("bigint"))
