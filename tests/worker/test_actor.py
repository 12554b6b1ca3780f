"""A worker's actor without a process: in which order it carries out what its core wants."""

from typing import Any, cast

from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.node.worker.actor import WorkerActor
from fairlead.runtime.node.worker.core.contract import StartResource

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
