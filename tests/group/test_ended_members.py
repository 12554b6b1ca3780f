"""A process that was seen to end is not waited for (PROTOCOL §7)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.group.state.soft_state import DecisionFacts
from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import EndMember, RemoveMember
from fairlead.events.model import Cause, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Tombstone,
)
from fairlead_tests.decider import JOIN, Decider, resources
from fairlead_tests.group.static_seat import AWAY, static_group

SEEN_MS, ENDED_MS, DELAY_MS = 1_000, 950, 300_000
W2_HAD = resources("B B-0")
W2_ENDED = EndMember("connect", "W2", "1", ENDED_MS)
GONE = (Tombstone(CurrentAssignment, ("W2",)), Tombstone(MemberMetadata, ("W2",)))
CAUSE = Cause(Why.PROCESS_ENDED, "http://w2")


def two_members(delay_ms: int = DELAY_MS) -> Decider:
    """A group of W1 with connector A and W2 with connector B, at rest at epoch 2."""
    decider = Decider(GroupSettings(max_delay_ms=delay_ms))
    decider.configure("A A-0 B B-0")
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    decider.join("W2")
    decider.settle()
    decider.now_ms = SEEN_MS
    return decider


def test_a_member_whose_process_ended_goes_at_once_and_its_work_is_lost() -> None:
    decision = two_members().carry_out(W2_ENDED)
    assert decision.records == (
        *GONE,
        Loss("W2", None, "http://w2", W2_HAD, SEEN_MS, CAUSE, SEEN_MS + DELAY_MS),
        GroupMetadata(3, CAUSE, SEEN_MS, since_ms=ENDED_MS),
    )
    assert decision.reply == CommandReply(Error.NONE, log_offset=decision_end(decision.reply))


def decision_end(reply: object) -> int:
    """The end of the log that a reply tells of."""
    assert isinstance(reply, CommandReply)
    return reply.log_offset


def test_without_a_delay_its_work_goes_to_who_is_left_without_any_time_passing() -> None:
    decider = two_members(delay_ms=0)
    decider.carry_out(W2_ENDED)
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A A-0 B B-0")
    assert decider.now_ms == SEEN_MS


def test_with_a_delay_its_work_waits_for_its_replacement_and_is_given_back_at_once() -> None:
    decider = two_members()
    decider.carry_out(W2_ENDED)
    decider.settle()
    assert decider.group.schedule.parked.keys() == W2_HAD
    decider.join("W2b", replace(JOIN, url="http://w2", incarnation="2"))
    decider.settle()
    assert decider.current("W2b").assigned.keys() == W2_HAD


def test_a_member_that_never_acknowledged_an_assignment_loses_nothing() -> None:
    decider = two_members()
    with decider.knowing(DecisionFacts(has_acknowledged=lambda _: False)):
        records = decider.carry_out(W2_ENDED).records
    assert records == (*GONE, GroupMetadata(3, CAUSE, SEEN_MS, since_ms=ENDED_MS))


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(replace(W2_ENDED, incarnation="0"), id="an earlier process of that member"),
        pytest.param(replace(W2_ENDED, member_id="W9"), id="a member that nobody knows"),
    ],
)
def test_a_report_about_another_process_changes_nothing(report: EndMember) -> None:
    decider = two_members()
    decision = decider.carry_out(report)
    assert decision.records == ()
    assert decision.reply == CommandReply(Error.NONE, log_offset=decider.group.end)


def test_a_report_that_comes_twice_counts_once() -> None:
    decider = two_members()
    decider.carry_out(W2_ENDED)
    assert decider.carry_out(W2_ENDED).records == ()


def test_a_live_member_that_was_reported_wrongly_hears_so_and_joins_again() -> None:
    decider = two_members(delay_ms=0)
    decider.carry_out(W2_ENDED)
    beat = Heartbeat("connect", "W2", 2, "1", sequence=9)
    assert decider.heartbeat(beat).error is Error.UNKNOWN_MEMBER_ID
    decider.join("W2")
    decider.settle()
    assert decider.current("W2").assigned.keys() == W2_HAD
    assert min(decider.current("W2").assigned.values()) > 2, "under newer tokens"


def test_a_time_ahead_of_the_groups_own_clock_is_not_written_down() -> None:
    *_, bump = two_members().carry_out(replace(W2_ENDED, ended_ms=SEEN_MS + 60_000)).records
    assert bump == GroupMetadata(3, CAUSE, SEEN_MS, since_ms=SEEN_MS)


def test_a_static_member_whose_process_ended_frees_its_instance_id_for_its_replacement() -> None:
    decider = static_group()
    had = decider.current("S1").assigned.keys()
    decider.carry_out(EndMember("connect", "S1", "1"))
    reply = decider.join("S2", replace(JOIN, instance_id="i", url="http://s", incarnation="2"))
    assert reply.error is Error.COMPUTE_ASSIGNMENT or reply.error is Error.NONE
    decider.settle()
    assert decider.current("S2").assigned.keys() == had


def test_the_end_of_a_process_that_left_for_a_while_is_no_loss() -> None:
    decider = static_group()
    decider.heartbeat(AWAY)
    assert decider.carry_out(EndMember("connect", "S1", "1")).records == ()


def test_a_member_that_is_removed_by_force_and_ends_was_removed() -> None:
    decider = two_members()
    decider.carry_out(RemoveMember("connect", "W2", force=True, principal="someone"))
    records = decider.carry_out(W2_ENDED).records
    cause = Cause(Why.MEMBER_REMOVED, "http://w2")
    assert records[:2] == GONE
    assert records[-1] == GroupMetadata(3, cause, SEEN_MS, "someone", since_ms=ENDED_MS)
    assert not any(isinstance(each, Loss) for each in records)
