"""The one loop that follows the logs of all groups, and tells its subscribers which have changed.

A thread looks for new records twice a second. Whoever wants to hear of changes subscribes, and
reads in its own call what it needs of the group's logs: the loop knows no record.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Final

from .....events.entries.codec import CodecError
from .....events.log.errors import LogError
from .logs import FollowedGroup, NodeLogs

LOGGER = logging.getLogger(__name__)
LOOK_SECONDS: Final = 0.5
STOP_SECONDS: Final = 1.0

Subscriber = Callable[[str, FollowedGroup], None]
"""Gets a group's id and logs, caught up, for the thread of the loop: see `NodeLogs.apart`."""


class LogChanges:
    """Follows the groups of a node that have their own logs, for its subscribers."""

    def __init__(self, logs: NodeLogs) -> None:
        self._logs = logs
        self._subscribers: list[Subscriber] = []
        self._followed: dict[str, tuple[FollowedGroup, int]] = {}
        """The logs that all subscribers have heard of, with their end then, by group."""
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="changes", daemon=True)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call a subscriber after each change, and once for each group as it is now."""
        self._subscribers.append(subscriber)
        self._followed.clear()

    def start(self) -> None:
        """Begin to follow, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Call the subscribers for the last changes, and no more after that."""
        self._is_over.set()
        self._thread.join(STOP_SECONDS)
        if not self._thread.is_alive():
            self._try()

    def look(self) -> None:
        """Call the subscribers for changed groups; an unreadable log is tried again."""
        for group_id in self._logs.group_ids():
            with suppress(LogError, CodecError), self._logs.apart(group_id) as logs:
                current = logs, logs.group.end
                if self._followed.get(group_id) != current:
                    for subscriber in self._subscribers:
                        subscriber(group_id, logs)
                    self._followed[group_id] = current

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            self._try()

    def _try(self) -> None:
        """Look, and live on: a machine that is short of descriptors lists no folder for a while."""
        try:
            self.look()
        except OSError as error:
            LOGGER.warning("what happens is not told for now: %s; it is tried again", error)
        except Exception:
            LOGGER.exception("what happens is not told for now; it is tried again")
