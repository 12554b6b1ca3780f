"""The one loop that follows the logs of all groups, and tells its subscribers which have changed.

A thread looks for new records twice a second, and more often while somebody watches. Whoever wants
to hear of changes subscribes, and reads in its own call what it needs of the group's logs: the loop
knows no record.
"""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from .....events.entries.codec import CodecError
from .....events.log.errors import ClosedLogError, LogError, NoLogError, TrimmedError
from .logs import FollowedGroup, NodeLogs

LOGGER = logging.getLogger(__name__)
LOOK_SECONDS: Final = 0.5
QUICK_SECONDS: Final = 0.05
"""The same while a page follows."""
STOP_SECONDS: Final = 1.0
OPENED_AGAIN: Final = (NoLogError, ClosedLogError, TrimmedError)
"""Errors of a log that begins or ends just now, or is read anew at the next look."""

Subscriber = Callable[[str, FollowedGroup], None]
"""Gets a group's id and logs, caught up, for the thread of the loop: see `NodeLogs.apart`."""


class LogChanges:
    """Follows the groups of a node that have their own logs, for its subscribers."""

    def __init__(self, logs: NodeLogs, is_watched: Callable[[], bool] = lambda: False) -> None:
        """`is_watched`: whether somebody waits for the next change."""
        self._logs = logs
        self._is_watched = is_watched
        self._subscribers: list[Subscriber] = []
        self._at_each_look: list[Subscriber] = []
        """Those that are called at each look, also if nothing has changed."""
        self._on_error: list[Callable[[str, Exception], None]] = []
        self._followed: dict[str, tuple[FollowedGroup, int]] = {}
        """The logs that all subscribers have heard of, with their end then, by group."""
        self._is_well = True
        """Whether the last look at all groups met no error."""
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="changes", daemon=True)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call a subscriber after each change, and once for each group as it is now."""
        self._subscribers.append(subscriber)
        self._followed.clear()

    def subscribe_to_looks(self, subscriber: Subscriber) -> None:
        """Call a subscriber at each look: it asks by itself for changes of the offset log."""
        self._at_each_look.append(subscriber)

    def subscribe_to_errors(self, on_error: Callable[[str, Exception], None]) -> None:
        """Call with a group's id and the error when its log cannot be read."""
        self._on_error.append(on_error)

    def start(self) -> None:
        """Begin to follow, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Call the subscribers for the last changes, and no more after that."""
        self._is_over.set()
        self._thread.join(STOP_SECONDS)
        if not self._thread.is_alive():
            self.look()

    def look(self) -> None:
        """Call the subscribers for changed groups; what fails is logged, and tried again.

        A machine that is short of descriptors lists no folder for a while.
        """
        self._is_well = True
        with self._logging_errors():
            for group_id in self._logs.group_ids():
                with self._logging_errors(f" in group {group_id}"):
                    self._look_at(group_id)

    def _look_at(self, group_id: str) -> None:
        try:
            self._call_for(group_id)
        except OPENED_AGAIN:
            raise
        except (LogError, CodecError) as error:
            for each in self._on_error:
                each(group_id, error)
            raise

    def _call_for(self, group_id: str) -> None:
        with self._logs.apart(group_id) as logs:
            current = logs, logs.group.end
            if self._followed.get(group_id) != current:
                for subscriber in self._subscribers:
                    subscriber(group_id, logs)
                self._followed[group_id] = current
            for subscriber in self._at_each_look:
                subscriber(group_id, logs)

    @contextmanager
    def _logging_errors(self, where: str = "") -> Generator[None]:
        """Log an error of the context: one group, or a mistake of this code, stops no other."""
        try:
            yield
        except OPENED_AGAIN:
            self._is_well = False
        except (LogError, CodecError, OSError) as error:
            self._is_well = False
            told = "what happens%s is not told for now: %s; it is tried again"
            LOGGER.warning(told, where, error)
        except Exception:
            self._is_well = False
            LOGGER.exception("what happens%s is not told for now; it is tried again", where)

    def _run(self) -> None:
        while not self._is_over.wait(self._pause()):
            self.look()

    def _pause(self) -> float:
        """Return after how many seconds it looks again; after an error nobody gains by a hurry."""
        return QUICK_SECONDS if self._is_well and self._is_watched() else LOOK_SECONDS
