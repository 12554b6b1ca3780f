"""The timers of the data's table, on the coordinator's own clock.

The data goes by a session of 45 s (PROTOCOL §12 names it as superseded by 10 s): so does the
group here.
"""
# pyright: basic

from dataclasses import replace
from typing import Any

from fairlead.actors.messages.timers import ExpireRebalance
from fairlead.events.model import Cause, MemberState, Why
from fairlead.events.records import (
    GroupMetadata,
)
from fairlead_tests.conformance.played import plays
from fairlead_tests.coordination.office import SETTINGS, WALL_MS, Office

SESSION_MS, BEAT_MS, TIMEOUT_MS = 45_000, 5_000, 12_000


def joined(office: Office, *members: str) -> None:
    """Let members join a group that goes by the data's session."""
    office.settings = replace(SETTINGS, session_timeout_ms=SESSION_MS)
    office.open()
    for member in members:
        office.asks(office.joining(member))


def seated(office: Office) -> set[str]:
    """Who has a seat."""
    return set(office.group.members)


def revoking(office: Office) -> None:
    """Have `m1` hold three connectors, and a target take one away for `m2`."""
    joined(office, "m1")
    for name in "ABC":
        office.put(name)
    office.compute("m1")
    office.asks(office.joining("m1"), office.full("m1", "A B C"))
    joined(office, "m2")
    office.beat("m1")
    office.compute("m1")
    asked = replace(office.full("m1", "A B C"), rebalance_timeout_ms=TIMEOUT_MS)
    office.asks(asked)
    assert state(office, "m1") is MemberState.UNREVOKED


def state(office: Office, member: str) -> MemberState:
    """How far a member has come."""
    return office.group.members[member].current.state


def beats(office: Office, milliseconds: int) -> None:
    """Let time pass in which `m1` beats and gives nothing up, and so does `m2`."""
    end = office.now_ms + milliseconds
    while office.now_ms < end:
        office.passes(min(BEAT_MS, end - office.now_ms))
        for member in sorted(office.group.members):
            owned = "A B C" if member == "m1" else ""
            full = replace(office.full(member, owned), rebalance_timeout_ms=-1)
            office.asks(full)


@plays("timers", "session-lifecycle")
def session_lifecycle(office: Office, _: Any) -> None:
    joined(office, "m1")
    office.passes(BEAT_MS)
    office.asks(office.joining("m1"))
    office.passes(SESSION_MS - 1)
    assert seated(office) == {"m1"}
    office.passes(1)
    assert seated(office) == set()
    joined(office, "m1", "m2")
    office.asks(office.request("m1", -1))
    end = office.group.end
    office.passes(SESSION_MS - 1)
    assert office.group.end == end


@plays("timers", "session-expiry")
def session_expiry(office: Office, _: Any) -> None:
    joined(office, "m1")
    end = office.group.end
    office.passes(SESSION_MS + 1)
    # The target is one record (PROTOCOL §12): no third tombstone.
    assert office.group.end == end + 3
    cause = Cause(Why.SESSION_EXPIRED, "http://m1")
    now_ms = WALL_MS + office.now_ms
    assert office.group.bump == GroupMetadata(2, cause, now_ms, since_ms=WALL_MS)


@plays("timers", "fenced-request-does-not-refresh")
def fenced_does_not_refresh(office: Office, _: Any) -> None:
    joined(office, "m1")
    office.passes(SESSION_MS - 1)
    office.asks(office.request("m1", 7))
    office.passes(1)
    assert seated(office) == set()


@plays("timers", "rebalance-lifecycle")
def rebalance_lifecycle(office: Office, _: Any) -> None:
    revoking(office)
    asked_at = office.group.members["m1"].offset
    assert office.group.members["m1"].metadata.rebalance_timeout_ms == TIMEOUT_MS
    kept = sorted(each.connector for each in office.group.target_of["m1"])
    office.asks(replace(office.full("m1", " ".join(kept)), rebalance_timeout_ms=TIMEOUT_MS))
    assert state(office, "m1") is MemberState.STABLE
    assert office.group.members["m1"].current.member_epoch == office.group.assignment_epoch
    stale = ExpireRebalance("m1", asked_at)
    assert office.coordinator._decide(stale, office.now).records == ()
    office.passes(TIMEOUT_MS)
    assert seated(office) == {"m1", "m2"}


@plays("timers", "rebalance-expiry", "rebalance-timer-not-extended")
def rebalance_expiry(office: Office, _: Any) -> None:
    revoking(office)
    epoch = office.group.group_epoch
    beats(office, TIMEOUT_MS - 1)
    assert seated(office) == {"m1", "m2"}
    office.passes(1)
    assert (seated(office), office.group.group_epoch) == ({"m2"}, epoch + 1)
    assert office.group.bump is not None
    assert office.group.bump.cause == Cause(Why.REBALANCE_EXPIRED, "http://m1")


@plays("timers", "second-revocation-restarts-timer")
def second_revocation(office: Office, _: Any) -> None:
    revoking(office)
    first = office.group.members["m1"].current
    beats(office, TIMEOUT_MS - 1)
    office.asks(office.joining("m3"))
    office.compute("m1")
    kept = " ".join(each.connector for each in first.assigned)
    office.asks(replace(office.full("m1", kept), rebalance_timeout_ms=-1))
    second = office.group.members["m1"].current
    # PROTOCOL §4 and §12: a second revocation in a row keeps the epoch.
    assert (second.state, second.member_epoch) == (MemberState.UNREVOKED, first.member_epoch)
    assert second.pending.keys() <= first.assigned.keys()
    office.passes(TIMEOUT_MS - 1)
    assert "m1" in seated(office)
    office.passes(1)
    assert "m1" not in seated(office)


@plays("timers", "unreleased-has-no-timer")
def unreleased_has_no_timer(office: Office, _: Any) -> None:
    revoking(office)
    office.asks(office.joining("m2"))
    assert state(office, "m2") is MemberState.UNRELEASED
    beats(office, TIMEOUT_MS)
    assert seated(office) == {"m2"}


@plays("timers", "failover")
def failover(office: Office, _: Any) -> None:
    revoking(office)
    office.passes(TIMEOUT_MS - 1)
    office.open()
    office.passes(TIMEOUT_MS - 1)
    assert seated(office) == {"m1", "m2"}
    office.passes(1)
    assert seated(office) == {"m2"}
    office.passes(SESSION_MS - TIMEOUT_MS - 1)
    assert seated(office) == {"m2"}
    office.passes(1)
    assert seated(office) == set()
