"""Deletes expired offsets of a group, and deletes an empty group with its last ones.

A group is checked at most once per `offsets.retention.check.interval.ms`, and only if an offset may
have expired since: each check finds the time at which the next offset expires. Later records of the
group may make that earlier, so it is checked again after them. Later commits need no check, since
they expire later anyway.
"""

import logging
from collections.abc import Callable
from typing import Final
from zlib import crc32

from ....events.catalogue import key_of
from ....events.kafka.consumers import ConsumerOffset
from ....events.records import Tombstone
from ...group.commit import OffsetLedger
from ...group.sides import Sides
from ...timing import Now
from .expiry import find_expired, find_use

LOGGER = logging.getLogger(__name__)

LONGEST_WAIT_MS: Final = 86_400_000
"""The maximum interval of checks, since the wall clock may be set meanwhile."""


class OffsetCleanUp:
    """The checks of one group."""

    def __init__(
        self, sides: Sides, ledger: OffsetLedger, remove: Callable[[Now], None], steady_ms: int
    ) -> None:
        """`remove` deletes the group. The first checks of many groups are spread over time."""
        self._sides, self._ledger, self._remove = sides, ledger, remove
        group_id = sides.group.group_id.encode(errors="surrogatepass")
        self._checked_ms = steady_ms + crc32(group_id) % self._interval_ms
        """The time of the last check, steady clock."""
        self._wait_ms = self._interval_ms
        """The time until the next check, if the group has no new records."""
        self._end = sides.group.end
        """The end of the group's log at the last check."""

    @property
    def _interval_ms(self) -> int:
        return self._sides.modern.settings.offsets_check_interval_ms

    def next_ms(self) -> int:
        """Return when to check next, steady clock."""
        is_unchanged = self._end == self._sides.group.end
        return self._checked_ms + (self._wait_ms if is_unchanged else self._interval_ms)

    def pass_time(self, now: Now) -> None:
        """Check if it is time."""
        if now.steady_ms >= self.next_ms():
            self._wait_ms = max(self._interval_ms, self._check(now))
            self._checked_ms, self._end = now.steady_ms, self._sides.group.end

    def _check(self, now: Now) -> int:
        """Delete expired offsets; return the milliseconds until the next ones expire."""
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
