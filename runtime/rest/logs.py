"""What requests are answered from: followers of this node's group logs.

Reads never wait for an actor. Each request first catches up with the log, which is cheap; a
reader belongs to one thread at a time, hence the lock.
"""

import logging
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from urllib.parse import quote, unquote

from ...events.codec import CodecError
from ...events.group import Group
from ...events.log.errors import LogError, NoLogError
from ...events.log.reader import LogReader
from ...projections.downtimes import Downtimes, Measured
from ...projections.explanation import Explanation, explain
from ...projections.follow import Follower
from ...projections.history import History, history_of
from ...projections.metrics import GroupFigures, LogFigures
from ...projections.progress import Progress, connector_progress
from ...projections.rebalances import Rebalances
from ...projections.views import connector_names

LOGGER = logging.getLogger(__name__)
_BLOCK_BYTES = 512


class GroupLogs:
    """The two logs of one group, read by one thread at a time."""

    def __init__(self, group_id: str, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()
        with ExitStack() as undo:
            self._control = undo.enter_context(LogReader.open(folder / "control", group_id))
            self._follower = Follower(group_id, self._control)
            self._open = undo.pop_all()
        self._offsets: LogReader | None = None
        self._rebalances = Rebalances()
        self._downtimes = Downtimes()

    @property
    def group(self) -> Group:
        """The group as of the last catching up."""
        return self._follower.group

    def catch_up(self) -> None:
        """Fold what is new; raises `LogError`, `CodecError`."""
        self._follower.catch_up()

    def progress(self, connector: str) -> Progress:
        """Return how far a connector's tasks have come; raises `LogError`, `CodecError`."""
        offsets = self._offset_log()
        return Progress() if offsets is None else connector_progress(offsets, connector)

    def figures(self) -> GroupFigures:
        """Return what is measured of the group; raises `LogError`, `CodecError`."""
        self._rebalances.catch_up(self._control)
        offsets = self._offset_log()
        logs = {"control": _figures(self._control)}
        if offsets is not None:
            logs["offsets"] = _figures(offsets)
        progress = {name: self.progress(name) for name in connector_names(self.group)}
        return GroupFigures(self.group, self._rebalances.by_cause, logs, progress)

    def history(self, limit: int) -> History:
        """Return the group's last epochs; raises `LogError`, `CodecError`."""
        return history_of(self._control, limit)

    def explain(self, group_epoch: int | None) -> Explanation:
        """Explain an epoch, None for the latest.

        Raises `NotToldError`, `LogError`, `CodecError`.
        """
        return explain(self._control, group_epoch)

    def downtimes(self) -> Measured:
        """Return what past hand-overs took; reads what is new. Raises `LogError`, `CodecError`."""
        self._downtimes.catch_up(self._control)
        return self._downtimes.measured()

    def close(self) -> None:
        """Let go of the logs."""
        self._open.close()

    def _offset_log(self) -> LogReader | None:
        """Return the offset log, which is made after the control log; None until then."""
        if self._offsets is None:
            with suppress(NoLogError):
                reader = LogReader.open(self._folder / "offsets", self.group.group_id)
                self._offsets = self._open.enter_context(reader)
        return self._offsets


class Logs:
    """The groups of a node by their logs; they are opened when they are first asked for."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "groups"
        self._lock = Lock()
        self._groups: dict[str, GroupLogs] = {}

    def group_ids(self) -> list[str]:
        """Return the groups that have a control log."""
        with suppress(FileNotFoundError):
            found = (each.name for each in self._folder.iterdir() if (each / "control").is_dir())
            return sorted(unquote(name) for name in found)
        return []

    @contextmanager
    def reading(self, group_id: str) -> Generator[GroupLogs]:
        """Give one thread the logs of a group, caught up; nobody else reads meanwhile.

        Raises `NoLogError` while the group has none. Logs that can not be read are let go of,
        so that the next request tries anew.
        """
        with self._lock, self._letting_go(group_id):
            yield self._caught_up(group_id)

    @contextmanager
    def measuring(self) -> Generator[list[GroupFigures]]:
        """Give one thread the figures of all groups; those that can not be read are left out."""
        with self._lock:
            yield [each for each in map(self._measured, self.group_ids()) if each is not None]

    def close(self) -> None:
        """Let go of all logs."""
        with self._lock:
            for group_id in list(self._groups):
                self._let_go(group_id)

    def _measured(self, group_id: str) -> GroupFigures | None:
        try:
            with self._letting_go(group_id):
                return self._caught_up(group_id).figures()
        except (LogError, CodecError) as error:
            LOGGER.warning("group %s can not be measured: %s", group_id, error)
            return None

    def _caught_up(self, group_id: str) -> GroupLogs:
        logs = self._groups.get(group_id)
        if logs is None:
            logs = GroupLogs(group_id, self._folder / quote(group_id, safe=""))
            self._groups[group_id] = logs
        logs.catch_up()
        return logs

    @contextmanager
    def _letting_go(self, group_id: str) -> Generator[None]:
        try:
            yield
        except (LogError, CodecError):
            self._let_go(group_id)
            raise

    def _let_go(self, group_id: str) -> None:
        logs = self._groups.pop(group_id, None)
        if logs is not None:
            logs.close()


def _figures(log: LogReader) -> LogFigures:
    blocks = sum(each.stat().st_blocks for each in log.path.iterdir() if each.is_file())
    return LogFigures(log.end(), blocks * _BLOCK_BYTES)
