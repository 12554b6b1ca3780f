"""The timers of the data's table, on the coordinator's own clock.

The data goes by a session of 45 s (PROTOCOL §12 names it as superseded by 10 s): so does the
group here.
"""
# pyright: basic

from dataclasses import replace
from typing import Any

from fairlead.actors.messages.commands import ExpireRebalance
from fairlead.events.model import Cause, MemberState, Why
from fairlead.events.records import (
    GroupMetadata,
)
from fairlead_tests.conformance.played import plays
from fairlead_tests.coordination.driver import SETTINGS, WALL_MS, CoordinatorDriver

SESSION_MS, BEAT_MS, TIMEOUT_MS = 45_000, 5_000, 12_000


def joined(driver: CoordinatorDriver, *members: str) -> None:
    """Let members join a group with the data's session timeout."""
    driver.settings = replace(SETTINGS, session_timeout_ms=SESSION_MS)
    driver.open()
    for member in members:
        driver.asks(driver.joining(member))


def seated(driver: CoordinatorDriver) -> set[str]:
    """Return the members with a seat."""
    return set(driver.group.members)


def revoking(driver: CoordinatorDriver) -> None:
    """Give `m1` three connectors, and a target that moves one to `m2`."""
    joined(driver, "m1")
    for name in "ABC":
        driver.put(name)
    driver.compute("m1")
    driver.asks(driver.joining("m1"), driver.full("m1", "A B C"))
    joined(driver, "m2")
    driver.beat("m1")
    driver.compute("m1")
    asked = replace(driver.full("m1", "A B C"), rebalance_timeout_ms=TIMEOUT_MS)
    driver.asks(asked)
    assert state(driver, "m1") is MemberState.UNREVOKED


def state(driver: CoordinatorDriver, member: str) -> MemberState:
    """The current assignment of a member."""
    return driver.group.members[member].current.state


def beats(driver: CoordinatorDriver, milliseconds: int) -> None:
    """Advance the clock, with heartbeats of `m1`, which revokes nothing, and of `m2`."""
    end = driver.now_ms + milliseconds
    while driver.now_ms < end:
        driver.passes(min(BEAT_MS, end - driver.now_ms))
        for member in sorted(driver.group.members):
            owned = "A B C" if member == "m1" else ""
            full = replace(driver.full(member, owned), rebalance_timeout_ms=-1)
            driver.asks(full)


@plays("timers", "session-lifecycle")
def session_lifecycle(driver: CoordinatorDriver, _: Any) -> None:
    joined(driver, "m1")
    driver.passes(BEAT_MS)
    driver.asks(driver.joining("m1"))
    driver.passes(SESSION_MS - 1)
    assert seated(driver) == {"m1"}
    driver.passes(1)
    assert seated(driver) == set()
    joined(driver, "m1", "m2")
    driver.asks(driver.request("m1", -1))
    end = driver.group.end
    driver.passes(SESSION_MS - 1)
    assert driver.group.end == end


@plays("timers", "session-expiry")
def session_expiry(driver: CoordinatorDriver, _: Any) -> None:
    joined(driver, "m1")
    end = driver.group.end
    driver.passes(SESSION_MS + 1)
    # The target is one record (PROTOCOL §12): no third tombstone.
    assert driver.group.end == end + 3
    cause = Cause(Why.SESSION_EXPIRED, "http://m1")
    now_ms = WALL_MS + driver.now_ms
    assert driver.group.bump == GroupMetadata(2, cause, now_ms, since_ms=WALL_MS)


@plays("timers", "fenced-request-does-not-refresh")
def fenced_does_not_refresh(driver: CoordinatorDriver, _: Any) -> None:
    joined(driver, "m1")
    driver.passes(SESSION_MS - 1)
    driver.asks(driver.request("m1", 7))
    driver.passes(1)
    assert seated(driver) == set()


@plays("timers", "rebalance-lifecycle")
def rebalance_lifecycle(driver: CoordinatorDriver, _: Any) -> None:
    revoking(driver)
    asked_at = driver.group.members["m1"].offset
    assert driver.group.members["m1"].metadata.rebalance_timeout_ms == TIMEOUT_MS
    kept = sorted(each.connector for each in driver.group.target_of["m1"])
    driver.asks(replace(driver.full("m1", " ".join(kept)), rebalance_timeout_ms=TIMEOUT_MS))
    assert state(driver, "m1") is MemberState.STABLE
    assert driver.group.members["m1"].current.member_epoch == driver.group.assignment_epoch
    stale = ExpireRebalance("m1", asked_at)
    assert driver.coordinator._decide(stale, driver.now).records == ()
    driver.passes(TIMEOUT_MS)
    assert seated(driver) == {"m1", "m2"}


@plays("timers", "rebalance-expiry", "rebalance-timer-not-extended")
def rebalance_expiry(driver: CoordinatorDriver, _: Any) -> None:
    revoking(driver)
    epoch = driver.group.group_epoch
    beats(driver, TIMEOUT_MS - 1)
    assert seated(driver) == {"m1", "m2"}
    driver.passes(1)
    assert (seated(driver), driver.group.group_epoch) == ({"m2"}, epoch + 1)
    assert driver.group.bump is not None
    assert driver.group.bump.cause == Cause(Why.REBALANCE_EXPIRED, "http://m1")


@plays("timers", "second-revocation-restarts-timer")
def second_revocation(driver: CoordinatorDriver, _: Any) -> None:
    revoking(driver)
    first = driver.group.members["m1"].current
    beats(driver, TIMEOUT_MS - 1)
    driver.asks(driver.joining("m3"))
    driver.compute("m1")
    kept = " ".join(each.connector for each in first.assigned)
    driver.asks(replace(driver.full("m1", kept), rebalance_timeout_ms=-1))
    second = driver.group.members["m1"].current
    # PROTOCOL §4 and §12: a second revocation in a row keeps the epoch.
    assert (second.state, second.member_epoch) == (MemberState.UNREVOKED, first.member_epoch)
    assert second.pending.keys() <= first.assigned.keys()
    driver.passes(TIMEOUT_MS - 1)
    assert "m1" in seated(driver)
    driver.passes(1)
    assert "m1" not in seated(driver)


@plays("timers", "unreleased-has-no-timer")
def unreleased_has_no_timer(driver: CoordinatorDriver, _: Any) -> None:
    revoking(driver)
    driver.asks(driver.joining("m2"))
    assert state(driver, "m2") is MemberState.UNRELEASED
    beats(driver, TIMEOUT_MS)
    assert seated(driver) == {"m2"}


@plays("timers", "failover")
def failover(driver: CoordinatorDriver, _: Any) -> None:
    revoking(driver)
    driver.passes(TIMEOUT_MS - 1)
    driver.open()
    driver.passes(TIMEOUT_MS - 1)
    assert seated(driver) == {"m1", "m2"}
    driver.passes(1)
    assert seated(driver) == {"m2"}
    driver.passes(SESSION_MS - TIMEOUT_MS - 1)
    assert seated(driver) == {"m2"}
    driver.passes(1)
    assert seated(driver) == set()
