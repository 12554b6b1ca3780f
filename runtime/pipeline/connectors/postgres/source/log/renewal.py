# pyright: basic
"""Tables that are read anew because the slot is gone: which offsets still count then.

With `snapshot.mode=when_needed` a slot that was dropped, lost or moved on is made anew by itself,
and snapshots begin again. Offsets from before it are of a log that nobody has; they stay where they
are until something moves them, and count no more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from .......events.commits import Document, identity
from .....spi.errors import NotReady
from .....spi.source import BatchPlan, Limit
from ...tables.snapshots import LogSnapshot, parse_lsn
from .positions import slot_partition
from .slot import READ_ANEW, SlotGone


@dataclass(frozen=True)
class CountingOffsets:
    """Which of a connector's offsets count, for its tasks."""

    since: str
    """Those that lie at this LSN, or after it; "": all."""
    renews: bool
    """Whether the connector begins anew by itself if the slot is gone."""
    logged_as_settled: Callable[[], Mapping[str, Document]]
    """What our own log has as published, of all tasks."""

    def settled(self) -> Mapping[str, Document]:
        """Return what is published, of those that count."""
        return offsets_since(self.logged_as_settled(), self.since)

    def plan(
        self,
        fetch: Callable[[Mapping[str, Document], Limit], BatchPlan[pa.Table]],
        offsets: Mapping[str, Document],
        limit: Limit,
    ) -> BatchPlan[pa.Table]:
        """Plan by those that count; its steps begin where the log is, counting or not.

        Raises `NotReady` where the slot is gone and the connector begins anew.
        """
        try:
            plan = fetch(offsets_since(offsets, self.since), limit)
        except SlotGone as gone:
            if not self.renews:
                raise
            told = str(gone).removesuffix(READ_ANEW)
            raise NotReady(f"{told}The connector has the tables read anew") from None
        if not self.since:
            return plan
        at = [replace(each, start=offsets.get(identity(each.partition))) for each in plan.advances]
        return replace(plan, advances=tuple(at))


def offsets_since(offsets: Mapping[str, Document], since: str) -> Mapping[str, Document]:
    """Return the offsets that lie at an LSN or after it; "": all of them."""
    if not since:
        return offsets
    least = parse_lsn(since)
    return {each: offset for each, offset in offsets.items() if _lsn_of(offset) >= least}


def is_overtaken(offsets: Mapping[str, Document], slot: str, confirmed: int) -> bool:
    """Tell whether a slot is at an LSN beyond what was read by it."""
    offset = offsets.get(identity(slot_partition(slot)))
    read = [offset] if offset else [each for each in offsets.values() if "snapshot" in each]
    return any(_lsn_of(each) < confirmed for each in read)


def _lsn_of(offset: Document) -> int:
    get: Any = offset.get
    snapshot = get("snapshot")
    return LogSnapshot.parse(snapshot).lsn if snapshot else parse_lsn(str(get("lsn")))
