"""What requests about the groups of Kafka's clients are answered from: the logs of the shards.

They are opened when they are first asked for, and caught up at each request, which costs what is
new. Where a group's history lies is looked for when somebody asks for one, or measures.
"""

import logging
from collections import OrderedDict
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from .....events.entries.codec import CodecError
from .....events.entries.group_keys import SHARED_CONTROL, SHARED_OFFSETS
from .....events.group import Group
from .....events.kafka.consumers import ConsumerOffset
from .....events.log.errors import LogError, NoLogError
from .....events.log.reader import LogReader
from .....projections.explain.cache import EpochCache
from .....projections.shard_history import GroupEntries, ShardHistory
from .....projections.shard_metrics import ShardFigures, figures_of
from .....projections.shards import CommittedGroups, ShardFollower, all_groups, committed
from .....projections.views import LogFigures
from ...replies.clients import read_shares

LOGGER = logging.getLogger(__name__)
TOLD_MAX: Final = 16
"""Of so many groups of a shard what was told of their epochs is kept, the latest ones."""


class FollowedShard:
    """The two logs of one shard, read by one thread at a time; another may read its history."""

    def __init__(self, number: int, folder: Path) -> None:
        """Open its logs; raises `LogError`, `CodecError`."""
        self.number, self._folder = number, folder
        self._open = ExitStack()
        with ExitStack() as undo:
            log = LogReader.open(folder / "control", kind=SHARED_CONTROL)
            self._control = undo.enter_context(log)
            self._follower = ShardFollower(log)
            self._open = undo.pop_all()
        self._history = ShardHistory(self._control)
        self._offsets: LogReader | None = None
        """The offset log, once it was there to be opened."""
        self._committed: CommittedGroups | None = None
        self._told: OrderedDict[str, EpochCache] = OrderedDict()
        """By group id, the one that was asked for last at the end."""

    def catch_up(self) -> None:
        """Fold what is new; raises `LogError`, `CodecError`."""
        self._follower.catch_up()
        if self._offsets is None:
            with suppress(NoLogError):
                reader = LogReader.open(self._folder / "offsets", kind=SHARED_OFFSETS)
                self._offsets = self._open.enter_context(reader)
                self._committed = CommittedGroups(reader)
        elif self._committed is not None:
            self._committed.catch_up()

    def groups(self) -> list[Group]:
        """Return all groups as of the last catching up, by id."""
        return all_groups(self._follower.groups, self._committing)

    def group(self, group_id: str) -> Group | None:
        """Return a group as of the last catching up."""
        is_committing = group_id in self._committing
        return self._follower.groups.get(group_id) or (Group(group_id) if is_committing else None)

    @property
    def _committing(self) -> set[str]:
        return self._committed.group_ids if self._committed is not None else set()

    def committed(self, group_id: str) -> list[ConsumerOffset]:
        """Return how far a group has read; raises `LogError`, `CodecError`."""
        return [] if self._offsets is None else committed(self._offsets, group_id)

    def epochs(self, group_id: str) -> EpochCache | None:
        """Return a group's epochs, also of one that is gone; None: there never was such a group."""
        if not self._history.catch_up().knows(group_id) and self.group(group_id) is None:
            return None
        told = self._told.pop(group_id, None)
        if told is None:
            entries = GroupEntries(self._control, group_id, self._history)
            told = EpochCache(entries, read_shares)
        self._told[group_id] = told
        while len(self._told) > TOLD_MAX:
            self._told.popitem(last=False)
        return told

    def count(self) -> None:
        """Count rebalances, so that the next figures are cheap; raises `LogError`, `CodecError`."""
        self._history.catch_up()

    def figures(self) -> ShardFigures:
        """Return what is measured of it; raises `LogError`, `CodecError`."""
        self.count()
        logs = {"control": LogFigures.of(self._control)}
        if self._offsets is not None:
            logs["offsets"] = LogFigures.of(self._offsets)
        return figures_of(self.number, self.groups(), self._history.rebalances, logs)

    def close(self) -> None:
        """Let go of the logs."""
        self._open.close()


class ShardLogs:
    """All shards of a node."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "shards"
        self._lock = Lock()
        """Held while shards are caught up with their logs, or read."""
        self._shards: dict[int, FollowedShard] = {}
        """Those whose logs are open, by number."""

    @contextmanager
    def reading(self) -> Generator[list[FollowedShard]]:
        """Give one thread all shards, caught up; nobody else reads meanwhile.

        Raises `LogError`, `CodecError`; all logs are let go of then, so that the next request
        tries anew.
        """
        with self._lock, self._letting_go():
            yield self._caught_up()

    @contextmanager
    def epochs(self, group_id: str) -> Generator[EpochCache | None]:
        """Give the one thread that explains what it may use of a group's history.

        None: no shard was ever told of the group. Raises as `reading`.
        """
        with self._lock, self._letting_go():
            shards = self._caught_up()
        try:
            found = (each.epochs(group_id) for each in shards)
            yield next((each for each in found if each), None)
        except (LogError, CodecError):
            with self._lock:
                self._let_go()
            raise

    def figures(self) -> list[ShardFigures]:
        """Return what is measured of the shards; of none where they cannot be read."""
        try:
            with self._lock, self._letting_go():
                shards = self._caught_up()
            for each in shards:
                each.count()
            with self.reading() as shards:
                return [each.figures() for each in shards]
        except (LogError, CodecError) as error:
            LOGGER.warning("the groups of Kafka's clients cannot be measured: %s", error)
            return []

    def close(self) -> None:
        """Let go of all logs."""
        with self._lock:
            self._let_go()

    def _caught_up(self) -> list[FollowedShard]:
        for number in self._numbers():
            shard = self._shards.get(number)
            if shard is None:
                with suppress(NoLogError):  # its process has not made it yet
                    shard = FollowedShard(number, self._folder / str(number))
                    self._shards[number] = shard
        for each in self._shards.values():
            each.catch_up()
        return [self._shards[each] for each in sorted(self._shards)]

    def _numbers(self) -> list[int]:
        with suppress(FileNotFoundError):
            return [int(each.name) for each in self._folder.iterdir() if each.name.isdecimal()]
        return []

    @contextmanager
    def _letting_go(self) -> Generator[None]:
        try:
            yield
        except (LogError, CodecError):
            self._let_go()
            raise

    def _let_go(self) -> None:
        while self._shards:
            self._shards.popitem()[1].close()
