"""The transform `expect`: SQL conditions that each row must fulfil.

A row violates a rule if its condition is not true, so null is a violation; `on.violation` says what
happens to such rows. An Observation counts violations in the batch's own job, so a rule needs no
additional job.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql import functions as sf

from ....actors.settings import not_blank
from ..batches.counting import RowAggregates
from ..batches.row_files import file_of_row
from ..engines.spelling import quoted
from ..spi.config import ConfigDef, Importance, ParsedConfig, Width, strip_prefix
from ..spi.context import Context
from ..spi.errors import BadInput
from ..spi.keys.kinds import choice_key, text_key
from ..spi.rows import RECORD_PLACE, Rejects
from ..spi.transform import Transform
from .connect.record_transform import BUILT_IN
from .sql import CheckedQuery

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PREFIX: Final = "expect."
_FLAG: Final = "__expect_{}"
_ROWS: Final = "rows"
_KEY: Final = "_key"
"""The column of a record's key, if the source has one."""
_BAD: Final = "bad"
DEAD_LETTER: Final = "dead-letter"
_TIMES: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's own formats, with microseconds: it writes milliseconds."""
_OUTCOMES: Final = ("fail", DEAD_LETTER, "drop", "warn")


class Expectations(Transform):
    """Counts the rows that violate a rule; fails the batch, drops them, or only warns."""

    version: ClassVar[str] = BUILT_IN
    keeps_rows: ClassVar[bool] = True

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the rules, and the handling of violations."""
        on_violation = choice_key(
            "on.violation",
            "What happens if rows violate a rule: `fail` ends the task with a count, and the batch "
            "does not count; `dead-letter` makes them dead letters; `drop` leaves the rows out, "
            "`warn` keeps them, and both tell how many there were.",
            *_OUTCOMES,
            importance=Importance.HIGH,
        )
        rule = text_key(
            f"{_PREFIX}<name>",
            "A rule of this name: a condition that each row fulfils, `amount > 0`.",
            importance=Importance.HIGH,
            width=Width.LONG,
            validator=not_blank,
        )
        return ConfigDef((on_violation,), families=(rule,))

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Require at least one rule."""
        if any(key.startswith(_PREFIX) for key in settings.values):
            return {}
        return {"on.violation": f"there is no rule: give one as {_PREFIX}<name>"}

    @classmethod
    def queries_of(cls, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return each rule as a query, by its key."""
        rules = strip_prefix(_PREFIX, settings)
        return {f"{_PREFIX}{name}": _flagging([rule]) for name, rule in rules.items()}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        texts = {key: settings.text(key) for key in settings.values}
        self._rules = strip_prefix(_PREFIX, texts)
        self._query = CheckedQuery(_flagging(self._rules.values()), context)
        self._on_violation = settings.text("on.violation")
        self._warn = context.warn
        self._aggregates: RowAggregates | None = None
        """Counts the last batch; None: there was none."""
        self._bad: DataFrame | None = None
        """The dead letters of the last batch."""

    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Return the kept rows, with the count of violations added to their plan."""
        columns = [quoted(name) for name in frame.columns]
        flagged = self._query.over(frame)
        flags = [sf.col(quoted(_FLAG.format(number))) for number in range(len(self._rules))]
        aggregates = self._aggregates = RowAggregates()
        counts = [_violated(flag).alias(str(number)) for number, flag in enumerate(flags)]
        is_bad = reduce(lambda one, other: one | other, (~flag for flag in flags))
        rows = sf.count(sf.lit(1)).alias(_ROWS)
        bad = sf.count_if(is_bad).alias(_BAD)
        flagged = aggregates.on(flagged, rows, bad, *counts)
        if self._on_violation == DEAD_LETTER:
            self._bad = self._letters(flagged.where(is_bad), columns)
        if self._on_violation in {DEAD_LETTER, "drop"}:
            flagged = flagged.where(~is_bad)
        return flagged.select(*columns)

    def _letters(self, frame: "DataFrame", columns: Sequence[str]) -> "DataFrame":
        """Return violating rows as dead letters."""
        violations = [
            sf.when(~sf.col(quoted(_FLAG.format(number))), f"violates {name} ({rule})")
            for number, (name, rule) in enumerate(self._rules.items())
        ]
        is_record = dict(frame.dtypes).get(_KEY) in {"string", "binary"}
        key = [sf.col(_KEY).cast("binary").alias("key")] if is_record else []
        return frame.select(
            _position(columns).alias("position"),
            sf.concat_ws("; ", *violations).alias("reason"),
            sf.to_json(sf.struct(*columns), _TIMES).alias("raw"),
            sf.lit("row").alias("format"),
            *key,
        )

    def rejects(self) -> Sequence[Rejects]:
        """Return the rows of the last batch that become dead letters."""
        bad, aggregates = self._bad, self._aggregates
        if bad is None or aggregates is None:
            return ()
        return (Rejects(bad, lambda: int(aggregates.values.get(_BAD, 0))),)

    def conclude(self) -> None:
        """Warn about violations by rule; raises `BadInput` if the batch must not be committed."""
        if self._aggregates is None:
            return
        counts = self._aggregates.values
        violations = [
            f"{count} of {counts[_ROWS]} rows violate {name} ({rule})"
            for number, (name, rule) in enumerate(self._rules.items())
            if (count := counts.get(str(number)))
        ]
        if violations and self._on_violation == "fail":
            raise BadInput("; ".join(violations))
        if violations and self._on_violation != DEAD_LETTER:
            became = "were dropped" if self._on_violation == "drop" else "were kept"
            self._warn(f"{'; '.join(violations)}: they {became}")


def _position(columns: Sequence[str]) -> "Column":
    """Return the place of a record, if rows have it; else the file that they come directly from."""
    if all(column in columns for column in map(quoted, RECORD_PLACE.values())):
        places = ((sf.lit(name), sf.col(at).cast("string")) for name, at in RECORD_PLACE.items())
        return sf.create_map(*(part for place in places for part in place))
    place = sf.create_map(sf.lit("file"), file_of_row())
    return sf.map_filter(place, lambda _, at: at.isNotNull())


def _flagging(rules: Iterable[str]) -> str:
    """Return the query that adds a flag for each rule to each row; false: violated."""
    flags = ", ".join(
        f"coalesce((\n{rule}\n), false) AS {quoted(_FLAG.format(number))}"
        for number, rule in enumerate(rules)
    )
    return f"SELECT *, {flags} FROM input"  # noqa: S608  # the user's own SQL, on his data


def _violated(flag: "Column") -> "Column":
    return sf.count_if(~flag)
