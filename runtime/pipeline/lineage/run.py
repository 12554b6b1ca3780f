"""An attempt of a task as an OpenLineage run; its job is the connector.

A run starts with the first published batch, when the datasets are known. A RUNNING event with the
totals follows at most once a minute, and a last event at the end: COMPLETE if a user stopped the
task, FAIL for an error, ABORT if the task moves or retries. The run of a killed process gets its
ABORT from the next run of the job on the same machine.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

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
from .columns import BatchColumns, columns_of
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
