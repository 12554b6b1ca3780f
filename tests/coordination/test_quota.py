"""A member beyond its rate: it is answered, heard, and told to wait (ThrottleTimeMs)."""

from dataclasses import replace

from fairlead.actors.group.members.quota import BURST
from fairlead.actors.group.shard import AddressedReply
from fairlead.actors.messages.heartbeat import HeartbeatReply
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.model import MemberState
from fairlead_tests.coordination.office import HEARTBEAT_MS, SESSION_MS, SETTINGS, Office


def limited(office: Office, rate: int = 1) -> None:
    """Open the group again, on a node that has a rate."""
    office.settings = replace(SETTINGS, requests_per_second=rate)
    office.open()


def throttles(said: list[AddressedReply]) -> list[int]:
    """How long each answered member is to wait."""
    replies = [answer.reply for answer in said]
    return [each.throttle_time_ms for each in replies if isinstance(each, HeartbeatReply)]


def state_of(office: Office, member: str) -> MemberState:
    """How far a member has come."""
    return office.group.members[member].current.state


def settled(office: Office) -> None:
    """Have `a` join a group of its own, at rest, and its bucket be full again."""
    office.asks(office.joining("a"))
    office.compute("a")
    office.beat("a")
    office.passes(HEARTBEAT_MS)
    for _ in range(2):
        office.beat("a")
        office.passes(HEARTBEAT_MS)


def test_a_member_beyond_its_rate_is_answered_at_once_and_told_to_wait(office: Office) -> None:
    limited(office)
    settled(office)
    said = [throttles(office.beat("a")) for _ in range(BURST + 3)]
    assert said == [[]] * BURST + [[2_000], [3_000], [3_000]]
    assert throttles(office.beat("a")) == [HEARTBEAT_MS], "no wait outlasts the interval"


def test_who_waits_as_told_is_held_again(office: Office) -> None:
    limited(office)
    settled(office)
    while not throttles(office.beat("a")):
        pass
    assert office.passes(1_000) == []
    office.passes(1_000)
    assert office.beat("a") == []
    assert throttles(office.passes(HEARTBEAT_MS)) == [0]


def test_a_request_beyond_the_rate_keeps_the_session_alive(office: Office) -> None:
    limited(office)
    settled(office)
    while not throttles(office.beat("a")):
        pass
    office.passes(SESSION_MS - 1)
    assert set(office.group.members) == {"a"}
    assert office.beat("a") == []
    while not throttles(office.beat("a")):
        pass
    office.passes(SESSION_MS - 1)
    assert set(office.group.members) == {"a"}


def test_what_a_request_beyond_the_rate_says_counts(office: Office) -> None:
    limited(office)
    settled(office)
    office.put("A")
    office.put("B")
    office.compute("a")
    office.beat("a")
    office.asks(office.joining("b"))
    office.compute("a")
    while not any(throttles(office.asks(office.full("a", "A B")))):
        pass
    assert state_of(office, "a") is MemberState.UNREVOKED
    (kept,) = [each.connector for each in office.group.target_of["a"]]
    said = office.asks(office.full("a", kept))
    assert throttles(said)[0] > 0
    assert state_of(office, "a") is MemberState.STABLE
    office.asks(office.request("a", -1))
    assert set(office.group.members) == {"b"}


def test_a_member_that_comes_anew_has_a_full_bucket(office: Office) -> None:
    limited(office)
    settled(office)
    while not throttles(office.beat("a")):
        pass
    office.asks(office.request("a", -1))
    assert throttles(office.asks(office.joining("a"))) == [0]


def test_the_rate_may_be_the_groups_own(office: Office) -> None:
    settled(office)
    office.send(ConfigureGroup("connect", {"member.request.rate": "1"}))
    assert throttles(office.beat("a")) == [0], "it hears of the settings at once"
    said = [throttles(office.beat("a")) for _ in range(BURST)]
    assert said == [[]] * (BURST - 1) + [[2_000]]
    office.send(ConfigureGroup("connect", {"member.request.rate": None}))
    assert throttles(office.beat("a")) == [0]
    assert office.beat("a") == []


def test_strangers_are_not_counted(office: Office) -> None:
    limited(office)
    for _ in range(BURST + 3):
        assert throttles(office.asks(office.request("x", 7))) == [0]
