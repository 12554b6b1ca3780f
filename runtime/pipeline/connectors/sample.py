"""The first rows as a config would have them read and transformed, by the code of a task.

The task reads from the beginning, whatever offsets there are, in batches that are as small as its
source can make them. Nothing is staged, committed or acknowledged.
"""

import json
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime
from datetime import time as time_of_day
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

import pyarrow as pa

from ....events.commits import Document, identity
from ..batches.counting import above_queries
from ..batches.frames import frame_of, rows_of, spark_schema_of
from ..batches.session import TaskSession
from ..spi.config import strip_prefix
from ..spi.context import Context
from ..spi.errors import Away, BadInput, SampleRefused
from ..spi.rows import ArrowTable, PartedRows, Rejects
from ..spi.source import BatchPlan, Limit, Source
from ..spi.transform import Transform
from ..transforms.catalogue import make_chain
from . import pipeline_keys as keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

MOST_ROWS: Final = 10
MOST_COLUMNS: Final = 500
LONGEST_VALUE: Final = 1_000
"""The most characters of a value; what follows is cut off."""
_LIMIT: Final = Limit(MOST_ROWS, 4 << 20, 16)
"""The most of one plan: a range that is larger, such as a file, is read all the same."""
_EMPTY_SECONDS: Final = 3.0
"""How long the source may have nothing to read: a file may have to come of age."""
_LOOK_SECONDS: Final = 0.1


class RunJob(Protocol):
    """Runs a job on a Spark session, which it starts if need be."""

    def __call__(self, job: "Callable[[SparkSession], T]") -> T:
        """Return what the job returns; raises as `Engine.run`."""
        ...


@dataclass(frozen=True, slots=True)
class SampledColumn:
    """A column, with its type as Spark writes it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class SampledRows:
    """Some rows, with all values as texts."""

    columns: Sequence[SampledColumn]
    rows: Sequence[Sequence[str | None]]


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows as they were read, and as the transforms make them; None: there are none."""

    before: SampledRows
    after: SampledRows | None = None
    warnings: tuple[str, ...] = ()
    """What is to be said of it, such as which bad rows were left out."""


def read_sample(config: Mapping[str, str], context: Context, run: RunJob) -> Sample:
    """Return the first rows of a valid config of `SparkPipeline`, with references resolved.

    Raises as the steps of a task do: `ConfigInvalid`, `NotReady`, `Away`, `BadInput`, Spark's; and
    `SampleRefused`.
    """
    context = replace(context, on_spark=run, by_arrow=False)
    types = keys.PipelineTypes.of(config)
    connector = types.source(context, config, keys.keys_of(config).parse(config))
    try:
        task_config = {**config, **connector.split_sample()}
    finally:
        connector.stop()
    chain = make_chain(task_config, context)
    settings = keys.task_keys_of(task_config).parse(task_config)
    session = TaskSession(strip_prefix(keys.SPARK_CONF, task_config))
    with closing(types.source.source(context, task_config, settings)) as source:
        plan = _plan_rows(source)
        if not plan.ranges:
            remark = f": {plan.remark}" if plan.remark else ""
            return Sample(SampledRows((), ()), warnings=(f"there is nothing to read{remark}",))
        if not chain and source.holds_tables and (held := source.table(plan.ranges)) is not None:
            return Sample(_describe(_first(held)))
        return run(lambda spark: _run_or_blame(session.beside(spark), source, plan, chain))


def _plan_rows(source: Source[Any]) -> BatchPlan[Any]:
    """Return the first plan with rows, as far as it tells that; an empty one if there is none."""
    offsets: dict[str, Document] = {}
    until = time.monotonic() + _EMPTY_SECONDS
    while True:
        plan = source.plan(offsets, _LIMIT)
        if plan.ranges and plan.rows:
            return plan
        for each in plan.advances:
            if each.end is not None:
                offsets[identity(each.partition)] = each.end
        if time.monotonic() > until:
            return replace(plan, ranges=())
        if not plan.ranges:
            time.sleep(_LOOK_SECONDS)


def _run_or_blame(
    spark: "SparkSession", source: Source[Any], plan: BatchPlan[Any], chain: Sequence[Transform]
) -> Sample:
    try:
        return _run(spark, source, plan, chain)
    except (Away, BadInput):
        raise
    except Exception as error:
        if blamed := source.blame(error):
            raise blamed from error
        raise


def _run(
    spark: "SparkSession", source: Source[Any], plan: BatchPlan[Any], chain: Sequence[Transform]
) -> Sample:
    rows = source.read(spark, plan.ranges)
    table = _held(rows.frame() if isinstance(rows, PartedRows) else rows)
    before, rejects = _describe(table), [*source.rejects()]
    if not chain:
        return Sample(before, warnings=_warn_of(rejects))
    frame = frame_of(spark, table)
    for each in chain:
        frame = each.apply(frame)
    after = _describe(_held(above_queries(frame)))
    for each in chain:
        each.conclude()
        rejects += each.rejects()
    return Sample(before, after, _warn_of(rejects))


def _held(rows: "DataFrame | ArrowTable") -> ArrowTable:
    """Return the first rows, in the memory of this process."""
    if isinstance(rows, pa.Table):  # pyright: ignore[reportUnknownMemberType]
        return _first(cast("ArrowTable", rows))
    return rows_of(cast("DataFrame", rows).limit(MOST_ROWS))


def _first(table: ArrowTable) -> ArrowTable:
    return cast("ArrowTable", cast("Any", table).slice(0, MOST_ROWS))


def _warn_of(rejects: Sequence[Rejects]) -> tuple[str, ...]:
    """Return a sentence for each kind of bad rows, with the reason of one."""
    warnings: list[str] = []
    for each in rejects:
        if count := each.count():
            reason = next((str(row[0]) for row in each.frame.select("reason").take(1)), "")
            warnings.append(f"{count} bad rows were left out, such as: {reason}")
    return tuple(warnings)


def _describe(table: ArrowTable) -> SampledRows:
    fields = spark_schema_of(table).fields
    if len(fields) > MOST_COLUMNS:
        raise SampleRefused(
            f"the rows have {len(fields)} columns, and a sample shows at most {MOST_COLUMNS}"
        )
    columns: list[list[Any]] = [each.to_pylist() for each in cast("Any", table).columns]
    return SampledRows(
        [SampledColumn(each.name, each.dataType.simpleString()) for each in fields],
        [[_text_of(value) for value in row] for row in zip(*columns, strict=True)],
    )


def _text_of(value: object) -> str | None:
    """Return a value as a text: bytes as base64, nested ones as JSON."""
    if value is None:
        return None
    plain = _plain(value)
    text = (
        plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, default=_plain)
    )
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _plain(value: Any) -> Any:  # noqa: ANN401  # what Arrow makes of any column
    """Return a value as JSON can have it."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime | date | time_of_day):
        return value.isoformat()
    if isinstance(value, bool | dict | list | tuple):
        return cast("Any", value)
    return str(value)
