"""Keeps the copies of a group's logs in step with the store, while another node owns the group.

Each copy has a thread, which writes what counts into it and waits for more. That of the control log
waits for the other one as well: what it has rests on offsets. It also looks who owns the group. The
actor hears of both by messages to itself; before it claims, the threads end, and the copies are the
actor's alone.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ....actors.messages.commands import CopiesView
from ....actors.shards.host_actor import BETWEEN_LOOKS, clocks
from ....actors.shards.hosted_logs import HostedLogs, LogCopies, OpenLogs
from ....events.entries.retention import Retention
from ....events.log.errors import LogError, LowSpaceError
from ....events.stores.port import StoreAwayError, StoreOwner
from ....events.stores.stored_log import StoredLog
from .delivery import LogEnds

LOGGER = logging.getLogger(__name__)
WAIT_SECONDS: Final = 0.3
"""How long a thread waits for news, and so how long its end may take."""
CHECK_SECONDS: Final = 3_600.0
"""How often the set-up of the engine is looked at."""
OWNER_SECONDS: Final = 1.0
"""How often it looks who owns the group while that one is heard of; else after each wait."""
SILENT_SECONDS: Final = 1.5
"""An owner that was not heard of for so long may be gone: there is a beat every 0.75 s."""
CHANGE_SECONDS: Final = 2.0
"""For so long after a record there may be another owner: who resigns, or begins, writes one."""
BRIEF_SECONDS: Final = 0.02
"""How long it waits until both copies have all: a node that may claim waits for that alone."""
SETTLING_SECONDS: Final = 0.5
"""How long it goes on so after that: a node that had owned the group ends the threads at once."""
PAUSE_SECONDS: Final = 0.2
"""The pause after the store could not be reached, or the disk was full."""


@dataclass(frozen=True, slots=True)
class CopiesMoved:
    """To the actor: the copies have more than before."""


@dataclass(frozen=True, slots=True)
class OwnerSeen:
    """To the actor: who owns the group, as the store says."""

    owner: StoreOwner | None
    is_whole: bool
    """Whether the copies had all that counted just before."""


@dataclass(frozen=True, slots=True)
class StoreLost:
    """To the actor: the store cannot be reached, or the disk is full; it is tried again."""


@dataclass(frozen=True, slots=True)
class FollowingFailed:
    """To the actor: a copy cannot follow the store; nothing of it was changed."""

    error: LogError


class StoreFollower:
    """The threads that keep both copies in step."""

    def __init__(
        self,
        copies: LogCopies,
        retention: Retention,
        tell: Callable[[object], None],
        *,
        is_unsafe: bool,
    ) -> None:
        """Start them; an engine that may lose what counts is only accepted if `is_unsafe`."""
        self._copies = copies
        self._logs = HostedLogs(OpenLogs(*copies), retention)
        self._compact_at = time.monotonic() + BETWEEN_LOOKS
        """When the history is looked through next, monotonic clock."""
        self._tell, self._is_unsafe = tell, is_unsafe
        self._is_over = threading.Event()
        self._check_at = 0.0
        """When the engine is checked next, monotonic clock."""
        self._seen_at = 0.0
        """When the owner was looked up last, monotonic clock."""
        self._looks_until = 0.0
        """Until when it is looked up each time, monotonic clock."""
        self._settled_at = 0.0
        """When the node does not claim at once what it has owned, monotonic clock; 0: not known."""
        self._whole: set[StoredLog] = set()
        """The copies that had all when they were looked at last."""
        self._whole_at: dict[StoredLog, float] = {}
        """When each copy had all, at last, monotonic clock."""
        self._flaws: dict[StoredLog, str] = {}
        """Why a copy does not follow for now."""
        self._clock_ms: int | None = None
        """How far this host's clock is ahead of the owner's; None: it was not compared yet."""
        self._looked = threading.Condition()
        """Notified after each look of the offset log's thread, and at the end."""
        self._whole_looks = 0
        """How often that has found all."""
        copies.control.bring_beside = self._wait_for_offsets
        self._threads = [
            threading.Thread(target=self._follow, args=(log, log is copies.control), daemon=True)
            for log in (copies.control, copies.offsets)
        ]
        for each in self._threads:
            each.start()

    def ends(self) -> LogEnds:
        """Return the ends of both copies."""
        return LogEnds(self._copies.control.end, self._copies.offsets.end)

    def describe(self, missing: int) -> CopiesView:
        """Return how far the copies are, which lack so many entries, as answers tell."""
        in_step_ms = None
        if len(whole_at := [*self._whole_at.values()]) == len(self._threads):
            in_step_ms = round((time.monotonic() - min(whole_at)) * 1_000)
        return CopiesView(missing, in_step_ms, self._clock_ms)

    @property
    def flaw(self) -> str:
        """The reason why the copies do not follow for now; empty: they do."""
        return next(iter([*self._flaws.values()]), "")

    def stop(self) -> None:
        """End the threads; the copies stay open."""
        self._is_over.set()
        with self._looked:
            self._looked.notify_all()
        for each in self._threads:
            each.join()
        self._copies.control.bring_beside = None

    def _wait_for_offsets(self, end: int) -> None:
        """Wait until the copy of the offsets has come to an end, or the store has no more of them.

        Raises `StoreAwayError` when the threads end.
        """
        with self._looked:
            # One look may have begun before the commit was read that rests on these offsets.
            enough = self._whole_looks + 2
            while self._copies.offsets.end < end and self._whole_looks < enough:
                if self._is_over.is_set():
                    raise StoreAwayError("it is not followed any more")
                self._looked.wait()

    def _note_look(self, *, is_whole: bool) -> None:
        with self._looked:
            self._whole_looks += is_whole
            self._looked.notify_all()

    def _follow(self, log: StoredLog, sees_owner: bool) -> None:  # noqa: FBT001
        while not self._is_over.is_set():
            try:
                self._look(log, sees_owner=sees_owner)
                self._flaws.pop(log, None)
            except (StoreAwayError, LowSpaceError) as error:
                if self._is_over.is_set():
                    return
                is_new = str(error) != self._flaws.get(log)
                self._flaws[log] = str(error)
                self._whole.discard(log)
                if is_new:
                    LOGGER.warning("%s does not follow for now: %s", log.path, error)
                    self._tell(StoreLost())
                time.sleep(PAUSE_SECONDS)
            except LogError as error:
                self._tell(FollowingFailed(error))
                return

    def _look(self, log: StoredLog, *, sees_owner: bool) -> None:
        before, was_whole = log.end, self._is_whole
        whole_at = self._whole_at.get(log)
        is_settled = was_whole and 0 < self._settled_at < time.monotonic()
        is_whole = log.follow(WAIT_SECONDS if is_settled else BRIEF_SECONDS)
        if is_whole:
            self._whole.add(log)
            self._whole_at[log] = time.monotonic()
        else:
            self._whole.discard(log)
        if log is self._copies.offsets:
            self._note_look(is_whole=is_whole)
        if log.end != before:
            if whole_at is not None and time.monotonic() - whole_at < 2 * WAIT_SECONDS:
                self._clock_ms = time.time_ns() // 1_000_000 - log.written_ms
            self._tell(CopiesMoved())
            self._trim(log)
            self._looks_until = time.monotonic() + CHANGE_SECONDS
        if sees_owner and time.monotonic() > self._check_at:
            self._check_store(log)
        # Asked while much is to be read, a store may have to read it twice.
        if sees_owner and is_whole and (not was_whole or self._is_owner_due()):
            self._look_at_owner(log)

    def _trim(self, log: StoredLog) -> None:
        """Trim a copy as its owner would trim its own log, each in its thread."""
        if log is self._logs.offsets:
            self._logs.trim_offsets()
        elif time.monotonic() > self._compact_at:
            has_more = self._logs.compact(clocks())
            self._compact_at = time.monotonic() + (0.0 if has_more else BETWEEN_LOOKS)

    def _check_store(self, log: StoredLog) -> None:
        """Check now and then whether the engine may lose what counts; the first flaw is an end."""
        self._check_at = time.monotonic() + CHECK_SECONDS
        log.check_store(is_unsafe=self._is_unsafe)

    def _is_owner_due(self) -> bool:
        now = time.monotonic()
        return now - self._seen_at > (WAIT_SECONDS if now < self._looks_until else OWNER_SECONDS)

    def _look_at_owner(self, log: StoredLog) -> None:
        self._seen_at, is_whole = time.monotonic(), self._is_whole
        if is_whole and not self._settled_at:
            self._settled_at = self._seen_at + SETTLING_SECONDS
        owner = log.owner()
        if owner is None or owner.silent_seconds > SILENT_SECONDS:
            self._looks_until = time.monotonic() + CHANGE_SECONDS
        self._tell(OwnerSeen(owner, is_whole))

    @property
    def _is_whole(self) -> bool:
        return len(self._whole) == len(self._threads)
