"""An attempt of a task as an OpenLineage run; its job is the connector.

A run starts with the first published batch, when the datasets are known. A RUNNING event with the
totals follows at most once a minute, and a last event at the end: COMPLETE if a user stopped the
task, FAIL for an error, ABORT if the task moves or retries. The run of a killed process gets its
ABORT from the next run of the job on the same machine.

The columns of a batch come from Spark's analysed plan, which gives each attribute an expression id:
a written column is traced back through aliases (`Alias`) and generators (`Generate`) to attributes
of the frame that was read.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    set_producer,
)
from openlineage.client.facet_v2 import (
    DatasetFacet,
    OutputDatasetFacet,
    RunFacet,
    column_lineage_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from ....events.commits import Commit
from ..spi.context import Context
from ..spi.lineage import Dataset, Lineage, RunEnd
from ..spi.rows import ArrowTable
from .open_runs import OpenRuns
from .sending import EventSender

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EACH_S: Final = 60.0
"""The shortest time between RUNNING events."""
_PRODUCER: Final = "urn:fairlead"
_SPARK: Final = version("pyspark")
_NO_FACETS: Final[Mapping[str, RunFacet]] = {}


set_producer(_PRODUCER)


class RunLineage(Lineage):
    """Sends the events of one run."""

    def __init__(
        self,
        job: Dataset,
        open_sender: Callable[[], EventSender],
        open_runs: OpenRuns,
        datasets_of: Callable[[Commit], tuple[frozenset[Dataset], frozenset[Dataset]]],
        context: Context,
    ) -> None:
        """Configure a run of `job`; `datasets_of` returns a batch's inputs and outputs."""
        integration = job_type_job.JobTypeJobFacet(
            processingType="STREAMING", integration="FAIRLEAD", jobType="CONNECTOR"
        )
        self._job = Job(job.namespace, job.name, {"jobType": integration})
        self._open_sender = open_sender
        self._sender: EventSender | None = None
        """None: the run has not started."""
        self._open_runs = open_runs
        self._datasets_of = datasets_of
        self._hide, self._warn = context.hide, context.warn
        self._run_id = str(generate_new_uuid())
        self._columns: BatchColumns | None = None
        self._read: frozenset[Dataset] = frozenset()
        self._written: frozenset[Dataset] = frozenset()
        self._rows = self._bytes = self._files = 0
        """The totals written so far."""
        self._is_off = False
        """Whether an error has ended the reporting of this run."""
        self._sent_at = 0.0
        """The monotonic time of the last event."""

    def columns(self, before: "DataFrame | ArrowTable", after: "DataFrame | ArrowTable") -> None:
        """Note a batch's columns before and after the transforms; later batches are ignored."""
        if self._columns is None:
            try:
                self._columns = columns_of(before, after)
            except Exception as error:  # noqa: BLE001  # lineage must not fail the batch
                self._columns = BatchColumns({}, {}, None)
                self._warn(f"openlineage.url: events of this run have no columns: {error}")

    def batch(self, commit: Commit) -> None:
        """Note a batch that is committed and published."""
        if self._is_off:
            return
        try:
            self._add(commit)
        except Exception as error:  # noqa: BLE001  # a plugin's error must not fail the task
            self._is_off = True
            self._warn(f"openlineage.url: no more events are sent for this run: {error}")

    def _add(self, commit: Commit) -> None:
        read, written = self._datasets_of(commit)
        self._read |= read
        self._written |= written
        self._rows += commit.manifest.rows
        self._bytes += commit.manifest.bytes
        self._files += commit.manifest.files
        if self._sender is None:
            self._sender = self._open_sender()
            for run_id in self._open_runs.take_abandoned():
                self._sender.send(self._event(RunState.ABORT, Run(run_id)))
            self._open_runs.open(self._run_id)
            self._send(self._sender, RunState.START)
        elif time.monotonic() - self._sent_at >= _EACH_S:
            self._send(self._sender, RunState.RUNNING)

    def end(self, outcome: RunEnd, reason: str = "") -> None:
        """Send the end of the run, if it had started."""
        if self._sender is None:
            return
        failed = error_message_run.ErrorMessageRunFacet(self._hide(reason), "python")
        more: dict[str, RunFacet] = {"errorMessage": failed} if reason else {}
        self._send(self._sender, RunState(outcome.value), more)
        self._sender.close()
        self._open_runs.close(self._run_id)

    def _send(
        self, sender: EventSender, state: RunState, more: Mapping[str, RunFacet] = _NO_FACETS
    ) -> None:
        self._sent_at = time.monotonic()
        engine = processing_engine_run.ProcessingEngineRunFacet(_SPARK, "spark")
        facets: dict[str, RunFacet] = {"processing_engine": engine, **more}
        event = self._event(state, Run(self._run_id, facets))
        event.inputs = [self._input(each) for each in sorted(self._read)]
        event.outputs = [self._output(each) for each in sorted(self._written)]
        sender.send(event)

    def _event(self, state: RunState, run: Run) -> RunEvent:
        return RunEvent(
            eventTime=datetime.now(UTC).isoformat(),
            eventType=state,
            run=run,
            job=self._job,
            producer=_PRODUCER,
        )

    def _input(self, dataset: Dataset) -> InputDataset:
        facets: dict[str, DatasetFacet] = {}
        if self._columns is not None:
            facets["schema"] = _schema(self._columns.read)
        return InputDataset(*dataset, facets=facets)

    def _output(self, dataset: Dataset) -> OutputDataset:
        facets: dict[str, DatasetFacet] = {}
        if self._columns is not None:
            facets["schema"] = _schema(self._columns.written)
            if self._columns.made_of is not None:
                facets["columnLineage"] = self._column_lineage(self._columns.made_of)
        output_facets: dict[str, OutputDatasetFacet] = {}
        if len(self._written) == 1:  # the totals are not kept by dataset
            output_facets["outputStatistics"] = (
                output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                    self._rows, self._bytes, self._files
                )
            )
        return OutputDataset(*dataset, facets=facets, outputFacets=output_facets)

    def _column_lineage(
        self, made_of: Mapping[str, frozenset[str]]
    ) -> column_lineage_dataset.ColumnLineageDatasetFacet:
        fields = {
            name: column_lineage_dataset.Fields(
                [
                    column_lineage_dataset.InputField(dataset.namespace, dataset.name, column)
                    for dataset in sorted(self._read)
                    for column in sorted(columns)
                ]
            )
            for name, columns in made_of.items()
            if columns
        }
        return column_lineage_dataset.ColumnLineageDatasetFacet(fields)


def _schema(types: Mapping[str, str]) -> schema_dataset.SchemaDatasetFacet:
    fields = [schema_dataset.SchemaDatasetFacetFields(*each) for each in types.items()]
    return schema_dataset.SchemaDatasetFacet(fields)


class BatchColumns(NamedTuple):
    """The columns of a batch that were read and written, by name with their types.

    `made_of` maps each written column to the read columns that it depends on; None: unknown.
    """

    read: Mapping[str, str]
    written: Mapping[str, str]
    made_of: Mapping[str, frozenset[str]] | None


def columns_of(before: "DataFrame | ArrowTable", after: "DataFrame | ArrowTable") -> BatchColumns:
    """Return the columns of a batch from its rows before and after the transforms."""
    read, written = _types(before), _types(after)
    if before is after:
        return BatchColumns(read, written, {name: frozenset({name}) for name in written})
    plans = _plan(before), _plan(after)
    made_of = made_of_plans(plans[0], plans[1]) if all(plans) else None
    return BatchColumns(read, written, made_of)


def made_of_plans(before: str, after: str) -> Mapping[str, frozenset[str]]:
    """Return the columns of plan `before` that each column of plan `after` depends on.

    Both are Spark's JSON, with a projection of all columns at the root. If a query reads a frame
    twice, Spark gives the second read new expression ids: it is recognised by its column names.
    """
    nodes = json.loads(after)
    read = _named(json.loads(before)[0]["projectList"])
    names = dict(read)
    derived: dict[int, set[int]] = {}
    for node in nodes:
        output = _named(node.get("output") or ())
        if [name for _, name in output] == [name for _, name in read]:
            names.update(output)
        for number, tree in _definitions(node):
            derived.setdefault(number, set()).update(_references(tree))
    written = _named(nodes[0]["projectList"])
    return {name: frozenset(_origins(number, derived, names)) for number, name in written}


def _origins(number: int, derived: Mapping[int, set[int]], names: Mapping[int, str]) -> set[str]:
    origins, visited, waiting = set[str](), set[int](), [number]
    while waiting:
        each = waiting.pop()
        if each in names:
            origins.add(names[each])
        elif each not in visited:
            visited.add(each)
            waiting += derived.get(each, ())
    return origins


def _definitions(node: Any) -> Iterator[tuple[int, Any]]:  # noqa: ANN401  # of JSON, as below
    """Yield the attributes that a plan node defines: expression id and expression."""
    for number, _ in _named(node.get("generatorOutput") or ()):
        yield number, [node["generator"]]
    for tree in _trees(node):
        if _kind(tree[0]) == "Alias":
            yield _number(tree[0]), [tree[1:]]


def _trees(value: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the expression trees in a part of a plan, each a list of nodes in preorder."""
    if isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from _trees(each)
    elif isinstance(value, list):
        if value and isinstance(value[0], dict) and "num-children" in value[0]:
            yield value
        for each in cast("Sequence[Any]", value):
            yield from _trees(each)


def _references(value: Any) -> Iterator[int]:  # noqa: ANN401
    for tree in _trees(value):
        yield from (_number(node) for node in tree if _kind(node) == "AttributeReference")


def _named(trees: Any) -> list[tuple[int, str]]:  # noqa: ANN401
    """Return the expression ids and names of attributes."""
    return [(_number(tree[0]), str(tree[0]["name"])) for tree in trees if "exprId" in tree[0]]


def _number(node: Any) -> int:  # noqa: ANN401
    return int(node["exprId"]["id"])


def _kind(node: Any) -> str:  # noqa: ANN401
    return str(node.get("class", "")).rpartition(".")[2]


def _types(rows: "DataFrame | ArrowTable") -> Mapping[str, str]:
    schema: Any = cast("Any", rows).schema
    if hasattr(schema, "fields"):
        return {each.name: each.dataType.simpleString() for each in schema.fields}
    return {each.name: str(each.type) for each in schema}


def _plan(rows: "DataFrame | ArrowTable") -> str:
    """Return a frame's analysed plan as JSON; empty for Spark Connect and for Arrow tables."""
    select: Any = getattr(rows, "select", None)
    frame = select("*") if select is not None and hasattr(rows, "_jdf") else None
    return str(frame._jdf.queryExecution().analyzed().toJSON()) if frame is not None else ""  # noqa: SLF001
