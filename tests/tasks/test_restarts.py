"""A failure is answered by a restart, later each time, until the budget is used up."""

import pytest

from fairlead.runtime.connectors.spi import Limit
from fairlead.runtime.tasks.batch_size import BatchSize
from fairlead.runtime.tasks.restarts import RestartPolicy, Restarts

MB = 1 << 20


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def highest(_low: float, high: float) -> float:
    return high


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    monkeypatch.setattr("random.uniform", highest)
    return clock


@pytest.mark.usefixtures("clock")
def test_waits_double_up_to_the_longest_until_the_budget_is_used_up() -> None:
    restarts = Restarts(RestartPolicy(initial_s=0.5, longest_s=3, budget=5))
    delays = [restarts.failed("x") for _ in range(6)]
    assert delays == [0.5, 1, 2, 3, 3, None]


def test_a_failure_is_forgiven_after_the_window(clock: Clock) -> None:
    restarts = Restarts(RestartPolicy(initial_s=0.5, budget=1, window_s=600))
    assert (restarts.failed("x"), restarts.failed("x")) == (0.5, None)
    clock.now = 601
    assert (restarts.failed("x"), restarts.count) == (0.5, 1)


def test_the_policy_comes_from_the_connectors_config() -> None:
    config = {
        "name": "c",
        "connector.class": "X",
        "task.restart.backoff.initial.ms": "100",
        "task.restart.backoff.max.ms": "2000",
        "task.restart.budget": "7",
        "task.restart.window.ms": "60000",
    }
    assert RestartPolicy.of(config) == RestartPolicy(0.1, 2.0, 7, 60.0)
    assert RestartPolicy.of({"tasks.max": "none"}) == RestartPolicy()


def test_batches_grow_while_they_are_quick_and_shrink_when_they_are_slow() -> None:
    size = BatchSize(Limit(24, 64 * MB))
    seen = [size.limit]
    for seconds, backlog in ((0.1, True), (0.1, True), (0.1, False), (1.5, True), (2.5, True)):
        size.learn(seconds, backlog=backlog)
        seen.append(size.limit)
    grown = Limit(24, 16 * MB)
    assert seen == [Limit(8, 4 * MB), Limit(16, 8 * MB), grown, grown, grown, Limit(12, 8 * MB)]


def test_a_slow_batch_shrinks_none_below_what_a_batch_costs_anyway() -> None:
    size = BatchSize(Limit(24, 64 * MB))
    size.learn(60, backlog=True)
    assert size.limit == Limit(8, 4 * MB)


def test_a_batch_keeps_to_its_ceiling_and_never_shrinks_to_nothing() -> None:
    size = BatchSize(Limit(1, 1))
    size.learn(60, backlog=True)
    assert size.limit == Limit(1, 1)
