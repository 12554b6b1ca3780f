"""What is explained of workers that lose their seats, or keep them, and come back."""

from dataclasses import replace

from fairlead.actors.assignors.built_in import counting
from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.model import BATCHES_RUN, RunState
from fairlead.projections.explain.diff import Owner
from fairlead.projections.explain.epochs import Phase
from fairlead.projections.explain.handovers import Handover
from fairlead.projections.explain.reasons import RETURN, Reason, ReasonKind
from fairlead_tests.decider import JOIN, resource
from fairlead_tests.group.static_seat import STATIC
from fairlead_tests.projecting.timed_log import TimedDecider, grown

C, D = map(resource, "CD")
AWAY = Heartbeat("connect", "S1", -2, "1", instance_id="i")
BALANCE = Reason(ReasonKind.BALANCE)
W1, W2, W3, S1 = (
    Owner("http://w1", "W1"),
    Owner("http://w2", "W2"),
    Owner("http://w3", "W3"),
    Owner("http://s", "S1"),
)


def with_static_member() -> TimedDecider:
    """W1 alone with A to D; then static S1 joins, and is to have C and D."""
    group = TimedDecider(ahead_ms=0)
    group.configure("A B C D")
    group.at(1_000).join("W1")
    group.at(1_500).compute()
    group.settle()
    group.at(5_000).join("S1", STATIC)
    group.at(5_200).compute()
    return group


def test_a_seat_that_a_giver_lost_in_an_earlier_life_does_not_count() -> None:
    group = grown(ahead_ms=0)
    group.at(20_000).carry_out(ExpireSession("W2"))
    group.at(20_100).compute()
    group.at(21_000).join("W2")
    group.at(21_100).compute()
    group.settle()
    group.at(30_000).join("W3")
    group.at(30_100).compute()
    group.at(30_300).settle()
    group.at(30_500).says(D, RunState.RUNNING)
    (moved,) = group.explained(5).handovers
    assert moved == Handover(
        D, BALANCE, W2, W3,
        asked_ms=30_300, revoked_ms=30_300, granted_ms=30_300, running_ms=30_500, grant_epoch=5,
    )  # fmt: skip
    assert moved.downtime_at_least_ms == 200


def test_a_seat_was_lost_when_it_was_though_its_member_lost_another_since() -> None:
    group = grown(ahead_ms=0)
    group.at(20_000).carry_out(ExpireSession("W2"))
    group.at(21_000).join("W2")
    group.at(31_000).carry_out(ExpireSession("W2"))
    snapshot = group.at(31_100).prepare("W1")
    group.install("W1", snapshot, counting.assign_at_once(snapshot))
    told = group.explained(5).handovers
    assert [(each.resource, each.gone_ms) for each in told] == [(C, 20_000), (D, 20_000)]


def test_what_a_giver_was_to_have_and_never_got_is_not_lost_with_its_earlier_seat() -> None:
    group = grown(ahead_ms=0)
    group.at(20_000).carry_out(ExpireSession("W2"))
    group.at(21_000).join("W2")
    group.at(21_100).compute()
    group.at(21_200).join("W3")
    group.at(21_300).compute()
    (moved,) = group.explained(5).handovers
    assert (moved.previous_owner, moved.new_owner, moved.gone_ms) == (W2, W3, None)


def test_work_of_one_that_lost_its_seat_moves_because_of_that_though_it_joined_anew() -> None:
    group = grown(ahead_ms=0)
    group.at(20_000).carry_out(ExpireSession("W2"))
    group.at(20_500).join("W2", replace(JOIN, incarnation="1"))
    group.at(20_550).join("W3")
    snapshot = group.at(20_600).prepare("W1")
    group.install("W1", snapshot, counting.assign_at_once(snapshot))
    assert {str(each.resource): each.reason for each in group.explained(5).handovers} == {
        "C": RETURN,
        "D": Reason(ReasonKind.DEPARTURE, "session-expired"),
    }


def test_a_taker_that_comes_back_under_another_member_id_is_granted_what_it_was_given() -> None:
    group = with_static_member()
    group.at(5_300).heartbeat(AWAY)
    group.at(5_400).join("S2", replace(STATIC, incarnation="2"))
    group.at(5_500).settle()
    told = group.explained(2)
    assert told.handovers == tuple(
        Handover(
            each, BALANCE, W1, S1,
            asked_ms=5_500, revoked_ms=5_500, granted_ms=5_500, grant_epoch=2,
        )
        for each in (C, D)
    )  # fmt: skip
    group.at(9_000).join("W3")
    group.at(9_100).compute()
    kept, moved = group.explained(2).handovers
    assert (kept.superseded_by, moved.superseded_by) == (None, 3)


def test_a_giver_that_comes_back_under_another_member_id_did_not_lose_its_seat() -> None:
    group = with_static_member()
    group.at(5_500).settle()
    group.at(9_000).join("W3")
    group.at(9_100).compute()
    group.at(9_150).heartbeat(AWAY)
    group.at(9_300).join("S2", replace(STATIC, incarnation="2"))
    group.at(9_400).settle()
    assert group.explained(3).handovers == (
        Handover(D, BALANCE, S1, W3, revoked_ms=9_150, granted_ms=9_400, grant_epoch=3),
    )


def test_what_a_taker_was_granted_anew_before_it_ran_has_started_when_it_runs() -> None:
    group = with_static_member()
    group.at(5_500).settle()
    group.configure("A B C D E")
    group.at(9_000).join("W3")
    group.at(9_100).compute()
    group.at(9_200).settle()
    group.at(9_300).heartbeat(AWAY)
    group.at(9_400).join("S1", replace(STATIC, incarnation="2"))
    group.at(9_500).settle()
    for each in group.current("S1").assigned:
        group.at(9_600).says(each, RunState.RUNNING, BATCHES_RUN)
    told = group.explained(2)
    assert [(each.resource, each.granted_ms) for each in told.handovers] == [(C, 5_500), (D, 5_500)]
    assert told.phases[-1] == Phase("start", 5_500, 9_600)
