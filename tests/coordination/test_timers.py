"""Sessions and revocations: when they end, and that a restart gives them their full time."""

from fairlead.events.model import Cause, MemberState, Why
from fairlead_tests.coordination.driver import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    CoordinatorDriver,
    told,
)


def join(driver: CoordinatorDriver, *members: str) -> None:
    """Have members join an empty group."""
    for member in members:
        driver.asks(driver.joining(member))


def last_cause(driver: CoordinatorDriver) -> Cause:
    """Why the group epoch rose the last time."""
    assert driver.group.bump is not None
    return driver.group.bump.cause


def test_a_session_counts_from_the_arrival_of_a_request_not_from_its_answer(
    driver: CoordinatorDriver,
) -> None:
    join(driver, "a")
    driver.beat("a")
    driver.compute("a")
    driver.beat("a")
    assert told(driver.passes(HEARTBEAT_MS)) == {"a": ("NONE", None)}
    driver.passes(SESSION_MS - HEARTBEAT_MS - 1)
    assert set(driver.group.members) == {"a"}
    driver.passes(1)
    assert (set(driver.group.members), last_cause(driver)) == (
        set(),
        Cause(Why.SESSION_EXPIRED, "http://a"),
    )


def test_who_beats_keeps_its_seat_and_who_does_not_goes(driver: CoordinatorDriver) -> None:
    join(driver, "a", "b")
    for _ in range(5):
        driver.passes(HEARTBEAT_MS)
        driver.asks(driver.joining("a"))
    assert set(driver.group.members) == {"a"}


def test_a_request_that_is_refused_keeps_no_session_alive(driver: CoordinatorDriver) -> None:
    join(driver, "a")
    driver.passes(SESSION_MS - 1)
    said = driver.asks(driver.request("a", 99))
    assert told(said) == {"a": ("FENCED_MEMBER_EPOCH", None)}
    driver.passes(1)
    assert driver.group.members == {}


def test_a_request_that_is_not_new_keeps_no_session_alive(driver: CoordinatorDriver) -> None:
    join(driver, "a")
    late, newest = driver.joining("a"), driver.joining("a")
    driver.asks(newest)
    driver.passes(SESSION_MS - 1)
    driver.asks(late, newest)
    driver.passes(1)
    assert driver.group.members == {}


def test_after_a_restart_every_member_has_a_full_session(driver: CoordinatorDriver) -> None:
    join(driver, "a", "b")
    driver.passes(SESSION_MS - 1)
    driver.open()
    driver.passes(SESSION_MS - 1)
    assert set(driver.group.members) == {"a", "b"}
    driver.passes(1)
    assert driver.group.members == {}


def revoking(driver: CoordinatorDriver) -> None:
    """Bring `a` to where it has to give up one of its two connectors for `b`."""
    join(driver, "a")
    driver.put("A")
    driver.put("B")
    driver.beat("a")
    driver.compute("a")
    driver.beat("a")
    join(driver, "b")
    driver.beat("a")
    driver.compute("a")
    driver.asks(driver.full("a", "A B"))
    assert driver.group.members["a"].current.state is MemberState.UNREVOKED


def beats(driver: CoordinatorDriver, until_ms: int) -> None:
    """Let both members beat until a moment; `a` goes on running everything."""
    while driver.now_ms < until_ms:
        driver.passes(min(HEARTBEAT_MS, until_ms - driver.now_ms))
        for member in sorted(driver.group.members):
            text = "A B" if member == "a" else ""
            driver.asks(driver.full(member, text))


def test_who_does_not_give_up_in_time_is_removed_though_it_beats(driver: CoordinatorDriver) -> None:
    revoking(driver)
    asked_ms = driver.now_ms
    beats(driver, asked_ms + REBALANCE_MS - 1)
    assert set(driver.group.members) == {"a", "b"}
    driver.passes(1)
    assert set(driver.group.members) == {"b"}
    assert last_cause(driver) == Cause(Why.REBALANCE_EXPIRED, "http://a")


def test_who_gives_up_in_time_stays(driver: CoordinatorDriver) -> None:
    revoking(driver)
    (kept,) = [each.connector for each in driver.group.target_of["a"]]
    driver.asks(driver.full("a", kept))
    assert driver.group.members["a"].current.state is MemberState.STABLE
    until_ms = driver.now_ms + REBALANCE_MS + 1
    while driver.now_ms < until_ms:
        driver.passes(HEARTBEAT_MS)
        driver.asks(driver.full("a", kept), driver.full("b", "A B".replace(kept, "").strip()))
    assert set(driver.group.members) == {"a", "b"}


def test_after_a_restart_a_revocation_has_its_full_time(driver: CoordinatorDriver) -> None:
    revoking(driver)
    beats(driver, driver.now_ms + REBALANCE_MS - 1)
    driver.open()
    again_ms = driver.now_ms
    beats(driver, again_ms + REBALANCE_MS - 1)
    assert set(driver.group.members) == {"a", "b"}
    driver.passes(1)
    assert set(driver.group.members) == {"b"}


def test_after_a_restart_the_computation_is_asked_for_again(driver: CoordinatorDriver) -> None:
    driver.asks(driver.joining("a"))
    assert driver.beat("a") == []
    driver.open()
    assert told(driver.beat("a")) == {"a": ("COMPUTE_ASSIGNMENT", "")}


def test_a_group_that_is_left_alone_writes_nothing(driver: CoordinatorDriver) -> None:
    join(driver, "a")
    driver.beat("a")
    driver.compute("a")
    end = driver.control.end
    for _ in range(10):
        driver.beat("a")
        driver.passes(HEARTBEAT_MS)
    assert driver.control.end == end
