"""The two ways to ask a thread to end: after what it is doing, or now."""

from threading import Event


class Halt:
    """Flags that one thread looks at and others raise; they are never lowered."""

    def __init__(self) -> None:
        self._drain = Event()
        self._cancel = Event()

    @property
    def draining(self) -> bool:
        """Whether to end once the current batch is done."""
        return self._drain.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether to end now, and to commit nothing more."""
        return self._cancel.is_set()

    def drain(self) -> None:
        """Ask for an end after the current batch."""
        self._drain.set()

    def cancel(self) -> None:
        """Ask for an end now."""
        self._cancel.set()
        self._drain.set()

    def wait(self, seconds: float) -> None:
        """Sleep, but no longer than until somebody asks for an end."""
        self._drain.wait(seconds)

    def wait_cancelled(self, seconds: float) -> None:
        """Sleep, but no longer than until somebody asks for an end now."""
        self._cancel.wait(seconds)
