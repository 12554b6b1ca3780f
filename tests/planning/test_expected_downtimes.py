"""What a plan expects of its moves: what those took whose givers were there to give."""

from dataclasses import replace

from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import Cordon
from fairlead.events.model import BATCHES_RUN, RunState
from fairlead.projections.explain.diff import Owner
from fairlead.projections.explain.handovers import Handover
from fairlead.projections.explain.reader import EpochReader
from fairlead.projections.explain.reasons import Reason, ReasonKind
from fairlead.runtime.planning.report import ExpectedDowntime, ExpectedDowntimes
from fairlead_tests.decider import resource
from fairlead_tests.group.static_seat import STATIC
from fairlead_tests.projecting.timed_log import TimedDecider, computed

W1, W2 = Owner("http://w1", "W1"), Owner("http://w2", "W2")
MOVED = Handover(
    resource("A-0"),
    Reason(ReasonKind.BALANCE),
    W1,
    W2,
    asked_ms=900,
    stopped_ms=1_000,
    running_ms=1_100,
    first_batch_ms=1_700,
)


def took(**milliseconds: int) -> ExpectedDowntimes:
    """One hand-over of each of these connectors."""
    own = {name: ExpectedDowntime(ms, ms, 1, "connector") for name, ms in milliseconds.items()}
    lowest, highest = min(milliseconds.values()), max(milliseconds.values())
    return ExpectedDowntimes(own, ExpectedDowntime(lowest, highest, len(own), "group"))


def handovers(group: TimedDecider) -> list[Handover]:
    """What changed hands in the whole log of a group."""
    reader = EpochReader()
    for entry in group.entries:
        reader.apply(entry)
    return [*reader.handovers()]


def test_a_hand_over_takes_from_the_stop_to_the_first_batch_elsewhere() -> None:
    assert ExpectedDowntimes.of([MOVED]) == took(A=700)


def test_without_a_batch_it_takes_to_the_word_that_it_runs() -> None:
    unread = replace(MOVED, resource=resource("B-0"), first_batch_ms=None)
    assert ExpectedDowntimes.of([MOVED, unread]) == took(A=700, B=100)


def test_clocks_that_differ_make_no_time_less_than_none() -> None:
    assert ExpectedDowntimes.of([replace(MOVED, first_batch_ms=900)]) == took(A=0)


def test_what_does_not_run_yet_and_what_was_lost_or_waited_is_not_expected() -> None:
    waits = replace(MOVED, running_ms=None, first_batch_ms=None)
    lost, away = replace(MOVED, gone_ms=1_000), replace(MOVED, asked_ms=None)
    assert ExpectedDowntimes.of([waits, lost, away]) == ExpectedDowntimes()


def test_the_figures_are_the_middle_and_the_99th_of_a_hundred() -> None:
    hundred = [replace(MOVED, stopped_ms=0, first_batch_ms=ms) for ms in range(100, 0, -1)]
    assert ExpectedDowntimes.of(hundred).overall == ExpectedDowntime(50, 99, 100, "group")
    assert ExpectedDowntimes.of(hundred[-3::2]).overall == ExpectedDowntime(1, 3, 2, "group")


def test_of_a_group_the_moves_between_living_workers_are_measured() -> None:
    group = computed(ahead_ms=0)
    group.at(5_500).beat("W1", "A B C D")
    for each in ("C", "D"):
        group.at(5_600).says(resource(each), RunState.UNASSIGNED)
    group.at(5_700).beat("W1", "A B")
    group.at(5_800).beat("W2", "")
    group.at(5_900).says(resource("C"), RunState.RUNNING)
    group.at(6_000).says(resource("C"), RunState.RUNNING, BATCHES_RUN)
    group.at(6_100).says(resource("D"), RunState.RUNNING)
    assert ExpectedDowntimes.of(handovers(group)) == took(C=400, D=500)


def test_what_was_taken_from_a_member_that_is_away_is_not_measured() -> None:
    group = TimedDecider(ahead_ms=0)
    group.configure("A B")
    group.at(1_000).join("W1")
    group.settle()
    group.at(5_000).join("S1", replace(STATIC, node="n"))
    group.at(5_200).settle()
    (kept,) = group.group.share_of("S1")
    group.at(6_000).says(kept, RunState.RUNNING, BATCHES_RUN)
    group.at(10_000).says(kept, RunState.UNASSIGNED)
    group.heartbeat(Heartbeat("connect", "S1", -2, "1", instance_id="i"))
    group.at(400_000).carry_out(Cordon("connect", "i", drain=True))
    group.settle()
    group.at(400_100).says(kept, RunState.RUNNING, BATCHES_RUN)
    (*_, moved) = (each for each in handovers(group) if each.resource == kept)
    assert moved.downtime_ms == 390_100
    assert ExpectedDowntimes.of(handovers(group)) == ExpectedDowntimes()
