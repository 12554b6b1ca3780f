"""Computes targets beside the loop of a process of groups.

A thread runs the assignors, one computation after another: a large group's takes tens of
milliseconds, in which all other groups would wait. Its results come by a queue, and a pipe wakes
the process for them.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from queue import SimpleQueue

from ..group.computing.compute import run_assignor
from ..group.group_shard import HostComputation
from ..messages.computing import EndComputation

Ended = tuple[str, EndComputation]
"""A group id, and the result for that group."""


class TargetComputer:
    """The thread, which starts with the first computation."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[str, HostComputation]] = SimpleQueue()
        """The computations that the thread has not begun, by group id."""
        self._ended: SimpleQueue[Ended] = SimpleQueue()
        """The results that the loop has not handled yet."""
        self._thread: threading.Thread | None = None
        self._read_end, self._write_end = os.pipe()
        """A pipe with a byte while there are results: the loop waits for it."""
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)

    def fileno(self) -> int:
        """Return the descriptor that has input once a computation has ended."""
        return self._read_end

    def start(self, computations: Mapping[str, HostComputation]) -> None:
        """Compute these, by group id."""
        if computations and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="targets", daemon=True)
            self._thread.start()
        for each in computations.items():
            self._queue.put(each)

    def ended(self) -> Iterator[Ended]:
        """Yield the results since the last call."""
        try:
            os.read(self._read_end, 4_096)
        except BlockingIOError:
            return
        while not self._ended.empty():
            yield self._ended.get()

    def _run(self) -> None:
        while True:
            group_id, (number, assignor, computes, snapshot) = self._queue.get()
            found = run_assignor(assignor, computes, snapshot)
            self._ended.put((group_id, EndComputation(number, *found)))
            with suppress(BlockingIOError):  # it is woken already
                os.write(self._write_end, b"\0")
