# pyright: basic, reportCallIssue=false, reportOptionalCall=false
"""The transform `dedupe`: keeps one row of each key in a batch.

The choice is deterministic: the last or the first in the order of the rows, which is that of lines
in a file and of files by name, or of records in a partition; or by columns, with ties in that
order. Rows keep their order. It does not compare rows of different batches: that needs the sink
(`sink.insert.mode=upsert`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Window
from pyspark.sql import functions as sf

from ..engines.sessions import plan_of
from ..engines.spelling import quoted
from ..spi.config import ConfigDef, ConfigInvalid, Importance, ParsedConfig
from ..spi.context import Context
from ..spi.keys.kinds import choice_key, list_key
from ..spi.transform import Transform
from .connect.fields import distinct, some_distinct
from .connect.record_transform import BUILT_IN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PLACE: Final = "_fairlead_place"
_RANK: Final = "_fairlead_rank"
_SHUFFLE: Final = re.compile(r"(?<!Broadcast)Exchange\b")
"""Matches a plan node that loses the order of rows."""


class Dedupe(Transform):
    """Keeps the last, or the first, row of each key in a batch."""

    version: ClassVar[str] = BUILT_IN
    keeps_rows: ClassVar[bool] = True

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the key, and which row of a key stays."""
        return ConfigDef(
            (
                list_key(
                    "fields",
                    "The columns that make a row's key. Two nulls are equal. `_key` is the key of "
                    "a record from Kafka.",
                    importance=Importance.HIGH,
                    required=True,
                    validator=some_distinct,
                ),
                choice_key(
                    "keep",
                    "Which of the rows of a batch that have the same key stays, in their order: "
                    "lines of a file, files by name, records of a partition.",
                    "last",
                    "first",
                ),
                list_key(
                    "order.by",
                    "Columns that say which row is the last: that with the greatest values, and "
                    "among equals the one that comes last. A null is neither last nor first.",
                    validator=distinct,
                ),
            )
        )

    @classmethod
    def queries_of(cls, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return queries, by key, that Spark refuses for missing or unsortable columns."""
        lists = {key: settings.get(key, "").split(",") for key in ("fields", "order.by")}
        names = {
            key: ", ".join(quoted(each.strip()) for each in columns)
            for key, columns in lists.items()
            if any(map(str.strip, columns))
        }
        return {key: f"SELECT {each} FROM input ORDER BY {each}" for key, each in names.items()}  # noqa: S608  # all quoted

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._fields = settings.items("fields")
        self._order = settings.items("order.by")
        self._keeps_last = settings.text("keep") == "last"

    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Return the kept rows; raises `ConfigInvalid` if the rows have no order."""
        there = {name.lower() for name in frame.columns}
        for name in (*self._fields, *self._order):
            if name.lower() not in there:
                has = ", ".join(frame.columns)
                raise ConfigInvalid(f"dedupe: the rows have no column {name}; they have {has}")
        placed = self._placed(frame).repartition(1)
        rows = Window.partitionBy(*_columns(self._fields)).orderBy(
            *map(self._ranked, (*_columns(self._order), sf.col(_PLACE)))
        )
        chosen = placed.withColumn(_RANK, sf.row_number().over(rows)).where(f"{_RANK} = 1")
        return chosen.sortWithinPartitions(_PLACE).drop(_PLACE, _RANK)

    def _placed(self, frame: "DataFrame") -> "DataFrame":
        """Add the position of each row, which is the same in each read of the batch."""
        if not _is_shuffled(frame):
            place = sf.struct(sf.input_file_name(), sf.monotonically_increasing_id())
            try:
                return frame.withColumn(_PLACE, place)
            except AnalysisException:
                pass  # after a join there is no file
        if not self._order:
            raise ConfigInvalid(
                "dedupe: what stands before it groups, joins or sorts, so that rows come in any "
                "order: put it before that, or give order.by"
            )
        return frame.withColumn(_PLACE, sf.to_json(sf.struct(*_columns(frame.columns))))

    def _ranked(self, column: "Column") -> "Column":
        return column.desc_nulls_last() if self._keeps_last else column.asc_nulls_last()


def _columns(names: Sequence[str]) -> "list[Column]":
    return [sf.col(quoted(name)) for name in names]


def _is_shuffled(frame: "DataFrame") -> bool:
    return _SHUFFLE.search(plan_of(frame)) is not None
