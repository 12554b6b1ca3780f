"""The read side of the REST interface: followers (projections) of this node's group logs.

Reads never wait for an actor. Each request first catches up with the log, which is cheap. A lock
keeps a follower to one thread at a time. Requests that read much of a log have their own
projection, and read without the lock.
"""

import logging
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from urllib.parse import quote, unquote

from .....events.commits import Commit, Lag, Offset
from .....events.entries.codec import CONTROL, OFFSETS, CodecError
from .....events.group import Group
from .....events.log.errors import LogError, NoLogError
from .....events.log.reader import LogReader
from .....events.log.space import DiskSpace, disk_space_at
from .....projections.explain.cache import EpochCache
from .....projections.follow.group import Follower
from .....projections.follow.owners import OwnerHistory
from .....projections.follow.rebalances import Rebalances
from .....projections.metrics.families import GroupFigures
from .....projections.page.recent import RecentRecords
from .....projections.page.today import rows_since
from .....projections.progress import ProgressFollower, TasksProgress, is_lag_outdated
from .....projections.revisions import ConfigRevision, read_revisions
from .....projections.views import (
    LogFigures,
    Progress,
    connector_names,
    connector_progress,
    logged_offsets,
    read_topics,
    task_progress,
    unpublished_batches,
)
from .....projections.watch.group import GroupWatch, WatchCounts
from .....projections.watch.lines import EventLine
from ....cluster.log_checks import LogChecks
from .lists import EncodedLists
from .shards import ShardLogs

LOGGER = logging.getLogger(__name__)
NO_TASKS: Mapping[int, Progress] = {}


class FollowedGroup:
    """The two logs of one group, used by one thread at a time.

    At the same time one other thread may read the epochs, one may count for the metrics, and one
    may watch and follow the recent records.
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
        self._owners = OwnerHistory()
        self._progress = ProgressFollower()
        self._sums: dict[str, tuple[Mapping[int, Progress], range, Progress]] = {}
        """The progress of each connector, after that of its tasks and their numbers."""
        self.unread: Mapping[str, Lag] = {}
        """What connectors have to read whose last plans are outdated, as a look at it has found."""
        self._lists = EncodedLists()
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
        names, tasks = connector_names(self.group), self.tasks_progress()
        progress = {name: self.progress_of(name, tasks.get(name, NO_TASKS)) for name in names}
        watched = WatchCounts() if self._watch is None else self._watch.counted
        counted = self._rebalances.by_cause, logs, progress, tasks, dict(self._rebalances.losses)
        now_ms = time.time_ns() // 1_000_000
        unread = {
            name: self.unread[name]
            for name in self.unread.keys() & progress.keys()
            if is_lag_outdated(self.group, name, progress[name], now_ms)
        }
        since = {name: self.caught_up_ms(name) for name in names}
        takeovers = self.owners().takeovers
        return GroupFigures(self.group, *counted, unread, watched, since, takeovers)

    def tasks_progress(self) -> TasksProgress:
        """Return the progress of each task; what has not changed is the same object as before.

        Raises `LogError`, `CodecError`.
        """
        offsets, now_ms = self._offset_log(), time.time_ns() // 1_000_000
        names = connector_names(self.group)
        return self._progress.catch_up(offsets, names, now_ms) if offsets else {}

    def rows_since(self, since_ms: int) -> int | None:
        """Return how many rows were committed since a moment; None: it is not known.

        Raises `LogError`, `CodecError`.
        """
        offsets = self._offset_log()
        return rows_since(offsets, since_ms, self.tasks_progress()) if offsets else 0

    def caught_up_ms(self, connector: str) -> int | None:
        """Return since when a connector may have something to read; None: it has never read."""
        return self._progress.caught_up_ms(connector)

    def progress_of(self, connector: str, tasks: Mapping[int, Progress]) -> Progress:
        """Return the progress of a connector, computed again only if that of a task has changed."""
        numbers, known = self.group.task_numbers(connector), self._sums.get(connector)
        if known is None or known[0] is not tasks or known[1] != numbers:
            known = tasks, numbers, connector_progress(tasks, numbers)
            self._sums[connector] = known
        return known[2]

    def count(self) -> None:
        """Count rebalances, so that the next metrics are cheap; raises `LogError`, `CodecError`."""
        self._rebalances.catch_up(self._control)

    def owners(self) -> OwnerHistory:
        """Return who has owned the group; nobody if its log is on one host. As `count`."""
        if self.group.ownership is not None:
            self._owners.catch_up(self._control)
        return self._owners

    @property
    def lists(self) -> EncodedLists:
        """The lists of connectors that are encoded already, as of the last `catch_up`."""
        self._lists.forget(self._follower.take_changed())
        return self._lists

    def offsets_end(self) -> int:
        """Return the end of the offset log, on which progress depends; raises `LogError`."""
        offsets = self._offset_log()
        return 0 if offsets is None else offsets.end()

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

    def recent(self) -> RecentRecords:
        """Return what follows the last records, from some before the end on; as `watch`."""
        return RecentRecords(self._control, self._control.end())

    def events(self, start: int, most: int) -> tuple[Sequence[EventLine], int, int]:
        """Return the lines from an offset on, that offset, and the end; -1: of the latest entries.

        Only the last `most` entries are read. For the thread that reads the epochs. Raises
        `LogError`, `CodecError`.
        """
        oldest = max(self._control.low(), self._control.end() - most)
        watch = GroupWatch(self._control, first := max(start, oldest))
        return watch.read(), first, watch.next

    def revisions(self, connector: str) -> list[ConfigRevision]:
        """Return the configs that a connector has had; as `events`."""
        return read_revisions(self._control, connector)

    def readers(self) -> tuple[LogReader, LogReader | None]:
        """Return the control log, and the offset log, None before it exists; under the lock."""
        return self._control, self._offset_log()

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
