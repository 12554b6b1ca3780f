"""A worker's actor without a process: in which order it carries out what its core wants."""

from threading import Thread
from typing import Any, cast

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.node.worker.actor import ReportsWait, WorkerActor
from fairlead.runtime.node.worker.core.contract import StartResource
from fairlead.runtime.pipeline.tasks.reports import StatusChanged

END_MS = 1_000


class Witness:
    """Stands for the core, the runner and the watchdog; writes down what they are told."""

    end_ms = END_MS

    def __init__(self) -> None:
        self.told: list[str] = []

    def until(self, end_ms: int | None) -> None:
        """As the watchdog."""
        self.told.append(f"ends at {end_ms}")

    def start(self, launch: Launch) -> None:
        """As the runner."""
        self.told.append(f"starts {launch.resource}")


class WatchedWorker(WorkerActor):
    """A worker of which all parts are a witness."""

    def __init__(self, witness: Witness) -> None:
        super().__init__()
        self._core = self._runner = self._watchdog = cast("Any", witness)

    def start(self, launch: Launch) -> None:
        """Carry out one start."""
        self._obey([StartResource(launch)])


def test_the_watchdog_knows_the_deadline_before_anything_starts_under_it() -> None:
    witness = Witness()
    WatchedWorker(witness).start(Launch(Resource("A", 0), Token(1, 1), {}, {}))
    assert witness.told == [f"ends at {END_MS}", "starts A-0"]


class PostingWorker(WorkerActor):
    """A worker that is not up; it writes down what it posts to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.posted: list[object] = []

    def post(self, message: object) -> None:
        """Keep the message."""
        self.posted.append(message)

    def report(self, *states: RunState) -> None:
        """Report states as a task does: from a thread of its own."""
        reports = [StatusChanged(Resource("A", 0), Token(1, 1), each) for each in states]
        thread = Thread(target=lambda: [*map(self._report, reports)])
        thread.start()
        thread.join()


def test_many_reports_are_one_message_so_that_none_of_the_group_waits_behind_them() -> None:
    worker, anybody = PostingWorker(), cast("Any", None)
    worker.report(RunState.RUNNING, RunState.FAILED)
    worker.report(RunState.RESTARTING)
    assert [type(each) for each in worker.posted] == [ReportsWait]
    worker.receive(worker.posted[0], anybody)
    worker.report(RunState.RUNNING)
    assert len(worker.posted) == 2, "what comes later is told again"
