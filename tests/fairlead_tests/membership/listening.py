"""A listener whose callbacks wait until the test lets them go on, on the real thread."""

from queue import Queue

from fairlead.actors.worker.callbacks import Callbacks
from fairlead.actors.worker.instructions import Instruction
from fairlead.events.model import Resources
from fairlead_tests.membership.driver import MemberDriver, spelled

WAIT_SECONDS = 20.0
"""How long a test waits for what must come; a test that works waits for next to nothing."""


class SlowListener:
    """Says when a callback begins; each ends by `finish`, well or with an error."""

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
        """Tell whether no callback has begun that was not asked about."""
        return self._begun.empty()

    def finish(self, error: Exception | None = None) -> None:
        """Let the callback that waits, or the next one, end."""
        self._orders.put(error)

    def _take(self, name: str, resources: Resources) -> None:
        self._begun.put(f"{name} {spelled(resources)}")
        error = self._orders.get(timeout=WAIT_SECONDS)
        if error is not None:
            raise error


class Listening:
    """A member in virtual time with a listener that it is run for, on a real thread."""

    def __init__(self, driver: MemberDriver | None = None) -> None:
        self.driver = driver or MemberDriver()
        self.listener = SlowListener()
        self._ended: Queue[None] = Queue()
        self.callbacks = Callbacks(self.listener, lambda: self._ended.put(None))
        self.left: list[Instruction] = []
        """What was not for the listener."""

    def obey(self, instructions: list[Instruction]) -> None:
        """Hand on what is for the listener, and tell the member what has ended by that."""
        self.left += [each for each in instructions if not self.callbacks.take(each)]
        self.hear()

    def hear(self) -> None:
        """Tell the member what has ended."""
        freed = self.callbacks.released()
        if freed:
            self.obey(self.driver.stopped(spelled(freed) or ""))

    def wait(self) -> None:
        """Wait until something has ended, and tell the member."""
        self._ended.get(timeout=WAIT_SECONDS)
        self.hear()

    def begin(self, text: str) -> None:
        """Join, be granted these, and have the listener told."""
        self.driver.join()
        self.driver.answer("")
        self.obey(self.driver.answer(text))
        self.driver.answer()
        if text:
            assert self.listener.begun() == f"assigned {text}"
            self.listener.finish()
