"""The read side of the REST interface: followers (projections) of this node's group logs.

Reads never wait for an actor. Each request first catches up with the log, which is cheap. A lock
keeps a follower to one thread at a time. Requests that read much of a log have their own
projection, and read without the lock.
"""

import logging
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar, cast
from urllib.parse import quote, unquote

from .....events.commits import Commit, Lag, Offset
from .....events.entries.codec import CONTROL, OFFSETS, CodecError
from .....events.group import Group
from .....events.log.errors import LogError, NoLogError
from .....events.log.reader import LogReader
from .....events.log.space import DiskSpace, disk_space_at
from .....events.model import Resource
from .....projections.explain.cache import EpochCache
from .....projections.follow.group import Follower
from .....projections.follow.rebalances import Rebalances
from .....projections.metrics.families import GroupFigures
from .....projections.views import (
    LogFigures,
    Progress,
    connector_names,
    connector_progress,
    is_at_rest,
    logged_offsets,
    read_topics,
    task_progress,
    unpublished_batches,
)
from .....projections.watch.group import GroupWatch, WatchCounts
from .....projections.watch.lines import EventLine
from ....cluster.log_checks import LogChecks
from .shards import ShardLogs

LOGGER = logging.getLogger(__name__)
T = TypeVar("T")


class FollowedGroup:
    """The two logs of one group, used by one thread at a time.

    At the same time one other thread may read the epochs, one may count for the metrics, and one
    may watch.
    """

    def __init__(self, group_id: str, folder: Path, checks: LogChecks) -> None:
        self._folder, self._checks = folder, checks
        self._open = ExitStack()
        checks.check(folder / "control")
        with ExitStack() as undo:
            self._control = undo.enter_context(
                LogReader.open(folder / "control", group_id, CONTROL)
            )
            self._follower = Follower(group_id, self._control)
            self._open = undo.pop_all()
        self._offsets: LogReader | None = None
        """The offset log, None before it exists."""
        self.epochs = EpochCache(self._control)
        self._rebalances = Rebalances()
        self._progress: tuple[object, Mapping[str, Mapping[int, Progress]]] = (None, {})
        """The progress of all tasks, after the ends of both logs when it was read."""
        self.unread: Mapping[str, Lag] = {}
        """What connectors that do not run have to read, as a look at it has found."""
        self._built: dict[Hashable, tuple[int, object]] = {}
        """What `remember` has built, with the log's end then."""
        self._watch: GroupWatch | None = None
        """What is told of the group as it happens; None until somebody asks."""

    @property
    def group(self) -> Group:
        """The group as of the last `catch_up`."""
        return self._follower.group

    def catch_up(self) -> None:
        """Apply new records; raises `LogError`, `CodecError`."""
        self._follower.catch_up()

    def task_progress(self, connector: str) -> Mapping[int, Progress]:
        """Return the progress of each task; raises `LogError`, `CodecError`."""
        offsets = self._offset_log()
        return {} if offsets is None else task_progress(offsets, connector)

    def unpublished(self, connector: str) -> Sequence[Commit]:
        """Return the commits that are not published yet; raises `LogError`, `CodecError`."""
        offsets = self._offset_log()
        return () if offsets is None else unpublished_batches(offsets, connector)

    def topics(self, connector: str) -> list[str]:
        """Return the topics that a connector has read; raises `LogError`, `CodecError`."""
        offsets = self._offset_log()
        return [] if offsets is None else read_topics(offsets, connector)

    def offsets(self, connector: str) -> Sequence[Offset]:
        """Return the offsets of source partitions; raises `LogError`, `CodecError`."""
        log = self._offset_log()
        return () if log is None else logged_offsets(log, connector)

    def figures(self) -> GroupFigures:
        """Return the metrics of the group; raises `LogError`, `CodecError`."""
        self.count()
        offsets = self._offset_log()
        logs = {"control": LogFigures.of(self._control)}
        if offsets is not None:
            logs["offsets"] = LogFigures.of(offsets)
        tasks = self._all_progress(offsets.end() if offsets else 0)
        progress = {
            name: connector_progress(each, self.group.task_numbers(name))
            for name, each in tasks.items()
        }
        skipping = {
            Resource(name, number): each
            for name, of_tasks in tasks.items()
            for number, each in of_tasks.items()
            if each.skipped
        }
        watched = WatchCounts() if self._watch is None else self._watch.counted
        counted = self._rebalances.by_cause, logs, progress, skipping, dict(self._rebalances.losses)
        at_rest = {name: lag for name, lag in self.unread.items() if is_at_rest(self.group, name)}
        return GroupFigures(self.group, *counted, at_rest, watched)

    def _all_progress(self, offsets_end: int) -> Mapping[str, Mapping[int, Progress]]:
        """Return the progress of all tasks by connector, read again only after a record."""
        known, found = self._progress
        if known != (offsets_end, self.group.end):
            found = {name: self.task_progress(name) for name in connector_names(self.group)}
            self._progress = (offsets_end, self.group.end), found
        return found

    def count(self) -> None:
        """Count rebalances, so that the next metrics are cheap; raises `LogError`, `CodecError`."""
        self._rebalances.catch_up(self._control)

    def remember(self, what: Hashable, build: Callable[[], T]) -> T:
        """Return a value that depends on the group alone, built once for each end of its log."""
        end, found = self._built.get(what, (-1, None))
        if end != self.group.end:
            found = build()
            self._built[what] = self.group.end, found
        return cast(T, found)

    def watch(self, start: int) -> tuple[Sequence[EventLine], int]:
        """Return the lines of what is new, and where it ends; `start` is for the first call.

        After an error the next call is a first one. Raises `LogError`, `CodecError`.
        """
        if self._watch is None:
            self._watch = GroupWatch(self._control, max(start, self._control.low()))
        try:
            return self._watch.read(), self._watch.next
        except Exception:
            self._watch = None
            raise

    def close(self) -> None:
        """Close the logs."""
        self._open.close()

    def _offset_log(self) -> LogReader | None:
        """Return the offset log, which is created after the control log; None until then."""
        if self._offsets is None:
            self._checks.check(self._folder / "offsets")
            with suppress(NoLogError):
                reader = LogReader.open(self._folder / "offsets", self.group.group_id, OFFSETS)
                self._offsets = self._open.enter_context(reader)
        return self._offsets


class NodeLogs:
    """The logs of all groups of a node; each is opened at its first request."""

    def __init__(self, data_dir: Path, checks: LogChecks | None = None) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / "groups"
        self._checks = checks or LogChecks()
        self._lock = Lock()
        """Held while a group catches up with its log, or is read."""
        self._counting = Lock()
        """Held while the metrics of all groups are read, by one thread at a time."""
        self._groups: dict[str, FollowedGroup] = {}
        """The groups whose logs are open, by group id."""
        self.shards = ShardLogs(data_dir, self._checks)
        """The groups of Kafka clients, which share logs."""

    def room(self) -> DiskSpace:
        """Return the free space for the logs."""
        return disk_space_at(self._data_dir)

    def group_ids(self) -> list[str]:
        """Return the ids of groups with their own logs."""
        with suppress(FileNotFoundError):
            found = (each.name for each in self._folder.iterdir() if (each / "control").is_dir())
            return sorted(unquote(name) for name in found)
        return []

    def has_own_logs(self, group_id: str) -> bool:
        """Return whether a group has its own logs, as groups of workers do."""
        return group_id in self.group_ids()

    @contextmanager
    def reading(self, group_id: str) -> Generator[FollowedGroup]:
        """Lock the logs of a group for the context, caught up.

        Raises `NoLogError` if the group has none. Logs that cannot be read are closed, so that the
        next request opens them again.
        """
        with self._lock, self._letting_go(group_id):
            yield self._caught_up(group_id)

    @contextmanager
    def reading_all(self, *required: str) -> Generator[dict[str, FollowedGroup]]:
        """Lock the logs of all groups for the context, caught up, by group id.

        Raises as `reading`, of a group that is `required` also if it has no log.
        """
        with self._lock:
            groups: dict[str, FollowedGroup] = {}
            for group_id in sorted({*self.group_ids(), *required}):
                with self._letting_go(group_id):
                    groups[group_id] = self._caught_up(group_id)
            yield groups

    @contextmanager
    def apart(self, group_id: str) -> Generator[FollowedGroup]:
        """Return a part of a group's logs for use without the lock; raises as `reading`.

        Only one thread at a time may use the same part, which the caller has to ensure.
        """
        with self._lock, self._letting_go(group_id):
            logs = self._caught_up(group_id)
        try:
            yield logs
        except (LogError, CodecError):
            with self._lock:
                if self._groups.get(group_id) is logs:
                    self._drop(group_id)
            raise

    @contextmanager
    def reading_epochs(self, group_id: str) -> Generator[EpochCache]:
        """Return a group's epochs, for the one explaining thread; raises as `reading`."""
        with self.apart(group_id) as logs:
            yield logs.epochs

    @contextmanager
    def reading_any_epochs(self, group_id: str) -> Generator[EpochCache | None]:
        """Return them for a group of Kafka clients, too; None if it is unknown."""
        if self.has_own_logs(group_id):
            with self.reading_epochs(group_id) as epochs:
                yield epochs
        else:
            with self.shards.epochs(group_id) as told:
                yield told

    @contextmanager
    def measuring(self) -> Generator[list[GroupFigures]]:
        """Return the metrics of all groups but those that cannot be read."""
        with self._counting:
            for group_id in self.group_ids():
                self._count(group_id)
            with self._lock:
                measured = map(self._measured, self.group_ids())
                yield [each for each in measured if each is not None]

    def close(self) -> None:
        """Close all logs."""
        with self._lock:
            for group_id in list(self._groups):
                self._drop(group_id)
        self.shards.close()

    def _count(self, group_id: str) -> None:
        """Count in advance for a group's metrics; errors are reported with the metrics."""
        with suppress(LogError, CodecError), self.apart(group_id) as logs:
            logs.count()

    def _measured(self, group_id: str) -> GroupFigures | None:
        try:
            with self._letting_go(group_id):
                return self._caught_up(group_id).figures()
        except (LogError, CodecError) as error:
            LOGGER.warning("group %s cannot be measured: %s", group_id, error)
            return None

    def _caught_up(self, group_id: str) -> FollowedGroup:
        logs = self._groups.get(group_id)
        if logs is None:
            folder = self._folder / quote(group_id, safe="")
            logs = FollowedGroup(group_id, folder, self._checks)
            self._groups[group_id] = logs
        logs.catch_up()
        return logs

    @contextmanager
    def _letting_go(self, group_id: str) -> Generator[None]:
        try:
            yield
        except (LogError, CodecError):
            self._drop(group_id)
            raise

    def _drop(self, group_id: str) -> None:
        logs = self._groups.pop(group_id, None)
        if logs is not None:
            logs.close()
