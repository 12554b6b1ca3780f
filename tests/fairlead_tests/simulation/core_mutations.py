# pyright: basic
"""Ways to switch rules of a worker's core off, one at a time; see `mutations.py`."""

from typing import Any

from fairlead.actors.messages.computing import InstallReply
from fairlead.runtime.node.worker.core.commit_queue import CommitQueue
from fairlead.runtime.node.worker.core.computing import Computing
from fairlead.runtime.node.worker.core.contract import StartResource
from fairlead.runtime.node.worker.core.starts import Starts
from fairlead_tests.simulation.mutations import Patch


def forget_what_was_carried(patch: Patch) -> None:
    def lose(self: CommitQueue, _: str = "") -> list[Any]:
        self._carried = None
        return []

    patch.setattr(CommitQueue, "lose", lose)


def start_what_still_runs(patch: Patch) -> None:
    original = Starts._turn_to

    def turn_to(self: Starts, launch: Any, now_ms: int) -> Any:
        running = self._running.get(launch.resource)
        if running is None or running == launch:
            return original(self, launch, now_ms)
        self._running[launch.resource] = launch
        return StartResource(launch)

    patch.setattr(Starts, "_turn_to", turn_to)


def start_what_may_run_as_it_was(patch: Patch) -> None:
    """Begin with the launch of before what begins again after its end."""
    original = Starts._turn_to
    first: dict[tuple[Starts, Any], Any] = {}

    def turn_to(self: Starts, launch: Any, now_ms: int) -> Any:
        return original(self, first.setdefault((self, launch.resource), launch), now_ms)

    patch.setattr(Starts, "_turn_to", turn_to)


def take_any_answer_to_an_install(patch: Patch) -> None:
    original = Computing.take_install_reply

    def installed(self: Computing, reply: InstallReply, now_ms: int) -> None:
        if self._result is None:
            self._reset()
        else:
            original(self, reply, now_ms)

    patch.setattr(Computing, "take_install_reply", installed)
