"""What waits for a member that is away is told, and its outage by the epoch that ended the wait."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import Command, ExpireSession
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import Cordon, Expect, Rebalance, ReleaseSeats, RemoveMember
from fairlead.events.model import BATCHES_RUN, Cause, RunState, Why
from fairlead.projections.explain.absences import Absence
from fairlead.projections.explain.diff import Owner
from fairlead.projections.explain.epochs import Explanation
from fairlead.runtime.interfaces.replies.epochs import describe_epoch
from fairlead_tests.decider import JOIN, resources
from fairlead_tests.group.static_seat import STATIC
from fairlead_tests.projecting.timed_log import TimedDecider

LEFT_MS, GIVEN_UP_MS, RUNS_MS = 10_000, 424_000, 424_900
AWAY = Heartbeat("connect", "S1", -2, "1", instance_id="i")
S1 = Owner("http://s", "S1")
KEPT = resources("C D")


@pytest.fixture
def group() -> TimedDecider:
    """W1 with A and B; S1 had C and D until it left for a while."""
    group = TimedDecider(ahead_ms=0)
    group.configure("A B C D")
    group.at(1_000).join("W1")
    group.at(1_500).compute()
    group.settle()
    group.at(5_000).join("S1", replace(STATIC, node="n"))
    group.at(5_200).settle()
    for each in sorted(group.group.owner):
        group.at(6_000).says(each, RunState.RUNNING, BATCHES_RUN)
    for each in sorted(KEPT):
        group.at(LEFT_MS).says(each, RunState.UNASSIGNED)
    group.heartbeat(AWAY)
    return group


def run(group: TimedDecider, at_ms: int = RUNS_MS) -> None:
    """Let the group settle, and what was kept run."""
    group.settle()
    for each in sorted(KEPT & group.group.owner.keys()):
        group.at(at_ms).says(each, RunState.RUNNING, BATCHES_RUN)


def downtimes(told: Explanation) -> dict[str, int | None]:
    """For how long nobody ran what moved, as that epoch tells it."""
    return {each.id: each.downtime_ms for each in describe_epoch(told).handovers}


OUTAGE = dict.fromkeys(("C", "D"), RUNS_MS - LEFT_MS)


def test_the_wait_for_a_member_that_is_away_is_told_while_it_lasts(group: TimedDecider) -> None:
    assert group.explained(2).waits == (Absence(S1, KEPT, LEFT_MS),)
    assert group.explained(1).waits == ()


def test_a_wait_that_ends_with_the_return_was_as_long_as_that(group: TimedDecider) -> None:
    back = replace(STATIC, incarnation="2")
    group.at(30_000).join("S1", back)
    assert group.explained(2).waits == (Absence(S1, KEPT, LEFT_MS, 30_000, is_back=True),)


def test_a_return_under_another_member_id_is_a_return(group: TimedDecider) -> None:
    group.at(30_000).join("S2", replace(STATIC, incarnation="2"))
    group.settle()
    assert group.explained(2).waits == (Absence(S1, KEPT, LEFT_MS, 30_000, is_back=True),)
    group.at(40_000).heartbeat(replace(AWAY, member_id="S2", incarnation="2"))
    again = Absence(S1._replace(member_id="S2"), KEPT, 40_000)
    assert group.explained(2).waits[1:] == (again,)


def test_a_joiner_claims_nothing_of_what_is_kept_for_another(group: TimedDecider) -> None:
    group.at(20_000).join("W3")
    group.at(20_100)
    run(group)
    told = group.explained(3)
    assert downtimes(told) == {"B": None}
    assert told.waits == (Absence(S1, KEPT, LEFT_MS),)
    (before,) = group.explained(2).waits
    assert before == Absence(S1, KEPT, LEFT_MS, 20_100, superseded_by=3)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (ExpireSession("S1", silent_ms=GIVEN_UP_MS - LEFT_MS), Why.SESSION_EXPIRED),
        (Rebalance("connect"), Why.REBALANCE_REQUESTED),
        (Expect("connect", "i", 0), Why.WORKER_EXPECTED),
        (RemoveMember("connect", "i"), Why.MEMBER_REMOVED),
        (Cordon("connect", "i", drain=True), Why.WORKER_DRAINED),
        (ReleaseSeats("connect", "n", frozenset()), Why.MEMBER_LEFT),
    ],
    ids=lambda each: each.value if isinstance(each, Why) else "",
)
def test_the_epoch_that_ends_the_wait_tells_the_true_outage(
    group: TimedDecider, command: Command, why: Why
) -> None:
    group.at(20_000).join("W3")
    group.settle()
    group.at(GIVEN_UP_MS).carry_out(command)
    run(group)
    told = group.explained(4)
    assert told.report.bump.cause.why is why
    assert {each: took for each, took in downtimes(told).items() if each in OUTAGE} == OUTAGE
    assert not OUTAGE.keys() & downtimes(group.explained(3)).keys()
    (wait,) = group.explained(3).waits
    assert (wait.until_ms, wait.is_back, wait.superseded_by) == (GIVEN_UP_MS, False, None)


def test_a_joiner_that_is_given_what_another_epoch_freed_does_not_claim_the_outage(
    group: TimedDecider,
) -> None:
    group.at(GIVEN_UP_MS).carry_out(ReleaseSeats("connect", "n", frozenset()))
    group.at(GIVEN_UP_MS + 100).join("W9", replace(JOIN, url="http://s"))
    run(group)
    freed, joined = group.explained(3), group.explained(4)
    assert joined.report.bump.cause == Cause(Why.MEMBER_JOINED, "http://s")
    assert downtimes(freed) == OUTAGE
    assert downtimes(joined) == dict.fromkeys(OUTAGE)
    assert {each.freed_by for each in joined.handovers} == {3}


def test_a_join_that_ends_the_wait_itself_tells_the_outage(group: TimedDecider) -> None:
    group.at(GIVEN_UP_MS).join("W9", replace(JOIN, url="http://s"))
    run(group)
    assert downtimes(group.explained(3)) == OUTAGE


def test_an_epoch_that_ends_a_wait_says_that_it_was_one(group: TimedDecider) -> None:
    group.at(GIVEN_UP_MS).carry_out(ExpireSession("S1", silent_ms=GIVEN_UP_MS - LEFT_MS))
    run(group)
    detect = group.explained(3).phases[0]
    assert (detect.from_ms, detect.note) == (LEFT_MS, "its place was kept for its return")


def test_what_nobody_could_take_is_told_by_the_epoch_that_left_it_out_until_it_runs_again(
    group: TimedDecider,
) -> None:
    left = resources("A B")
    group.soft = replace(group.soft, settings=GroupSettings(leave_delay_ms=0))
    for each in sorted(left):
        group.at(LEFT_MS).says(each, RunState.UNASSIGNED)
    group.heartbeat(Heartbeat("connect", "W1", -1, "1"))
    group.settle()
    assert group.group.target.unplaceable.keys() == left
    group.at(GIVEN_UP_MS).join("W9")
    group.settle()
    for each in sorted(left):
        group.at(RUNS_MS).says(each, RunState.RUNNING, BATCHES_RUN)
    left_out, joined = group.explained(3), group.explained(4)
    assert downtimes(left_out) == dict.fromkeys(("A", "B"), RUNS_MS - LEFT_MS)
    assert downtimes(joined) == dict.fromkeys(("A", "B"))
    assert {each.freed_by for each in joined.handovers} == {3}
