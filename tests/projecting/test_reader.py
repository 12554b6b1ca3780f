"""What the log alone tells of every group epoch: its cause, its answer, and what moved."""

from dataclasses import replace
from pathlib import Path

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.messages.commands import ExpireSession, ReleaseParked, RetryAssignor
from fairlead.actors.messages.computing import Assignment, Install
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import PutConnector
from fairlead.events.catalogue import TYPE_OF
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata
from fairlead.projections.explain.diff import Owner, TargetChange, Transfer
from fairlead.projections.explain.epochs import Attempt, EpochReport
from fairlead.projections.explain.reader import read_all
from fairlead_tests.decider import JOIN, resource, resources
from fairlead_tests.log.samples import TIME_MS
from fairlead_tests.projecting.readings import read_epochs
from fairlead_tests.projecting.timed_log import TimedDecider, grown

GROUP_METADATA = TYPE_OF[GroupMetadata].number
A, B, C, D = map(resource, "ABCD")
W1, W2, W3 = (Owner(f"http://w{number}", f"W{number}") for number in (1, 2, 3))


def target_change(report: EpochReport) -> TargetChange:
    assert report.target_change is not None
    return report.target_change


def test_an_epoch_has_its_cause_its_answer_and_what_moved_from_whom_to_whom() -> None:
    told = grown().told()
    assert told[1] == EpochReport(
        GroupMetadata(1, Cause(Why.MEMBER_JOINED, "http://w1"), 1_000),
        (),
        TargetChange(
            1,
            1_500,
            "balanced",
            W1,
            {},
            (),
            (),
            tuple(Transfer(each, None, W1) for each in (A, B, C, D)),
            {},
            {},
            frozenset(),
            TIME_MS + 1_700,
        ),
    )
    assert told[1].took_ms == 500
    second = target_change(told[2])
    assert second.kept == {W1: resources("A B")}
    assert second.moved == (Transfer(C, W1, W2), Transfer(D, W1, W2))
    assert (second.returned, second.placed, second.settled_ms) == ((), (), TIME_MS + 5_900)


def test_epochs_that_one_target_answers_have_the_same_answer() -> None:
    group = TimedDecider()
    group.configure("A")
    group.at(10).join("W1")
    group.at(20).join("W2")
    group.at(50).compute()
    told = group.told()
    assert [report.took_ms for report in told.values()] == [40, 30]
    assert target_change(told[1]) == target_change(told[2])
    assert target_change(told[2]).settled_ms is None


def test_lost_work_is_parked_until_its_deadline_and_then_moves_from_who_is_gone() -> None:
    group = grown()
    group.at(20_000).carry_out(ExpireSession("W2"))
    group.at(20_100).compute()
    group.settle()
    group.at(320_000).carry_out(ReleaseParked())
    group.at(320_100).compute()
    group.settle()
    told = group.told()
    assert told[3].bump.cause == Cause(Why.SESSION_EXPIRED, "http://w2")
    parked = target_change(told[3])
    assert parked.parked == {C: 320_000, D: 320_000}
    assert (parked.kept, parked.moved, parked.placed) == ({W1: resources("A B")}, (), ())
    assert told[4].bump.cause.why is Why.DELAY_EXPIRED
    assert target_change(told[4]).moved == (Transfer(C, W2, W1), Transfer(D, W2, W1))
    assert target_change(told[4]).parked == {}


def test_a_worker_that_comes_back_has_its_work_returned() -> None:
    group = grown()
    group.at(20_000).carry_out(ExpireSession("W2"))
    group.at(20_100).compute()
    back = Heartbeat(
        "connect",
        "W9",
        0,
        "1",
        url="http://w2",
        rebalance_timeout_ms=60_000,
        assignors=group.member("W1").metadata.assignors,
        owned=(),
    )
    group.at(21_000).heartbeat(back)
    group.at(21_100).compute()
    last = target_change(group.told()[4])
    w9 = Owner("http://w2", "W9")
    assert last.returned == (Transfer(C, W2, w9), Transfer(D, W2, w9))
    assert (last.kept, last.moved) == ({W1: resources("A B")}, ())


def test_a_static_member_that_came_back_without_a_bump_keeps_what_it_has() -> None:
    group = TimedDecider()
    group.configure("A")
    static = replace(JOIN, instance_id="i1")
    group.join("W1", replace(static, url="http://w1"))
    group.compute()
    group.settle()
    group.heartbeat(Heartbeat("connect", "W1", -2, "1", instance_id="i1"))
    group.join("W7", replace(static, url="http://w1"))
    group.settle()
    group.join("W2")
    group.compute()
    told = group.told()
    assert set(told) == {1, 2}
    assert target_change(told[2]).kept == {Owner("http://w1", "W7"): resources("A")}


def test_failed_attempts_belong_to_the_epochs_that_they_were_for() -> None:
    group = TimedDecider()
    group.configure("A")
    group.at(10).join("W1")
    snapshot = group.at(20).prepare("W1")
    failed = Install("connect", "W1", 0, snapshot.group_epoch, None, "out of luck")
    group.at(30).carry_out(failed)
    group.at(6_000).carry_out(RetryAssignor())
    group.at(6_010).compute()
    told = group.told()
    assert told[1].attempts == (Attempt(1, 30, "out of luck"),)
    assert told[2].attempts == ()
    assert told[2].bump.cause == Cause(Why.ASSIGNOR_RETRY, "")
    assert {target_change(report).assignment_epoch for report in told.values()} == {2}


def test_what_can_not_be_placed_and_what_is_configured_no_more_are_told() -> None:
    group = grown()
    group.at(9_000).carry_out(PutConnector("connect", "E", {}, principal="rest"))
    snapshot = group.prepare("W1")
    group.configure("A B C E")
    computed = assign(snapshot)
    members = {each: share - {resource("E")} for each, share in computed.members.items()}
    reason = {resource("E"): "too heavy"}
    group.install("W1", snapshot, Assignment(members, unplaceable=reason))
    report = group.told()[3]
    assert (report.bump.cause.why, report.bump.actor) == (Why.CONNECTOR_ADDED, "rest")
    assert target_change(report).unplaceable == reason
    assert target_change(report).retired == resources("D")
    assert target_change(report).kept_count == 3


def test_an_epoch_that_nothing_answered_says_so() -> None:
    group = TimedDecider()
    group.join("W1")
    group.expire("W1", acknowledged=False)
    assert [
        (each.report.group_epoch, each.report.target_change) for each in read_epochs(group.entries)
    ] == [
        (1, None),
        (2, None),
    ]


def test_a_story_is_read_from_the_files_as_far_as_they_still_tell_it(tmp_path: Path) -> None:
    group = grown()
    group.at(20_000).carry_out(ExpireSession("W2"))
    group.at(20_100).compute()
    group.settle()
    first, second, third = (each.offset for each in group.entries if each.type == GROUP_METADATA)
    whole = [1, 2, 3]
    left = {0: whole, first: whole, first + 1: [2, 3], second: [3], third: []}
    for low, epochs in left.items():
        path = tmp_path / str(low)
        with GroupLog.open_writer(path, "connect", reserve_bytes=0) as log:
            for entry in group.entries:
                log.append(log.end, [NewEntry(*entry[1:4], entry.value)], entry.timestamp_ms)
            log.trim(low)
        with LogReader.open(path) as reader:
            told = [each.report for each in read_all(reader)]
            assert told == [group.told()[epoch] for epoch in epochs]
