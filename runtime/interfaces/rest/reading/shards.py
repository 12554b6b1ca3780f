"""The read side of the REST interface for groups of Kafka clients: followers of the shards' logs.

The logs are opened at the first request, and each request catches up, at the cost of the new
records. The history of a group is located only when it is requested, or for metrics.
"""

import logging
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Final

from .....events.commits import ConsumerOffset
from .....events.entries.codec import CodecError
from .....events.entries.group_keys import (
    SHARED_CONTROL,
    SHARED_OFFSETS,
    count_of_shards,
    shard_of_group,
)
from .....events.group import Group
from .....events.log.errors import LogError, NoLogError
from .....events.log.reader import LogReader
from .....projections.explain.cache import EpochCache
from .....projections.metrics.shards import ShardFigures, figures_of
from .....projections.shard_history import EpochCaches, GroupEntries, ShardHistory
from .....projections.shards import (
    ChangedGroups,
    CommittedGroups,
    ShardFollower,
    all_groups,
    committed_offsets,
)
from .....projections.views import LogFigures
from ....cluster.log_checks import LogChecks
from ...replies.building.clients import read_shares
from ..server.errors import ApiError

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS: Final = 2
"""The pause before a shard that cannot be read is tried again."""


class FollowedShard:
    """The two logs of one shard, used by one thread at a time; another may read its history."""

    def __init__(self, number: int, folder: Path) -> None:
        """Open the logs; raises `LogError`, `CodecError`."""
        self.number, self._folder = number, folder
        self._open = ExitStack()
        with ExitStack() as undo:
            log = LogReader.open(folder / "control", kind=SHARED_CONTROL)
            self._control = undo.enter_context(log)
            self.changed = ChangedGroups()
            """The groups that have changed, as of the last `catch_up`."""
            self._follower = ShardFollower(log, self.changed)
            self._open = undo.pop_all()
        self.count_of_all = count_of_shards(log.log_id)
        """The total number of shards; None: its log does not have it."""
        self.history = ShardHistory(self._control)
        self._offsets: LogReader | None = None
        """The offset log, None before it exists."""
        self._committed: CommittedGroups | None = None

    def catch_up(self) -> None:
        """Apply new records; raises `LogError`, `CodecError`."""
        self._follower.catch_up()
        if self._offsets is None:
            with suppress(NoLogError):
                reader = LogReader.open(self._folder / "offsets", kind=SHARED_OFFSETS)
                self._offsets = self._open.enter_context(reader)
                self._committed = CommittedGroups(reader, self.changed)
        elif self._committed is not None:
            self._committed.catch_up()

    def groups(self) -> list[Group]:
        """Return all groups as of the last `catch_up`, by id."""
        return all_groups(self._follower.groups, self._committing)

    def group(self, group_id: str) -> Group | None:
        """Return a group as of the last `catch_up`."""
        is_committing = group_id in self._committing
        return self._follower.groups.get(group_id) or (Group(group_id) if is_committing else None)

    @property
    def _committing(self) -> set[str]:
        return self._committed.group_ids if self._committed is not None else set()

    def committed(self, group_id: str) -> list[ConsumerOffset]:
        """Return the committed offsets of a group; raises `LogError`, `CodecError`."""
        return [] if self._offsets is None else committed_offsets(self._offsets, group_id)

    def history_of(self, group_id: str) -> GroupEntries | None:
        """Return the history of a group, even if it is deleted; None if it never was here.

        Raises `LogError`, `CodecError`.
        """
        if not self.history.catch_up().knows(group_id) and self.group(group_id) is None:
            return None
        return GroupEntries(self._control, group_id, self.history)

    def count(self) -> None:
        """Count rebalances, so that the next metrics are cheap; raises `LogError`, `CodecError`."""
        self.history.catch_up()

    def figures(self) -> ShardFigures:
        """Return the metrics of the shard; raises `LogError`, `CodecError`."""
        self.count()
        logs = {"control": LogFigures.of(self._control)}
        if self._offsets is not None:
            logs["offsets"] = LogFigures.of(self._offsets)
        return figures_of(self.number, self.groups(), self.history.rebalances, logs)

    def close(self) -> None:
        """Close the logs."""
        self._open.close()


class ShardLogs:
    """All shards of a node; one that cannot be read does not affect the others."""

    def __init__(self, data_dir: Path, checks: LogChecks) -> None:
        self._folder = data_dir / "shards"
        self._checks = checks
        self._lock = Lock()
        """Held while shards catch up with their logs, or are read."""
        self._shards: dict[int, FollowedShard] = {}
        """The shards whose logs are open, by number."""
        self._count: int | None = None
        """The total number of shards; None: no log with it was read yet."""
        self._unreadable: dict[int, str] = {}
        """The errors of the shards that could not be read last, by number."""
        self._failed_at: dict[int, float] = {}
        """When the last attempt to read a shard failed, by number, in monotonic seconds."""
        self._logged: dict[int, str] = {}
        """The last logged error of each shard, by number."""
        self._caches = EpochCaches(read_shares)
        """Used by the one explaining thread, and changed under the lock."""

    @contextmanager
    def reading(self) -> Generator[list[FollowedShard]]:
        """Lock all readable shards for the context, caught up.

        Shards that could not be read are tried again after `RETRY_SECONDS`.
        """
        with self._lock:
            yield self._caught_up()

    def take_changed(self) -> set[str] | None:
        """Return the groups that have changed since the last call; None: too many to name.

        That is in the shards that somebody has read. While another thread reads them, nothing is
        returned: the next call has it.
        """
        if not self._lock.acquire(blocking=False):
            return set()
        try:
            for number in [*self._shards]:
                self._catch_up(number)
            taken = [each.changed.take() for each in self._shards.values()]
        finally:
            self._lock.release()
        changed = ChangedGroups()  # together they may be too many, too: each reader is told them
        for each in taken:
            if each is None:
                return None
            changed.add(each)
        return changed.take()

    @contextmanager
    def holding(self, group_id: str) -> Generator[FollowedShard | None]:
        """Lock the shard of a group for the context, caught up; None if no shard has the group.

        Raises `ApiError` if the group may be in a shard that cannot be read, `LogError`,
        `CodecError`.
        """
        with self._lock:
            holder = next((each for each in self._caught_up() if each.group(group_id)), None)
            if holder is None:
                self._check_is_gone(group_id)
                yield None
                return
            with self._letting_go(holder):
                yield holder

    @contextmanager
    def epochs(self, group_id: str) -> Generator[EpochCache | None]:
        """Return a group's history for the one explaining thread; None if no shard ever had it.

        Raises as `holding`.
        """
        with self._lock:
            shards = self._caught_up()
        for shard in shards:
            if (entries := self._history_in(shard, group_id)) is not None:
                break
        else:
            with self._lock:
                self._check_is_gone(group_id)
            yield None
            return
        try:
            with self._lock:
                cache = self._caches.of(entries)
            yield cache
        except (LogError, CodecError) as error:
            with self._lock:
                self._drop(shard, error)
            raise

    def figures(self) -> list[ShardFigures]:
        """Return the metrics of all readable shards."""
        with self._lock:
            shards = self._caught_up()
        for each in shards:
            with suppress(LogError, CodecError):  # reported below
                each.count()
        measured: list[ShardFigures] = []
        with self._lock:
            for each in self._caught_up():
                with suppress(LogError, CodecError), self._letting_go(each):
                    measured.append(each.figures())
        return measured

    def close(self) -> None:
        """Close all logs."""
        with self._lock:
            while self._shards:
                self._shards.popitem()[1].close()

    def _history_in(self, shard: FollowedShard, group_id: str) -> GroupEntries | None:
        """Return a group's history in a shard; None also if that cannot be read."""
        try:
            return shard.history_of(group_id)
        except (LogError, CodecError) as error:
            with self._lock:
                self._drop(shard, error)
        return None

    def _caught_up(self) -> list[FollowedShard]:
        """Catch up with all readable shards, and return them by number."""
        numbers = {*self._numbers(), *self._shards}
        for number in self._unreadable.keys() - numbers:  # its folder is gone
            del self._unreadable[number]
        for number in sorted(numbers):
            failed_at = self._failed_at.get(number)
            # Reading much of the log again in each request would delay all others.
            if failed_at is None or monotonic() - failed_at >= RETRY_SECONDS:
                self._catch_up(number)
        return [self._shards[each] for each in sorted(self._shards)]

    def _catch_up(self, number: int) -> None:
        """Open a shard if necessary, and catch up; record the error if that fails."""
        try:
            if number not in self._shards:
                for kind in ("control", "offsets"):
                    self._checks.check(self._folder / str(number) / kind)
                with suppress(NoLogError):  # its process has not made it yet
                    shard = FollowedShard(number, self._folder / str(number))
                    self._shards[number], self._count = shard, shard.count_of_all
            if number in self._shards:
                self._shards[number].catch_up()
        except (LogError, CodecError) as error:
            self._failed_at[number] = monotonic()
            self._note_unreadable(number, error)
            if number in self._shards:
                self._close(number)
        else:
            self._failed_at.pop(number, None)
            self._unreadable.pop(number, None)

    def _numbers(self) -> list[int]:
        with suppress(FileNotFoundError):
            return [int(each.name) for each in self._folder.iterdir() if each.name.isdecimal()]
        return []

    def _check_is_gone(self, group_id: str) -> None:
        """Raise `ApiError` if the group may be in a shard that cannot be read."""
        own = None if self._count is None else shard_of_group(group_id, self._count)
        numbers = sorted(each for each in self._unreadable if own in {None, each})
        if numbers:
            reasons = "; ".join(f"shard {n}: {self._unreadable[n]}" for n in numbers)
            raise ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"group {group_id} may be in a shard whose logs cannot be read; {reasons}",
            )

    @contextmanager
    def _letting_go(self, shard: FollowedShard) -> Generator[None]:
        try:
            yield
        except (LogError, CodecError) as error:
            self._drop(shard, error)
            raise

    def _drop(self, shard: FollowedShard, error: Exception) -> None:
        """Close the logs of an unreadable shard, unless another thread has done it already."""
        if self._shards.get(shard.number) is shard:
            self._note_unreadable(shard.number, error)
            self._close(shard.number)

    def _note_unreadable(self, number: int, error: Exception) -> None:
        """Record why a shard cannot be read; log it if it is not the last logged error."""
        why = self._unreadable[number] = str(error)
        if self._logged.get(number) != why:
            self._logged[number] = why
            LOGGER.error("the groups of shard %d cannot be read: %s", number, why)

    def _close(self, number: int) -> None:
        shard = self._shards.pop(number)
        self._caches.forget(shard.history)
        shard.close()
