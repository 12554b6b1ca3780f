"""A listener whose callbacks block until the test continues them, on the real thread."""

from queue import Queue

from fairlead.actors.worker.callbacks import Callbacks
from fairlead.actors.worker.instructions import Instruction
from fairlead.events.model import Resources
from fairlead_tests.membership.driver import MemberDriver, spelled

WAIT_SECONDS = 60.0
"""The time limit of waits, which a passing test never reaches."""


class SlowListener:
    """Reports the start of each callback, which ends by `finish`, with or without an error."""

    def __init__(self) -> None:
        self._begun: Queue[str] = Queue()
        self._orders: Queue[Exception | None] = Queue()

    def on_assigned(self, resources: Resources) -> None:
        self._take("assigned", resources)

    def on_revoked(self, resources: Resources) -> None:
        self._take("revoked", resources)

    def on_lost(self, resources: Resources) -> None:
        self._take("lost", resources)

    def begun(self) -> str:
        """Wait for the next callback to begin."""
        return self._begun.get(timeout=WAIT_SECONDS)

    def is_idle(self) -> bool:
        """Return whether no further callback has started."""
        return self._begun.empty()

    def finish(self, error: Exception | None = None) -> None:
        """Let the waiting or the next callback end."""
        self._orders.put(error)

    def _take(self, name: str, resources: Resources) -> None:
        self._begun.put(f"{name} {spelled(resources)}")
        error = self._orders.get(timeout=WAIT_SECONDS)
        if error is not None:
            raise error


class Listening:
    """A member in virtual time, with a listener on a real thread."""

    def __init__(self, driver: MemberDriver | None = None) -> None:
        self.driver = driver or MemberDriver()
        self.listener = SlowListener()
        self._ended: Queue[None] = Queue()
        self.callbacks = Callbacks(self.listener, lambda: self._ended.put(None))
        self.left: list[Instruction] = []
        """The instructions that are not for the listener."""

    def obey(self, instructions: list[Instruction]) -> None:
        """Pass instructions to the listener, and report its finished callbacks to the member."""
        self.left += [each for each in instructions if not self.callbacks.submit(each)]
        self.hear()

    def hear(self) -> None:
        """Report finished callbacks to the member."""
        freed = self.callbacks.released()
        if freed:
            self.obey(self.driver.stopped(spelled(freed) or ""))

    def wait(self) -> None:
        """Wait for a finished callback, and report it to the member."""
        self._ended.get(timeout=WAIT_SECONDS)
        self.hear()

    def begin(self, text: str) -> None:
        """Join, get these grants, and call the listener."""
        self.driver.join()
        self.driver.answer("")
        self.obey(self.driver.answer(text))
        self.driver.answer()
        if text:
            assert self.listener.begun() == f"assigned {text}"
            self.listener.finish()
