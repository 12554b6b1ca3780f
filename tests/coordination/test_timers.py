"""Sessions and revocations: when they end, and that a restart gives them their full time."""

from fairlead.events.model import Cause, MemberState, Why
from fairlead_tests.coordination.office import HEARTBEAT_MS, REBALANCE_MS, SESSION_MS, Office, told


def join(office: Office, *members: str) -> None:
    """Have members join an empty group."""
    for member in members:
        office.asks(office.joining(member))


def last_cause(office: Office) -> Cause:
    """Why the group epoch rose the last time."""
    assert office.group.bump is not None
    return office.group.bump.cause


def test_a_session_counts_from_the_arrival_of_a_request_not_from_its_answer(
    office: Office,
) -> None:
    join(office, "a")
    office.beat("a")
    office.compute("a")
    office.beat("a")
    assert told(office.passes(HEARTBEAT_MS)) == {"a": ("NONE", None)}
    office.passes(SESSION_MS - HEARTBEAT_MS - 1)
    assert set(office.group.members) == {"a"}
    office.passes(1)
    assert (set(office.group.members), last_cause(office)) == (
        set(),
        Cause(Why.SESSION_EXPIRED, "http://a"),
    )


def test_who_beats_keeps_its_seat_and_who_does_not_goes(office: Office) -> None:
    join(office, "a", "b")
    for _ in range(5):
        office.passes(HEARTBEAT_MS)
        office.asks(office.joining("a"))
    assert set(office.group.members) == {"a"}


def test_a_request_that_is_refused_keeps_no_session_alive(office: Office) -> None:
    join(office, "a")
    office.passes(SESSION_MS - 1)
    said = office.asks(office.request("a", 99))
    assert told(said) == {"a": ("FENCED_MEMBER_EPOCH", None)}
    office.passes(1)
    assert office.group.members == {}


def test_a_request_that_is_not_new_keeps_no_session_alive(office: Office) -> None:
    join(office, "a")
    late, newest = office.joining("a"), office.joining("a")
    office.asks(newest)
    office.passes(SESSION_MS - 1)
    office.asks(late, newest)
    office.passes(1)
    assert office.group.members == {}


def test_after_a_restart_every_member_has_a_full_session(office: Office) -> None:
    join(office, "a", "b")
    office.passes(SESSION_MS - 1)
    office.open()
    office.passes(SESSION_MS - 1)
    assert set(office.group.members) == {"a", "b"}
    office.passes(1)
    assert office.group.members == {}


def revoking(office: Office) -> None:
    """Bring `a` to where it has to give up one of its two connectors for `b`."""
    join(office, "a")
    office.put("A")
    office.put("B")
    office.beat("a")
    office.compute("a")
    office.beat("a")
    join(office, "b")
    office.beat("a")
    office.compute("a")
    office.asks(office.full("a", "A B"))
    assert office.group.members["a"].current.state is MemberState.UNREVOKED


def beats(office: Office, until_ms: int) -> None:
    """Let both members beat until a moment; `a` goes on running everything."""
    while office.now_ms < until_ms:
        office.passes(min(HEARTBEAT_MS, until_ms - office.now_ms))
        for member in sorted(office.group.members):
            text = "A B" if member == "a" else ""
            office.asks(office.full(member, text))


def test_who_does_not_give_up_in_time_is_removed_though_it_beats(office: Office) -> None:
    revoking(office)
    asked_ms = office.now_ms
    beats(office, asked_ms + REBALANCE_MS - 1)
    assert set(office.group.members) == {"a", "b"}
    office.passes(1)
    assert set(office.group.members) == {"b"}
    assert last_cause(office) == Cause(Why.REBALANCE_EXPIRED, "http://a")


def test_who_gives_up_in_time_stays(office: Office) -> None:
    revoking(office)
    (kept,) = [each.connector for each in office.group.target_of["a"]]
    office.asks(office.full("a", kept))
    assert office.group.members["a"].current.state is MemberState.STABLE
    until_ms = office.now_ms + REBALANCE_MS + 1
    while office.now_ms < until_ms:
        office.passes(HEARTBEAT_MS)
        office.asks(office.full("a", kept), office.full("b", "A B".replace(kept, "").strip()))
    assert set(office.group.members) == {"a", "b"}


def test_after_a_restart_a_revocation_has_its_full_time(office: Office) -> None:
    revoking(office)
    beats(office, office.now_ms + REBALANCE_MS - 1)
    office.open()
    again_ms = office.now_ms
    beats(office, again_ms + REBALANCE_MS - 1)
    assert set(office.group.members) == {"a", "b"}
    office.passes(1)
    assert set(office.group.members) == {"b"}


def test_after_a_restart_the_computation_is_asked_for_again(office: Office) -> None:
    office.asks(office.joining("a"))
    assert office.beat("a") == []
    office.open()
    assert told(office.beat("a")) == {"a": ("COMPUTE_ASSIGNMENT", "")}


def test_a_group_that_is_left_alone_writes_nothing(office: Office) -> None:
    join(office, "a")
    office.beat("a")
    office.compute("a")
    end = office.control.end
    for _ in range(10):
        office.beat("a")
        office.passes(HEARTBEAT_MS)
    assert office.control.end == end
