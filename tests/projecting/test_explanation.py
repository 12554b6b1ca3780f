"""What the log alone explains of an epoch: how long each phase took, what moved and why."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import (
    Command,
    ContinueMoves,
    ExpireSession,
    ReleaseParked,
    RetryAssignor,
)
from fairlead.actors.messages.computing import Assignment, Install
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import Cordon, EndMember, Rebalance, SetPlacement, Uncordon
from fairlead.events.catalogue import TYPE_OF
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import BATCHES_RUN, Cause, RunState, Why
from fairlead.events.records import GroupMetadata, OwnerBegan, OwnerResigned
from fairlead.projections.explain.cache import EpochCache, NotToldError
from fairlead.projections.explain.causes.owners import OwnerTerm
from fairlead.projections.explain.diff import Owner
from fairlead.projections.explain.epochs import Explanation, Phase
from fairlead.projections.explain.handovers import Handover
from fairlead.projections.explain.lists import EpochLine, EpochList
from fairlead.projections.explain.reasons import DELETED, NEW, RETURN, Reason, ReasonKind
from fairlead_tests.decider import resource, resources
from fairlead_tests.projecting.timed_log import TimedDecider, computed, grown

GROUP_METADATA = TYPE_OF[GroupMetadata].number
A, B, C, D = map(resource, "ABCD")
W1, W2 = Owner("http://w1", "W1"), Owner("http://w2", "W2")
BALANCE = Reason(ReasonKind.BALANCE)


def shared() -> TimedDecider:
    """W1 alone with A to D; then W2 joins, W1 stops C and D, and W2 runs them."""
    group = computed(ahead_ms=0)
    group.at(5_500).beat("W1", "A B C D")
    group.at(5_580).says(C, RunState.UNASSIGNED)
    group.at(5_590).says(D, RunState.UNASSIGNED)
    group.at(5_700).beat("W1", "A B")
    group.at(5_800).beat("W2", "")
    group.at(5_900).says(C, RunState.RUNNING)
    group.at(6_000).says(C, RunState.RUNNING, BATCHES_RUN)
    group.at(6_100).says(D, RunState.RUNNING)
    group.settle()
    return group


def took(explanation: Explanation) -> dict[str, int | None]:
    return {each.name: each.took_ms for each in explanation.phases}


def reasons(explanation: Explanation) -> dict[str, Reason]:
    return {str(each.resource): each.reason for each in explanation.handovers}


def test_an_epoch_is_told_by_its_phases_and_each_resource_by_its_stations() -> None:
    told = shared().explained(2)
    assert told.phases == (
        Phase("detect", 5_000, 5_000),
        Phase("compute", 5_000, 5_200),
        Phase("revoke", 5_200, 5_700, "all were asked after 0.300 s"),
        Phase("release", 5_700, 5_800),
        Phase("start", 5_800, 6_100),
    )
    handover = Handover(
        D,
        BALANCE,
        W1,
        W2,
        asked_ms=5_500,
        stopped_ms=5_590,
        revoked_ms=5_700,
        granted_ms=5_800,
        running_ms=6_100,
        grant_epoch=2,
    )
    first = replace(handover, resource=C, stopped_ms=5_580, running_ms=5_900, first_batch_ms=6_000)
    assert told.handovers == (first, handover)
    assert [each.downtime_ms for each in told.handovers] == [420, 510]
    assert told.total_ms == 1_100


def test_what_nobody_had_before_is_new_and_is_given_up_by_nobody() -> None:
    told = shared().explained(1)
    assert reasons(told) == dict.fromkeys("ABCD", NEW)
    assert told.phases[2] == Phase("revoke", note="nobody had to give up anything")
    assert told.phases[4] == Phase("start", 1_700, note="0 of 4 so far")


def test_when_a_lost_member_was_last_heard_of_is_not_in_the_log() -> None:
    group = shared()
    group.at(20_000).carry_out(ExpireSession("W2"))
    detect = group.explained(3).phases[0]
    note = "when the member was last heard of is not in the log; its last record is 13.900 s older"
    assert detect == Phase("detect", None, 20_000, note)


def lost(group: TimedDecider, command: Command) -> TimedDecider:
    """W2 goes at 30 s, as the command says; W1 runs its C and D from 30.4 s on."""
    group.soft = replace(group.soft, settings=GroupSettings(max_delay_ms=0))
    group.at(30_000).carry_out(command)
    group.at(30_100).compute()
    group.at(30_200).settle()
    for each in (C, D):
        group.at(30_400).says(each, RunState.RUNNING)
    return group


def test_of_a_process_that_ended_the_outage_counts_from_its_end() -> None:
    told = lost(shared(), EndMember("connect", "W2", "1", ended_ms=29_950)).explained(3)
    assert told.report.bump.cause == Cause(Why.PROCESS_ENDED, "http://w2")
    assert told.phases[0] == Phase("detect", 29_950, 30_000)
    assert reasons(told) == dict.fromkeys("CD", Reason(ReasonKind.DEPARTURE, "process-ended"))
    assert [each.downtime_ms for each in told.handovers] == [450, 450]
    assert told.total_ms == 450


def test_of_a_member_that_fell_silent_the_outage_is_told_from_its_last_word_on() -> None:
    told = lost(shared(), ExpireSession("W2", silent_ms=10_000)).explained(3)
    assert told.phases[0] == Phase("detect", 20_000, 30_000, "since the member was last heard of")
    outages = [
        (each.downtime_ms, each.downtime_at_least_ms, each.downtime_at_most_ms)
        for each in told.handovers
    ]
    assert outages == [(None, 400, 10_400)] * 2
    assert told.total_ms == 10_400


def test_parked_work_moves_because_its_delay_is_over_and_was_down_at_least_since_the_loss() -> None:
    group = shared()
    group.at(20_000).carry_out(ExpireSession("W2"))
    group.at(20_100).compute()
    group.settle()
    group.at(320_050).carry_out(ReleaseParked())
    group.at(320_100).compute()
    group.at(320_200).settle()
    for each in (C, D):
        group.at(320_300).says(each, RunState.RUNNING)
    parked, told = group.explained(3), group.explained(4)
    assert (parked.handovers, parked.total_ms) == ((), 100)
    assert told.phases[0] == Phase("detect", 320_000, 320_050)
    assert reasons(told) == dict.fromkeys("CD", Reason(ReasonKind.DELAY_EXPIRED))
    assert {(each.downtime_ms, each.downtime_at_least_ms) for each in told.handovers} == {
        (None, 300_300)
    }


def test_the_rest_of_the_moves_is_told_with_when_it_was_due_and_moves_for_the_balance() -> None:
    group = TimedDecider(ahead_ms=0)
    group.configure("A B C D")
    group.at(1_000).join("W1")
    group.at(1_500).compute()
    group.at(1_700).settle()
    group.at(5_000).join("W2")
    for now_ms, share, again_at_ms in ((5_200, "D", 35_200), (35_300, "C D", 0)):
        group.at(now_ms).carry_out(ContinueMoves())
        snapshot = group.prepare("W1")
        others = {"W1": resources("A B C D") - resources(share), "W2": resources(share)}
        group.install("W1", snapshot, Assignment(others, again_at_ms=again_at_ms))
        group.settle()
    first, second = group.explained(2), group.explained(3)
    assert first.report.target_change is not None
    assert second.report.target_change is not None
    assert first.report.target_change.next_moves_at_ms == 35_200
    assert second.report.target_change.next_moves_at_ms is None
    assert second.report.bump.cause == Cause(Why.MOVES_DUE, "balanced")
    assert second.phases[0] == Phase("detect", 35_200, 35_300)
    assert (reasons(first), reasons(second)) == ({"D": BALANCE}, {"C": BALANCE})


def test_work_of_one_who_left_moves_because_of_that() -> None:
    group = shared()
    group.soft = replace(group.soft, settings=GroupSettings(leave_delay_ms=0))
    group.at(9_000).says(C, RunState.UNASSIGNED)
    group.at(9_100).heartbeat(Heartbeat("connect", "W2", -1, "1"))
    group.at(9_200).compute()
    group.settle()
    group.at(9_500).says(C, RunState.RUNNING)
    told = group.explained(3)
    assert reasons(told) == dict.fromkeys("CD", Reason(ReasonKind.DEPARTURE, "member-left"))
    assert [each.downtime_ms for each in told.handovers] == [500, None]
    assert took(told)["start"] is None
    assert told.phases[4].note == "1 of 2 so far"


@pytest.mark.parametrize(
    "goes", [ExpireSession("W2"), Heartbeat("connect", "W2", -1, "1")], ids=["lost", "left"]
)
def test_work_that_goes_back_to_a_worker_that_returned_is_returned(goes: Command) -> None:
    group = shared()
    group.at(20_000).carry_out(goes)
    group.at(20_100).compute()
    listed = group.member("W1").metadata.assignors
    back = Heartbeat("connect", "W9", 0, "1", url="http://w2", assignors=listed, owned=())
    group.at(21_000).heartbeat(replace(back, rebalance_timeout_ms=60_000))
    group.at(21_100).compute()
    assert reasons(group.explained(4)) == dict.fromkeys("CD", RETURN)


def test_a_drained_worker_gives_up_its_work_because_of_the_constraint() -> None:
    group = shared()
    group.at(9_000).command(Cordon("connect", "W2", drain=True, principal="rest"))
    snapshot = group.at(9_100).prepare("W1")
    assignment = Assignment({"W1": resources("A B C D"), "W2": resources("")})
    group.install("W1", snapshot, assignment)
    told = group.explained(3)
    assert (told.report.bump.actor, reasons(told)) == (
        "rest",
        dict.fromkeys("CD", Reason(ReasonKind.CONSTRAINT, "drain")),
    )


def test_work_that_nobody_may_take_is_given_up_by_who_had_it_once() -> None:
    group = shared()
    group.at(9_000).command(Cordon("connect", "W2", drain=True))
    snapshot = group.at(9_100).prepare("W1")
    shares = {"W1": resources("A B D"), "W2": resources("")}
    group.install("W1", snapshot, Assignment(shares, unplaceable={C: "nobody can"}))
    group.at(9_200).beat("W2", "C D")
    group.at(9_300).says(C, RunState.UNASSIGNED)
    group.at(9_400).beat("W2", "")
    group.at(9_500).settle()
    group.at(10_000).join("W3")
    snapshot = group.at(10_100).prepare("W1")
    shares["W3"] = resources("")
    group.install("W1", snapshot, Assignment(shares, unplaceable={C: "nobody can"}))
    drain = Reason(ReasonKind.CONSTRAINT, "drain")
    told = group.explained(3)
    assert told.handovers == (
        Handover(C, drain, W2, asked_ms=9_200, stopped_ms=9_300, revoked_ms=9_400),
        replace(told.handovers[1], resource=D, reason=drain, previous_owner=W2, new_owner=W1),
    )
    assert told.phases[2] == Phase("revoke", 9_100, 9_400, "all were asked after 0.100 s")
    assert group.explained(4).handovers == ()


def stopped(group: TimedDecider) -> TimedDecider:
    """After `shared`, W2 is drained, and nobody else may have C and D: W2 stops them."""
    group.at(9_000).command(Cordon("connect", "W2", drain=True))
    snapshot = group.at(9_100).prepare("W1")
    shares = {"W1": resources("A B"), "W2": resources("")}
    reason = dict.fromkeys((C, D), "nobody can")
    group.install("W1", snapshot, Assignment(shares, unplaceable=reason))
    group.at(9_200).beat("W2", "C D")
    group.at(9_300).says(C, RunState.UNASSIGNED)
    group.at(9_300).says(D, RunState.UNASSIGNED)
    group.at(9_400).beat("W2", "")
    group.at(9_500).settle()
    return group


def given_back(group: TimedDecider) -> TimedDecider:
    """W2 takes work again, and runs C and D from then on."""
    group.at(20_000).command(Uncordon("connect", "W2"))
    snapshot = group.at(20_100).prepare("W1")
    shares = {"W1": resources("A B"), "W2": resources("C D")}
    group.install("W1", snapshot, Assignment(shares))
    group.at(20_200).settle()
    group.at(20_300).says(C, RunState.RUNNING)
    group.at(20_300).says(D, RunState.RUNNING)
    return group


def test_work_that_nobody_could_take_and_then_who_had_it_is_returned() -> None:
    told = given_back(stopped(shared())).explained(4)
    assert told.report.target_change is not None
    assert told.report.target_change.kept == {W1: resources("A B")}
    assert told.handovers == tuple(
        Handover(
            each,
            RETURN,
            W2,
            W2,
            stopped_ms=9_300,
            granted_ms=20_200,
            running_ms=20_300,
            grant_epoch=4,
        )
        for each in (C, D)
    )
    assert told.total_ms == 300


def test_what_is_told_of_a_stop_is_the_same_after_the_work_came_back_and_left_again() -> None:
    group = stopped(shared())
    before = group.explained(3)
    given_back(group)
    group.at(30_000).says(C, RunState.UNASSIGNED)
    group.at(31_000).heartbeat(Heartbeat("connect", "W2", -1, "1"))
    group.at(31_100).compute()
    assert group.explained(3) == before


def test_who_leaves_after_giving_up_is_not_told_to_be_gone_before() -> None:
    group = shared()
    group.configure("A B C")
    group.at(9_000).command(Rebalance("connect"))
    group.at(9_100).compute()
    group.at(9_200).settle()
    before = group.explained(3)
    group.at(31_000).heartbeat(Heartbeat("connect", "W2", -1, "1"))
    group.at(31_100).compute()
    assert before.handovers == (Handover(D, DELETED, W2, asked_ms=9_200, revoked_ms=9_200),)
    assert group.explained(3) == before


def test_what_was_given_back_before_anybody_was_asked_for_it_is_not_given_up() -> None:
    group = computed(ahead_ms=0)
    group.at(6_000).heartbeat(Heartbeat("connect", "W2", -1, "1"))
    group.at(6_100).compute()
    group.at(6_200).settle()
    before = group.explained(2)
    group.at(20_000).join("W3")
    group.at(20_100).compute()
    group.at(20_200).settle()
    assert before.handovers == tuple(
        Handover(each, BALANCE, W1, W2, superseded_by=3) for each in (C, D)
    )
    assert group.explained(2) == before


def test_work_that_is_pinned_elsewhere_moves_because_of_the_constraint() -> None:
    group = shared()
    group.at(9_000).command(SetPlacement("connect", A, pins=("http://w2",)))
    snapshot = group.at(9_100).prepare("W1")
    shares = {"W1": resources("C"), "W2": resources("A B D")}
    group.install("W1", snapshot, Assignment(shares))
    assert reasons(group.explained(3)) == {
        "A": Reason(ReasonKind.CONSTRAINT, "pin"),
        "B": BALANCE,
        "C": BALANCE,
    }


def test_where_the_word_of_a_stop_never_came_the_downtime_counts_from_its_acknowledgement() -> None:
    group = grown(ahead_ms=0)
    group.at(9_000).says(C, RunState.RUNNING)
    (c, d) = group.explained(2).handovers
    assert (c.stopped_ms, c.revoked_ms, c.downtime_ms, c.downtime_at_least_ms) == (
        None,
        5_900,
        None,
        3_100,
    )
    assert (d.up_ms, d.downtime_at_least_ms) == (None, None)


def test_what_is_asked_for_and_not_granted_yet_has_not_started() -> None:
    assert computed(ahead_ms=0).explained(2).phases[3:] == (
        Phase("release", 5_200, note="0 of 2 so far"),
        Phase("start", None, note="0 of 2 so far"),
    )


def test_what_another_target_gave_elsewhere_before_it_ran_is_not_waited_for() -> None:
    group = TimedDecider(ahead_ms=0)
    group.configure("A B")
    group.at(1_000).join("W1")
    group.at(1_500).compute()
    group.settle()
    group.at(5_000).join("W2")
    group.at(5_200).compute()
    group.at(5_500).beat("W1", "A B")
    group.at(6_000).heartbeat(Heartbeat("connect", "W2", -1, "1"))
    group.at(6_100).compute()
    group.at(6_200).settle()
    told = group.explained(2)
    assert told.handovers == (
        Handover(B, BALANCE, W1, W2, asked_ms=5_500, revoked_ms=None, superseded_by=3),
    )
    assert told.phases[3] == Phase("release", 5_200, note="1 of 1 superseded")
    assert told.total_ms is None


def test_what_is_configured_no_more_is_given_up_by_who_had_it() -> None:
    group = shared()
    group.configure("A B C")
    group.at(9_000).join("W3")
    group.at(9_100).compute()
    group.at(9_200).beat("W2", "C D")
    group.at(9_300).beat("W2", "C")
    told = {each.resource: each for each in group.explained(3).handovers}
    assert told[D] == Handover(D, DELETED, W2, asked_ms=9_200, revoked_ms=9_300)


def test_an_attempt_that_failed_is_tried_again_when_it_is_due() -> None:
    group = TimedDecider(ahead_ms=0)
    group.configure("A")
    group.at(10).join("W1")
    snapshot = group.at(20).prepare("W1")
    group.at(30).carry_out(Install("connect", "W1", 0, snapshot.group_epoch, None, "no luck"))
    due_ms = group.group.target.retry_at_ms
    group.at(due_ms + 40).carry_out(RetryAssignor())
    group.at(due_ms + 50).compute()
    assert group.explained(1).phases[1].note == "1 failed attempt before"
    assert took(group.explained(2))["detect"] == 40


def test_an_epoch_that_nothing_answered_has_phases_that_never_came() -> None:
    group = TimedDecider(ahead_ms=0)
    group.at(10).join("W1")
    told = group.explained(1)
    assert (told.handovers, told.total_ms) == ((), None)
    assert told.phases == (
        Phase("detect", 10, 10),
        Phase("compute", 10, note="not answered"),
        Phase("revoke"),
        Phase("release"),
        Phase("start"),
    )


def written(group: TimedDecider, path: Path, low: int = 0) -> LogReader:
    with GroupLog.open_writer(path, "connect", reserve_bytes=0) as log:
        for entry in group.entries:
            log.append(log.end, [NewEntry(*entry[1:4], entry.value)], entry.timestamp_ms)
        log.trim(low)
    return LogReader.open(path)


def test_any_epoch_is_explained_from_the_files_and_the_latest_by_default(tmp_path: Path) -> None:
    group = shared()
    with written(group, tmp_path) as log:
        assert EpochCache(log).explain(1) == group.explained(1)
        assert EpochCache(log).explain() == group.explained(2)
        with pytest.raises(NotToldError, match=r"no epoch 3 .* tells of the epochs 1 to 2$"):
            EpochCache(log).explain(3)


def test_the_history_has_the_nodes_that_owned_the_group(tmp_path: Path) -> None:
    group = shared()
    group.at(7_000).write(OwnerBegan(1, "n1"))
    group.at(9_000).write(OwnerResigned(1, "n1", "n2"), OwnerBegan(2, "n2", silence_ms=300))
    with written(group, tmp_path) as log:
        assert EpochCache(log).history().owners == [
            OwnerTerm(1, "n1", 7_000, 0, resigned_ms=9_000),
            OwnerTerm(2, "n2", 9_000, 300),
        ]


def test_an_epoch_names_the_nodes_that_took_the_group_since_the_one_before_it(
    tmp_path: Path,
) -> None:
    group = shared()  # its epochs rose at 1,000 and 5,000
    group.at(7_000).write(OwnerBegan(1, "n1"))
    group.at(9_000).join("W3")
    group.at(11_000).write(OwnerBegan(2, "n2", silence_ms=300))
    n1, n2 = OwnerTerm(1, "n1", 7_000, 0), OwnerTerm(2, "n2", 11_000, 300)
    with written(group, tmp_path) as log:
        named = [EpochCache(log).explain(epoch).owners for epoch in (1, 2, 3)]
    assert named == [(), (n1,), (n1, n2)]


def test_an_epoch_whose_line_is_not_kept_any_more_is_explained_without_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.projections.explain.cache.LINES_MAX", 1)
    group = shared()
    group.at(7_000).write(OwnerBegan(1, "n1"))
    with written(group, tmp_path) as log:
        cached = EpochCache(log, named_max=1)
        assert [cached.explain(epoch).owners for epoch in (1, 2)] == [
            (),
            (OwnerTerm(1, "n1", 7_000, 0),),
        ]


def test_the_history_is_a_line_for_each_epoch(tmp_path: Path) -> None:
    def line(
        group_epoch: int, time_ms: int, settled_after_ms: int, moved: int, placed: int, kept: int
    ) -> EpochLine:
        subject = f"http://w{group_epoch}"
        raised = (group_epoch, time_ms, "member-joined", subject, None, group_epoch, 0)
        return EpochLine(*raised, settled_after_ms, moved, 0, placed, kept, 0, 0, 0, 0)

    first, second = line(1, 1_000, 700, 0, 4, 0), line(2, 5_000, 800, 2, 0, 2)
    with written(shared(), tmp_path) as log:
        assert EpochCache(log).history() == EpochList("connect", 1, 2, False, [first, second])
        assert EpochCache(log).history(1) == EpochList("connect", 1, 2, False, [second])


def test_a_trimmed_log_says_from_where_on_it_tells(tmp_path: Path) -> None:
    group = shared()
    first, second = (each.offset for each in group.entries if each.type == GROUP_METADATA)
    with written(group, tmp_path / "one", first + 1) as log:
        found = EpochCache(log).history()
        assert (found.first_epoch, found.last_epoch, found.is_trimmed) == (2, 2, True)
        assert EpochCache(log).explain(2) == group.explained(2)
        with pytest.raises(NotToldError, match="epochs 2 to 2; what was before is trimmed"):
            EpochCache(log).explain(1)
    untold = pytest.raises(NotToldError, match="of no epoch; what was before is trimmed")
    with written(group, tmp_path / "none", second + 1) as log, untold:
        EpochCache(log).explain()
