"""A rebalance and a move are counted once, when it is known how long they took."""

from collections import deque
from unittest.mock import Mock

import pytest

from fairlead.projections.watch.group import Durations, GroupWatch, WatchCounts


def watch() -> GroupWatch:
    made = object.__new__(GroupWatch)
    made.counted = WatchCounts()
    made._rebalances, made._moves = deque(), deque()
    return made


def counted(durations: Durations) -> tuple[int, int]:
    return sum(durations.counts), durations.total_ms


@pytest.mark.parametrize(
    ("took_ms", "target_change", "is_open", "times"),
    [(7, Mock(), False, 1), (0, Mock(), False, 1), (None, Mock(), True, 0), (None, None, False, 0)],
)
def test_a_rebalance_is_counted_once_its_end_is_known_and_waited_for_as_long_as_it_may_end(
    took_ms: int | None, target_change: object, is_open: bool, times: int
) -> None:
    group = watch()
    reading = Mock(explain=lambda: Mock(total_ms=took_ms), report=Mock(target_change=target_change))
    group._rebalances.append(reading)
    group._settle()
    group._settle()
    assert (len(group._rebalances), counted(group.counted.rebalances)) == (
        int(is_open),
        (times, took_ms or 0),
    )


@pytest.mark.parametrize(
    ("downtime_ms", "at_least_ms", "is_pending", "is_open", "took_ms"),
    [
        (5, None, True, False, 5),
        (None, 6, True, False, 6),
        (0, 6, True, False, 0),
        (None, None, True, True, None),
        (None, None, False, False, None),
    ],
)
def test_a_move_is_counted_once_its_downtime_is_known_if_only_at_least(
    downtime_ms: int | None,
    at_least_ms: int | None,
    is_pending: bool,
    is_open: bool,
    took_ms: int | None,
) -> None:
    group = watch()
    handover = Mock(downtime_ms=downtime_ms, downtime_at_least_ms=at_least_ms)
    group._moves.append(Mock(handover=handover, is_pending=is_pending))
    group._settle()
    group._settle()
    times = int(took_ms is not None)
    assert (len(group._moves), counted(group.counted.moves)) == (
        int(is_open),
        (times, took_ms or 0),
    )
