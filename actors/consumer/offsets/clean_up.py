"""Deletes expired offsets of a group, and deletes an empty group with its last ones.

A group is looked at once in `offsets.retention.check.interval.ms` at most, and only if an offset
may have expired since: each look finds when the first offset will, and whatever is written of the
group after that may make it sooner. Offsets that are committed meanwhile expire later anyway.
"""

import logging
from collections.abc import Callable
from typing import Final
from zlib import crc32

from ....events.catalogue import key_of
from ....events.kafka.consumers import ConsumerOffset
from ....events.records import Tombstone
from ...group.commit import OffsetLedger
from ...group.shard import Now
from ...group.sides import Sides
from .expiry import find_expired, find_use

LOGGER = logging.getLogger(__name__)

LONGEST_WAIT_MS: Final = 86_400_000
"""How long no look is taken at most: the clock on the wall may be set meanwhile."""


class OffsetCleanUp:
    """The looks at the offsets of one group."""

    def __init__(
        self, sides: Sides, ledger: OffsetLedger, remove: Callable[[Now], None], steady_ms: int
    ) -> None:
        """`remove` deletes the group. The first looks at many groups are spread over time."""
        self._sides, self._ledger, self._remove = sides, ledger, remove
        group_id = sides.group.group_id.encode(errors="surrogatepass")
        self._looked_ms = steady_ms + crc32(group_id) % self._interval_ms
        """When the last look was taken, steady clock."""
        self._wait_ms = self._interval_ms
        """How long no other look is needed if nothing is written of the group."""
        self._end = sides.group.end
        """Where the group's log ended at that look."""

    @property
    def _interval_ms(self) -> int:
        return self._sides.modern.settings.offsets_check_interval_ms

    def next_ms(self) -> int:
        """Return when to look next, steady clock."""
        is_as_it_was = self._end == self._sides.group.end
        return self._looked_ms + (self._wait_ms if is_as_it_was else self._interval_ms)

    def pass_time(self, now: Now) -> None:
        """Look if it is time."""
        if now.steady_ms >= self.next_ms():
            self._wait_ms = max(self._interval_ms, self._look(now))
            self._looked_ms, self._end = now.steady_ms, self._sides.group.end

    def _look(self, now: Now) -> int:
        """Delete what has expired; return in how many milliseconds more may expire."""
        sides = self._sides
        use = find_use(sides.group, sides.classic)
        if use is None or sides.room.is_low:
            return 0
        retention_ms = sides.modern.settings.offsets_retention_ms
        found = find_expired(self._ledger.consumer_offsets(), use, retention_ms, now.wall_ms)
        is_over = use.is_over and not found.is_any_left
        if is_over:
            self._remove(now)
        else:
            self._ledger.write([Tombstone(ConsumerOffset, key_of(each)) for each in found.offsets])
        if found.offsets or is_over:
            what = "is deleted" if is_over else "goes on"
            count, name = len(found.offsets), sides.group.group_id
            LOGGER.info("%d offsets have expired of group %s, which %s", count, name, what)
        left_ms = retention_ms if found.next_ms is None else found.next_ms - now.wall_ms
        return min(left_ms, retention_ms, LONGEST_WAIT_MS)
