# pyright: basic
"""`source.type=jdbc`: tables, read whole or incrementally by a column of growing integers.

Numbers are unique, so a range has at most as many rows as numbers: batches are cut without ORDER
BY, which would read all remaining rows for each batch, and without LIMIT, whose syntax differs
between databases. Where few of the numbers have a row, as with ids that hold a time, rows are
counted to find a wider range.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from pyspark.sql import functions as sf

from .....events.commits import Advance, Document, identity
from ...spi.config import Definition, ParsedConfig, has_reference
from ...spi.connector import Delivery, Promise
from ...spi.context import Context, ExternalAccess, ProbeResult, SparkJob
from ...spi.errors import BadInput, OffsetRefused, SourceAway
from ...spi.lineage import Dataset
from ...spi.offsets import check_members
from ...spi.source import BatchPlan, Limit, Source
from ...spi.types import SourceType
from . import keys
from .connecting import dataset_in, missing_driver_error, options, probe_url, why_away

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TOPIC: Final = "_topic"
_NUMBER: Final = "incrementing"
"""The member of offsets with the number, as in Connect JDBC."""
_QUERY: Final = "query"
"""The name of a query in source partitions, as in Connect JDBC."""
_ROW_BYTES: Final = 64
"""The assumed size of a row."""
_ROWS_EACH: Final = 50_000
"""The rows for one more parallel connection, up to one for each core."""
_STEP: Final = 4
"""How much wider or narrower the next range is that is tried."""


class TableRange(NamedTuple):
    """Rows of a table with numbers in (above, last]; None: without that limit."""

    table: str
    above: int | None = None
    last: int | None = None
    rows: int = 0
    """How many rows it may have, where both limits are known."""


class JdbcSource(Source[TableRange]):
    """Reads the tables of one task, a table in each batch."""

    def __init__(
        self,
        options: Mapping[str, str],
        tables: Mapping[str, str],
        column: str,
        prefix: str,
        poll_s: float,
        on_spark: Callable[[SparkJob], Any],
    ) -> None:
        """Store Spark's options, and the tables by name with their FROM expressions.

        Without a column of numbers all rows are read once.
        """
        self._options = options
        self._tables = tables
        self._column = column
        self._prefix = prefix
        self._poll_s = poll_s
        self._on_spark = on_spark
        self._look_at: dict[str, float] = {}
        """The monotonic time of the next poll of an idle table."""
        self._widths: dict[str, int] = {}
        """How many numbers the last range of a table had room for."""
        self._next = 0
        """The table to poll first, in turn."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[TableRange]:
        """Plan the next rows of the next table that has some."""
        names = [*self._tables]
        now = time.monotonic()
        for turn in range(len(names)):
            name = names[(self._next + turn) % len(names)]
            if self._look_at.get(name, 0.0) > now:
                continue
            start = offsets.get(identity({"table": name}))
            found = self._in_numbers(name, start, limit) if self._column else _all(name, start)
            if found is not None:
                self._next += turn + 1
                return found
            self._look_at[name] = now + self._poll_s
        return BatchPlan()

    def read(self, spark: "SparkSession", ranges: Sequence[TableRange]) -> "DataFrame":
        """Return the rows of a range, with their topic; raises `BadInput` for a column of its name.

        Spark tells names apart by their letters alone, not by their case.
        """
        (part,) = ranges
        query = f"SELECT * FROM {self._rows_of(part)}"  # noqa: S608  # by whoever may ask anything
        options = {**self._options, "dbtable": f"({query}) fairlead_rows"}
        if part.last is not None and self._column.isidentifier():
            readers = min(_cores(spark), 1 + part.rows // _ROWS_EACH)
            if readers > 1:
                options |= {
                    "partitionColumn": self._column,
                    "lowerBound": str(part.above),
                    "upperBound": str(part.last),
                    "numPartitions": str(readers),
                }
        frame = spark.read.format("jdbc").options(**options).load()
        if taken := [each for each in frame.columns if each.lower() == _TOPIC]:
            raise BadInput(
                f"{part.table} has a column {taken[0]}, by which rows tell their topic, so that "
                f"its values would be lost: read it by {keys.QUERY}, under another name"
            )
        return frame.withColumn(_TOPIC, sf.lit(f"{self._prefix}{part.table}"))

    def blame(self, error: Exception) -> BadInput | None:
        """Raise `SourceAway` for a connection error; other errors are unknown."""
        if missing := missing_driver_error("source", error):
            raise missing from error
        if why := why_away(error):
            raise SourceAway(why) from error
        return None

    def _in_numbers(
        self, name: str, start: Document | None, limit: Limit
    ) -> BatchPlan[TableRange] | None:
        read = start.get(_NUMBER) if start else None
        above = int(read) if isinstance(read, int | str) else None
        bounds = self._bounds(name, above)
        if bounds is None:
            return None
        first, highest = bounds
        most = max(1, min(limit.rows, limit.bytes // _ROW_BYTES))
        last, rows = self._fitting(name, bounds, most, has_gap=above != first - 1)
        advance = Advance({"table": name}, start, {_NUMBER: last})
        part = TableRange(name, first - 1 if above is None else above, last, rows)
        return BatchPlan((part,), (advance,), _ROW_BYTES * rows, backlog=last < highest)

    def _fitting(
        self, name: str, bounds: tuple[int, int], most: int, *, has_gap: bool
    ) -> tuple[int, int]:
        """Return the last number of a range with at most `most` rows, and how many it may have.

        Nothing is counted if there are no more numbers than that, or if no wider range is known and
        the numbers go on after the last range without a gap: few of them are likely to be free.
        """
        first, highest = bounds
        if highest - first < most:
            return highest, highest - first + 1
        width = max(most, self._widths.get(name, most))
        if width == most and not has_gap:
            return first + most - 1, most
        rows = self._count(name, bounds, width)
        while rows > most and width > most:
            width = max(most, width // _STEP)
            rows = self._count(name, bounds, width)
        while first + width <= highest and rows * _STEP <= most:
            wider = self._count(name, bounds, width * _STEP)
            if wider > most:
                break
            width, rows = width * _STEP, wider
        self._widths[name] = width
        return min(highest, first + width - 1), rows

    def _count(self, name: str, bounds: tuple[int, int], width: int) -> int:
        """Return how many rows have one of so many numbers from the lowest on."""
        first, highest = bounds
        last = min(highest, first + width - 1)
        (rows,) = self._ask("COUNT(*) AS fairlead_rows", TableRange(name, first - 1, last))
        return int(rows)

    def _bounds(self, name: str, above: int | None) -> tuple[int, int] | None:
        """Return the lowest and the highest number above a number; None: there is none."""
        what = f"MIN({self._column}) AS fairlead_first, MAX({self._column}) AS fairlead_last"
        first, last = self._ask(what, TableRange(name, above))
        if first is None or last is None:
            return None
        if not (_is_whole(first) and _is_whole(last)):
            raise BadInput(f"{name}: {self._column} has {first}: it must hold whole numbers")
        return int(first), int(last)

    def _ask(self, what: str, part: TableRange) -> Any:  # noqa: ANN401  # a Spark row
        """Return the row that a query finds about a range."""
        query = f"SELECT {what} FROM {self._rows_of(part)}"  # noqa: S608  # as above

        def ask(spark: "SparkSession") -> Any:  # noqa: ANN401  # as above
            told = {**self._options, "dbtable": f"({query}) fairlead_asked"}
            return spark.read.format("jdbc").options(**told).load().collect()[0]

        try:
            return self._on_spark(ask)
        except Exception as error:
            self.blame(error)
            raise

    def _rows_of(self, part: TableRange) -> str:
        limits = [f"{self._column} > {part.above}"] if part.above is not None else []
        limits += [f"{self._column} <= {part.last}"] if part.last is not None else []
        where = f" WHERE {' AND '.join(limits)}" if limits else ""
        return f"{self._tables[part.table]}{where}"


def _is_whole(value: Any) -> bool:  # noqa: ANN401  # whatever the database has
    try:
        return bool(int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


def _all(name: str, start: Document | None) -> BatchPlan[TableRange] | None:
    if start is not None:
        return None
    advance = Advance({"table": name}, None, {"done": True})
    return BatchPlan((TableRange(name),), (advance,), 1)


def _cores(spark: "SparkSession") -> int:
    context = getattr(spark, "sparkContext", None) if hasattr(spark, "_jsparkSession") else None
    return context.defaultParallelism if context is not None else 1


class JdbcSourceType(SourceType):
    """Tables that Spark reads by a JDBC driver, with the guarantee of Connect JDBC."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.BEST_EFFORT

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the definitions of its keys."""
        return keys.SOURCE

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the definition of a task's share."""
        return keys.SOURCE_TASK

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of keys that do not fit together, by the key to change."""
        return keys.complaints("source", config)

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return best effort, and why."""
        if config.get(keys.MODE) == keys.BULK:
            reason = f"{keys.MODE}={keys.BULK} may miss or double rows that change while it reads"
        else:
            reason = (
                f"{keys.MODE}={keys.BY_NUMBER} does not see rows that commit behind a higher one"
            )
        return Promise(cls.delivery, (reason,))

    @classmethod
    def datasets(
        cls, config: Mapping[str, str], partitions: Iterable[Document]
    ) -> Collection[Dataset]:
        """Return the tables."""
        return [dataset_in("source", config, str(each.get("table"))) for each in partitions]

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check that the node allows the URL."""
        return probe_url("source", config, outside.reach)

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Check that an offset is the number of a table that is read, or marks it as read."""
        check_members("partition", partition, {"table": str})
        if offset is None:
            return
        is_bulk = config.get(keys.MODE) == keys.BULK
        check_members("offset", offset, {"done": bool} if is_bulk else {"incrementing": int})
        tables = config.get(keys.TABLES) or _QUERY
        known = [each.strip() for each in tables.split(",")]
        if not has_reference(tables) and partition["table"] not in known:
            raise OffsetRefused(f"partition.table: this connector reads {', '.join(known)}")

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign the tables in turn."""
        names = self.settings.items(keys.TABLES) or (_QUERY,)
        count = min(max_tasks, len(names))
        return [{keys.SHARE: json.dumps(names[each::count])} for each in range(count)]

    def split_sample(self) -> Mapping[str, str]:
        """Return the keys of one task for all tables."""
        return self.split(1)[0]

    @classmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> JdbcSource:
        """Make the source of one task."""
        query = settings.text(keys.QUERY)
        names: list[str] = json.loads(settings.text(keys.SHARE))
        tables = {each: f"({query}) fairlead_query" if query else each for each in names}
        return JdbcSource(
            options("source", config, context.reach),
            tables,
            settings.text(keys.INCREMENTING),
            settings.text(keys.TOPIC_PREFIX),
            settings.number(keys.POLL_MS) / 1000,
            context.on_spark,
        )
