"""How long the group waits for a member: its own session, or the longer one (PROTOCOL §8)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.shard import AddressedReply
from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat, HeartbeatReply
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.model import Cause, Why
from fairlead_tests.coordination.office import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    Office,
)
from fairlead_tests.decider import COOPERATIVE

LONG_MS = 3 * SESSION_MS
DELAY_MS = 2 * SESSION_MS


def joins(office: Office, member: str = "a", **said: object) -> Heartbeat:
    """Have a member join, and say what it says."""
    request = replace(office.joining(member), **said)  # type: ignore[arg-type]
    office.asks(request)
    return request


def sessions_told(said: list[AddressedReply]) -> list[int]:
    """By which session the members that are answered are to fence themselves."""
    replies = [each.reply for each in said]
    return [each.session_timeout_ms for each in replies if isinstance(each, HeartbeatReply)]


def goes_by(office: Office, session_ms: int) -> None:
    """Have the group go by another session from now on."""
    (said,) = office.send(ConfigureGroup("connect", {"session.timeout.ms": str(session_ms)}))
    assert isinstance(said.reply, CommandReply)
    assert said.reply.error is Error.NONE, said.reply


def lives_for(office: Office, milliseconds: int) -> None:
    """Hold that `a`, which is silent from now on, is a member for just so long."""
    office.passes(milliseconds - 1)
    assert "a" in office.group.members
    office.passes(1)
    assert "a" not in office.group.members


def test_every_answer_tells_the_session_to_go_by(office: Office) -> None:
    assert sessions_told(office.asks(office.joining("a"))) == [SESSION_MS]
    office.compute("a")
    assert sessions_told(office.passes(HEARTBEAT_MS)) == []
    assert sessions_told(office.asks(office.joining("a"))) == [SESSION_MS]


@pytest.mark.parametrize("session_ms", [SESSION_MS // 2, LONG_MS])
def test_the_group_waits_for_the_longer_of_its_session_and_the_members(
    office: Office, session_ms: int
) -> None:
    joins(office, session_timeout_ms=session_ms)
    lives_for(office, max(session_ms, SESSION_MS))


def test_what_a_member_goes_by_is_kept_in_its_record_and_bumps_nothing(office: Office) -> None:
    joins(office)
    office.compute("a")
    office.asks(office.joining("a"))
    end, epoch = office.group.end, office.group.group_epoch
    office.asks(office.request("a", session_timeout_ms=LONG_MS))
    assert (office.group.end, office.group.group_epoch) == (end + 1, epoch)
    assert office.group.members["a"].metadata.session_timeout_ms == LONG_MS
    office.asks(office.request("a", session_timeout_ms=LONG_MS), office.request("a"))
    assert office.group.end == end + 1


def test_after_a_restart_a_member_has_the_longer_session(office: Office) -> None:
    joins(office, session_timeout_ms=LONG_MS)
    office.open()
    lives_for(office, LONG_MS)


def test_a_shorter_session_holds_once_the_member_says_that_it_goes_by_it(office: Office) -> None:
    goes_by(office, LONG_MS)
    joins(office, session_timeout_ms=LONG_MS)
    office.compute("a")
    goes_by(office, SESSION_MS)
    office.asks(office.joining("a"))
    office.passes(LONG_MS - 1)
    assert sessions_told(office.asks(office.joining("a"))) == [SESSION_MS]
    office.asks(office.request("a", session_timeout_ms=SESSION_MS))
    lives_for(office, SESSION_MS)


def test_a_longer_session_is_written_down_before_the_member_is_told(office: Office) -> None:
    joins(office, session_timeout_ms=SESSION_MS)
    office.compute("a")
    office.asks(office.joining("a"))
    goes_by(office, LONG_MS)
    office.asks(office.request("a"))
    assert office.group.members["a"].metadata.session_timeout_ms == LONG_MS
    goes_by(office, SESSION_MS)
    office.open()
    lives_for(office, LONG_MS)


def test_a_held_request_that_is_answered_with_a_longer_session_is_waited_for_so_long(
    office: Office,
) -> None:
    joins(office, session_timeout_ms=SESSION_MS)
    office.compute("a")
    office.asks(office.joining("a"))
    assert office.asks(office.request("a")) == [], "held"
    goes_by(office, LONG_MS)
    assert sessions_told(office.passes(HEARTBEAT_MS)) == [LONG_MS]
    lives_for(office, LONG_MS - HEARTBEAT_MS)


def test_a_timer_ends_only_the_seat_that_it_was_set_for(office: Office) -> None:
    joins(office)
    office.asks(office.request("a", -1))
    office.passes(SESSION_MS - 1)
    joins(office)
    lives_for(office, SESSION_MS)


# Members that are away.


def leaves_for_a_while(office: Office) -> None:
    """Have `a`, of instance i, run a connector and leave for a while."""
    office.settings = replace(SETTINGS, max_delay_ms=DELAY_MS)
    office.open()
    office.put("A")
    joins(office, instance_id="i")
    office.compute("a")
    joins(office, instance_id="i")
    office.asks(office.full("a", "A"))
    office.asks(office.request("a", -2, instance_id="i"))
    assert office.group.members["a"].current.member_epoch == -2


def test_who_left_for_a_while_is_waited_for_as_long_as_a_loss_may_wait(office: Office) -> None:
    leaves_for_a_while(office)
    lives_for(office, DELAY_MS)
    assert office.group.bump is not None
    assert office.group.bump.cause == Cause(Why.SESSION_EXPIRED, "http://a")


def test_who_left_for_a_while_is_waited_for_at_least_a_session(office: Office) -> None:
    leaves_for_a_while(office)
    office.settings = replace(SETTINGS, max_delay_ms=0)
    office.open()
    lives_for(office, SESSION_MS)


def test_after_a_restart_who_left_for_a_while_has_the_whole_delay(office: Office) -> None:
    leaves_for_a_while(office)
    office.passes(DELAY_MS - 1)
    office.open()
    lives_for(office, DELAY_MS)


def test_who_returns_has_a_session_again(office: Office) -> None:
    leaves_for_a_while(office)
    again = Heartbeat(
        "connect",
        "a",
        0,
        "i-a2",
        1,
        instance_id="i",
        rebalance_timeout_ms=REBALANCE_MS,
        assignors=COOPERATIVE,
        owned=(),
        coordinator_epoch=office.coordinator.coordinator_epoch,
    )
    office.asks(again)
    lives_for(office, SESSION_MS)


def test_the_timer_of_the_member_id_that_left_finds_nobody(office: Office) -> None:
    leaves_for_a_while(office)
    for _ in range(DELAY_MS // HEARTBEAT_MS + 1):
        said = office.asks(replace(office.joining("b"), instance_id="i"))
        assert all(isinstance(each.reply, HeartbeatReply) for each in said)
        office.passes(HEARTBEAT_MS)
    assert set(office.group.members) == {"b"}
    assert set(map(str, office.group.members["b"].current.assigned)) == {"A"}


def test_a_late_word_of_the_process_that_left_is_answered_and_never_held(office: Office) -> None:
    leaves_for_a_while(office)
    office.open()
    (said,) = office.asks(office.request("a", 1))
    assert isinstance(said.reply, HeartbeatReply)
    assert (said.reply.error, office.coordinator.traffic().held) == (Error.FENCED_MEMBER_EPOCH, 0)


def test_the_beat_that_a_temporary_leave_overtakes_is_never_answered(office: Office) -> None:
    office.put("A")
    joins(office, instance_id="i")
    office.compute("a")
    joins(office, instance_id="i")
    beat = office.request("a")
    office.asks(beat)
    assert office.coordinator.traffic().held == 1
    office.coordinator.take(office.request("a", -2, instance_id="i"), "a", office.now)
    replies = [each.reply for each in office.flush()]
    assert [
        (each.member_epoch, each.sequence) for each in replies if isinstance(each, HeartbeatReply)
    ] == [(-2, beat.sequence + 1)]
    assert office.passes(HEARTBEAT_MS) == []


def test_the_epoch_of_an_expired_session_says_when_the_member_was_last_heard_of(
    office: Office,
) -> None:
    joins(office)
    office.passes(SESSION_MS // 2)
    office.asks(office.joining("a"))
    heard_ms = office.now.wall_ms
    office.passes(SESSION_MS)
    assert office.group.bump is not None
    assert (office.group.bump.cause.why, office.group.bump.since_ms) == (
        Why.SESSION_EXPIRED,
        heard_ms,
    )


def test_a_group_that_was_restarted_does_not_say_when_it_last_heard_of_a_silent_member(
    office: Office,
) -> None:
    joins(office)
    office.open()
    office.passes(SESSION_MS)
    assert office.group.bump is not None
    assert (office.group.bump.cause.why, office.group.bump.since_ms) == (Why.SESSION_EXPIRED, 0)
