"""The two logs of a process that hosts one group or many; only this process writes them.

A process opens both, or, where their commits count in a store, claims both, that of the control
log first: what it holds decides whose the group is. What it holds rests on the offset log, which is
written first, and copied first. What it must not lose of time while it appends is counted here as
well.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeAlias

from ...events.entries.compaction import Compactor
from ...events.entries.group_keys import SHARED_CONTROL
from ...events.entries.retention import UNLIMITED, Retention
from ...events.log.errors import CopiedLogError, OwnerFencedError
from ...events.log.files import data_bytes
from ...events.log.frame import NewEntry
from ...events.log.owner import require_log
from ...events.log.space import DiskSpace
from ...events.log.tables import LogKind
from ...events.log.writer import GroupLog
from ...events.stores.opening import StoreSpec
from ...events.stores.port import Claimant, StoreAwayError
from ...events.stores.stored_log import StoredLog
from ..timing import Now
from .figures import FiguresFile, WorkPhase

LOGGER = logging.getLogger(__name__)
OFFSETS_KEPT: Final = 50_000
"""Entries of the offset log that stay readable one by one; the view keeps the latest of all."""


LogKinds: TypeAlias = tuple[LogKind, LogKind]


class OpenLogs(NamedTuple):
    """The open logs of a process."""

    control: GroupLog
    offsets: GroupLog
    is_shared: bool
    """Whether many groups share them."""


class LogCopies(NamedTuple):
    """Both logs of a process as copies of those in a store, until they are claimed."""

    control: StoredLog
    offsets: StoredLog
    is_shared: bool

    @classmethod
    def open(cls, folder: Path, log_id: str, kinds: LogKinds, store: StoreSpec) -> Self:
        """Open the copies of both logs, or create them.

        The first kind is that of the control log. Raises as `StoredLog.open_copy`.
        """
        with ExitStack() as undo:
            control, offsets = (
                undo.enter_context(_open_copy(folder / name, log_id, kind, store))
                for name, kind in zip(("control", "offsets"), kinds, strict=True)
            )
            undo.pop_all()
        control.beside = offsets
        return cls(control, offsets, is_shared=kinds[0] == SHARED_CONTROL)

    def claim(
        self, claimant: Claimant, silence_seconds: float, after: int | None = None
    ) -> OpenLogs | None:
        """Claim both logs, unless that of the control log is refused as `StoredLog.claim` says."""
        if not self.control.claim(claimant, silence_seconds, after):
            return None
        while not self.offsets.claim(claimant, 0.0):
            LOGGER.warning("another node has claimed %s meanwhile", self.offsets.path)
        return OpenLogs(*self)

    def close(self) -> None:
        """Close both copies."""
        self.control.close()
        self.offsets.close()


def _open_copy(path: Path, log_id: str, kind: LogKind, store: StoreSpec) -> StoredLog:
    return StoredLog.open_copy(path, log_id, kind, store.open(f"{log_id}-{path.name}"))


def open_logs(
    folder: Path, log_id: str, kinds: LogKinds, store: StoreSpec | None = None, *, had_logs: bool
) -> OpenLogs:
    """Open both logs, or create them; the first kind is that of the control log.

    With a store they are claimed there, whoever owns them: raises `OwnerFencedError` unless this
    node owns the workers' group. Without, raises `NoLogError` if one is missing beside the other,
    as without its offsets a group would have all rows read again; and `CopiedLogError`.
    """
    if store is not None:
        return _claim_logs(folder, log_id, kinds, store)
    offsets = folder / "offsets"
    had_logs = had_logs or data_bytes(offsets) > 0  # they are made after the control log
    control = _open_log(folder / "control", log_id, kinds[0], had_logs=had_logs)
    had_logs = had_logs or control.end > 0
    pair = control, _open_log(offsets, log_id, kinds[1], had_logs=had_logs)
    return OpenLogs(*pair, is_shared=kinds[0] == SHARED_CONTROL)


def _claim_logs(folder: Path, log_id: str, kinds: LogKinds, store: StoreSpec) -> OpenLogs:
    _require_owner(log_id, store)
    copies = LogCopies.open(folder, log_id, kinds, store)
    while (pair := copies.claim(store.claimant, 0.0)) is None:
        LOGGER.warning("another node has claimed the logs of %s meanwhile", log_id)
    return pair


def _require_owner(log_id: str, store: StoreSpec) -> None:
    """Raise `OwnerFencedError` unless this node owns the group that its other logs go with."""
    with closing(store.open(f"{store.group_id}-control")) as log:
        owner = log.owner()
    if owner is None or owner.claimant.folder != store.folder:
        who = owner.claimant.node if owner else "nobody"
        raise OwnerFencedError(
            f"the logs of {log_id} go with the group {store.group_id}, which {who} owns: they are"
            " not opened here"
        )


def _open_log(path: Path, log_id: str, kind: LogKind, *, had_logs: bool) -> GroupLog:
    if had_logs:
        require_log(path)
    log = GroupLog.open_writer(path, log_id, kind)
    if log.store_mark:
        log.close()
        raise CopiedLogError(
            f"{path} is a copy of a log in a store, which may have more, and log.store is not set:"
            " nothing was changed. Set log.store as it was; or end all nodes of the cluster and run"
            " `fairlead log withdraw` here, which makes it the log of one host with all that counts"
        )
    return log


class HostedLogs:
    """The two logs of a process, with one group or many; only this process writes them."""

    def __init__(self, logs: OpenLogs, retention: Retention = UNLIMITED) -> None:
        self.control, self.offsets, is_shared = logs
        self.figures = FiguresFile()
        """Where the time of appends is counted."""
        self.append_seconds = 0.0
        """How long all appends together took."""
        self._offsets_low = 0
        """The first entry of the offset log that is readable by itself, as of the last trim."""
        self.retention = retention
        """How much of the history is kept."""
        self._compactor = Compactor(self.control, retention, is_shared=is_shared)
        self._control_low = self.control.low()
        """The first entry of the control log that is left, as of the last log line about it."""

    @property
    def space(self) -> DiskSpace:
        """How much may be written."""
        return self.control.space

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Make commits durable, and trim the oldest entries."""
        if entries:
            self._append(self.offsets, entries, now)
            self.trim_offsets()

    def trim_offsets(self) -> None:
        """Trim the oldest entries of the offset log, if there are enough of them."""
        keep_from = self.offsets.end - OFFSETS_KEPT
        if keep_from - self._offsets_low >= OFFSETS_KEPT // 10:
            self._offsets_low = self.offsets.trim(keep_from)
            LOGGER.info("the offset log is compacted: it begins at %d now", self._offsets_low)

    def compact_store(self) -> None:
        """Put a snapshot of the offsets in the place of their commits in the store, if it is due.

        Raises as an append.
        """
        try:
            if isinstance(self.offsets, StoredLog) and self.offsets.compact_store(self.beat):
                LOGGER.info("the store has a snapshot of the offsets up to %d", self.offsets.end)
        except StoreAwayError as error:
            LOGGER.warning("the commits in the store are not compacted for now: %s", error)

    @property
    def ends(self) -> tuple[int, int]:
        """The ends of both logs."""
        return self.control.end, self.offsets.end

    @property
    def is_stored(self) -> bool:
        """Whether their commits count in a store."""
        return isinstance(self.control, StoredLog)

    def beat(self) -> None:
        """Confirm in the store that this process is the owner, if there is one.

        Raises `OwnerFencedError`, `StoreAwayError`.
        """
        if isinstance(self.control, StoredLog):
            self.control.beat()

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Make records of the control log durable."""
        if entries:
            self._append(self.control, entries, now)

    def compact(self, now: Now) -> bool:
        """Trim one slice of history that exceeds the retention; return whether there is more.

        On a full disk nothing is trimmed: pages that are freed are no space for others.
        """
        if self.space.is_low:
            return False
        if self._compactor.step(now.wall_ms):
            return True
        self.log_compaction()
        return False

    def log_compaction(self) -> None:
        """Log where the control log begins now, if that is new."""
        if (low := self.control.low()) != self._control_low:
            text = "the history before entry %d of %s was compacted: `history` has its summary"
            LOGGER.info(text, low, self.control.path)
            self._control_low = low

    def _append(self, log: GroupLog, entries: Sequence[NewEntry], now: Now) -> None:
        """Append entries; if space is low, only those that cannot wait."""
        began = time.perf_counter()
        log.append(log.end, entries, now.wall_ms, into_reserve=True)
        took = time.perf_counter() - began
        self.figures.observe(WorkPhase.APPEND, took)
        self.append_seconds += took
        LOGGER.debug("%d entries are durable in %s, up to %d", len(entries), log.path, log.end)

    def close(self) -> None:
        """Close both logs."""
        self.control.close()
        self.offsets.close()
