"""What a worker tells the group of what it runs, and what it writes into its own log."""
# pyright: reportPrivateUsage=false

import logging
from dataclasses import replace

import pytest

from fairlead.actors.messages.members import PutTaskConfigs, ReportStatus
from fairlead.actors.transport.log_format import fields_of
from fairlead.events.commits import Commit, CommitId, Manifest
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.model import (
    BATCHES_RUN,
    NEVER_RESTARTED,
    ErrorClass,
    MemberState,
    Resource,
    RunState,
    TaskConfig,
    Token,
)
from fairlead.events.records import (
    ConnectorConfig,
    CurrentAssignment,
    MemberMetadata,
    Record,
    TargetState,
    TaskConfigs,
    TaskStatus,
)
from fairlead.runtime.node.worker.actor import log_report
from fairlead.runtime.node.worker.core.status_reporter import (
    AGAIN_MS,
    MOST_SPLITS,
    MOST_STATUSES,
    StatusReporter,
)
from fairlead.runtime.pipeline.spi.rows import LaneCount
from fairlead.runtime.pipeline.tasks.reports import (
    BatchDone,
    Ending,
    StatusChanged,
    Stopped,
    TaskConfigsChanged,
)
from fairlead_tests.worker.driven import FixedLog, commit


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        (RunState.FAILED, ["flights-1 is FAILED: no such column: carrier"]),
        (RunState.RESTARTING, ["flights-1 is RESTARTING: no such column: carrier"]),
        (RunState.RUNNING, []),
        (RunState.UNASSIGNED, []),
    ],
)
def test_each_failure_and_each_restart_of_a_task_is_a_line_in_the_log_of_its_worker(
    state: RunState, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    report = StatusChanged(Resource("flights", 1), Token(2, 1), state, "no such column: carrier")
    with caplog.at_level(logging.INFO):
        log_report(report)
    assert [record.getMessage() for record in caplog.records] == lines


def test_what_a_task_waits_for_is_a_line_in_the_log_of_its_worker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waits = "waiting for the sink: no route", "", NEVER_RESTARTED, ErrorClass.OUTSIDE
    log_report(StatusChanged(Resource("a", 1), Token(2, 1), RunState.RUNNING, *waits))
    told = [record.getMessage() for record in caplog.records]
    assert told == ["a-1 is RUNNING: outside: waiting for the sink: no route"]


@pytest.mark.parametrize(
    ("batch", "is_first", "level"),
    [
        (0, True, logging.INFO),
        (7, True, logging.INFO),
        (1, False, logging.DEBUG),
        (98, False, logging.DEBUG),
        (99, False, logging.INFO),
        (100, False, logging.DEBUG),
        (199, False, logging.INFO),
    ],
)
def test_the_first_batch_and_each_hundredth_is_a_line_and_all_are_for_who_debugs(
    batch: int, is_first: bool, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    of = CommitId("flights", 1, Token(2, 1), batch)
    manifest = Manifest("/lake", "staging", 9, 90, 1)
    done = Commit(of, (), manifest, 10, skipped=1)
    with caplog.at_level(logging.DEBUG):
        lanes = LaneCount(3, 7, "a reason")
        took = {"plan": 0.5, "run": 1.0}
        log_report(BatchDone(done, 0, is_first, took, ranges=4, lanes=lanes))
    (line,) = caplog.records
    assert line.getMessage() == (
        f"flights-1 committed batch {batch}: 10 rows in, 9 out, 1 bad rows left out;"
        " by Arrow 3 ranges with 7 rows, by Spark 1 ranges with 3 rows (a reason);"
        " plan 0.500 s, run 1.000 s"
    )
    assert (line.levelno, fields_of(line)) == (
        level,
        {"connector": "flights", "task": 1, "epoch": 2},
    )


@pytest.mark.parametrize(
    ("reason", "trace", "told"),
    [
        ("3 is no word", "3 is no word", "input: 3 is no word"),
        ("no table: t; restarts in 1 s", "no table: t", "input: no table: t; restarts in 1 s"),
        ("it is bad", "it is bad\nand worse", "input: it is bad\nand worse"),
        (
            "ValueError: no",
            "Traceback:\n  File x\nValueError: no\n\nfailures before:\n12:00 ValueError: no",
            "input: ValueError: no\nTraceback:\n  File x\n\nfailures before:\n12:00 ValueError: no",
        ),
    ],
)
def test_the_group_is_told_an_error_by_its_class_and_once(
    reason: str, trace: str, told: str
) -> None:
    reporter, a0, token = StatusReporter("connect", FixedLog("W1")), Resource("a", 0), Token(2, 1)
    why = reason, trace, NEVER_RESTARTED, ErrorClass.INPUT
    reporter.add(StatusChanged(a0, token, RunState.FAILED, *why), 1)
    group = Group("connect")
    evolve(group, ConnectorConfig("a", {}, 1, 0), 0)
    (report,) = reporter.take_due(group, 1)
    assert isinstance(report, ReportStatus)
    assert [each.reason for each in report.updates] == [told]


def test_what_is_said_later_has_a_later_time_whatever_the_clock_says() -> None:
    reporter, a0, token = StatusReporter("connect", FixedLog("W1")), Resource("a", 0), Token(2, 1)
    group = Group("connect")
    evolve(group, ConnectorConfig("a", {}, 1, 0), 0)
    times = list[int]()
    for state, at_ms in ((RunState.RUNNING, 100), (RunState.FAILED, 100), (RunState.RUNNING, 5)):
        reporter.add(StatusChanged(a0, token, state), at_ms)
        (report,) = reporter.take_due(group, at_ms)
        assert isinstance(report, ReportStatus)
        times += [each.at_ms for each in report.updates]
    assert times == [100, 101, 102]


def test_a_word_that_the_log_shows_from_before_is_said_while_another_is_on_its_way() -> None:
    reporter, a0, token = StatusReporter("connect", FixedLog("W1")), Resource("a", 0), Token(2, 1)
    group = Group("connect")
    evolve(group, ConnectorConfig("a", {}, 1, 0), 0)

    def logged(state: RunState, at_ms: int) -> None:
        evolve(group, TaskStatus(a0, state, "w1", token, at_ms), 1)

    def said(state: RunState, at_ms: int) -> list[RunState]:
        reporter.add(StatusChanged(a0, token, state), at_ms)
        reports = [
            each for each in reporter.take_due(group, at_ms) if isinstance(each, ReportStatus)
        ]
        return [update.state for each in reports for update in each.updates]

    assert said(RunState.RUNNING, 10) == [RunState.RUNNING]
    logged(RunState.RUNNING, 10)
    assert said(RunState.RUNNING, 11) == [], "it is known"
    assert said(RunState.UNASSIGNED, 20) == [RunState.UNASSIGNED]
    assert said(RunState.RUNNING, 30) == [RunState.RUNNING]
    logged(RunState.UNASSIGNED, 20)
    assert list(reporter.take_due(group, 2_000)), "and again, as long as the log tells another"
    logged(RunState.RUNNING, 30)
    assert not list(reporter.take_due(group, 4_000))


def test_a_split_of_a_connector_that_is_not_to_run_is_not_said_again() -> None:
    a, token, reporter = Resource("a"), Token(2, 1), StatusReporter("connect", FixedLog("W1"))
    group = Group("connect")
    facts: tuple[Record, ...] = (
        ConnectorConfig("a", {}, 1, 0),
        MemberMetadata("W1"),
        CurrentAssignment("W1", 2, 1, MemberState.STABLE, {a: 2}, {}),
    )
    for offset, fact in enumerate(facts):
        evolve(group, fact, offset)
    reporter.add(TaskConfigsChanged("a", token, ({"n": "0"},)), 10)
    said = PutTaskConfigs("connect", "W1", "a", token, ({"n": "0"},))
    assert list(reporter.take_due(group, 10)) == [said]
    assert list(reporter.take_due(group, 10 + AGAIN_MS)) == [said]
    for number, state in enumerate((RunState.PAUSED, RunState.RUNNING), 2):
        evolve(group, TargetState("a", state, 20), number)
        assert not list(reporter.take_due(group, 10 + number * AGAIN_MS))
    assert reporter.next_tick_ms() is None


def test_a_new_report_does_not_send_those_again_that_wait_for_the_log() -> None:
    token, reporter, group = (
        Token(2, 1),
        StatusReporter("connect", FixedLog("W1")),
        Group("connect"),
    )
    names = ("a", "b")
    evolve(group, MemberMetadata("W1"), 0)
    for name in names:
        evolve(group, ConnectorConfig(name, {}, 1, 0), 1)
    owned = {Resource(name): 2 for name in names}
    evolve(group, CurrentAssignment("W1", 2, 1, MemberState.STABLE, owned, {}), 2)

    def sent(at_ms: int) -> list[object]:
        told = list[object]()
        for each in reporter.take_due(group, at_ms):
            if isinstance(each, ReportStatus):
                told += [update.resource for update in each.updates]
            elif isinstance(each, PutTaskConfigs):
                told.append(each.connector)
        return told

    told = list[list[object]]()
    for at_ms, name in enumerate(names):
        reporter.add(TaskConfigsChanged(name, token, ({"n": "0"},)), at_ms)
        reporter.add(StatusChanged(Resource(name), token, RunState.RUNNING), at_ms)
        told.append(sent(at_ms))
    assert told == [["a", Resource("a")], ["b", Resource("b")]]
    everything = ["a", "b", Resource("a"), Resource("b")]
    assert [sent(2), sent(AGAIN_MS), sent(AGAIN_MS + 1)] == [[], everything, []]
    reporter.repeat()
    assert sent(AGAIN_MS + 2) == everything, "the group has a new process"


def test_a_remark_does_not_hide_that_a_task_runs_batches() -> None:
    reporter, a0, token = StatusReporter("connect", FixedLog("W1")), Resource("a", 0), Token(2, 1)
    group = Group("connect")
    evolve(group, ConnectorConfig("a", {}, 1, 0), 0)
    first = replace(commit("a-0"), commit_id=CommitId("a", 0, token, 0))
    reporter.add(BatchDone(first, 50, is_first=True, seconds={}), 55)
    reporter.add(StatusChanged(a0, token, RunState.RUNNING, "1 link is skipped"), 60)

    def told() -> list[str]:
        (report,) = reporter.take_due(group, 100)
        assert isinstance(report, ReportStatus)
        (update,) = report.updates
        status = TaskStatus(a0, update.state, "w1", token, update.at_ms, update.reason)
        evolve(group, status, 1)
        return [update.reason]

    assert [told(), told(), list(reporter.take_due(group, 200))] == [
        [BATCHES_RUN],
        ["1 link is skipped"],
        [],
    ]


def test_only_so_many_task_configs_are_on_their_way_and_the_log_makes_room_for_more() -> None:
    reporter, token = StatusReporter("connect", FixedLog("W1")), Token(2, 1)
    group, names = Group("connect"), [f"c{number:03}" for number in range(MOST_SPLITS + 5)]
    grants = {Resource(name): 2 for name in names}
    metadata = MemberMetadata("W1", "i", 1)
    records: list[Record] = [ConnectorConfig(name, {}, 1, 0) for name in names]
    records += [metadata, CurrentAssignment("W1", 2, 0, MemberState.STABLE, grants, {})]
    for offset, record in enumerate(records):
        evolve(group, record, offset)
    for name in names:
        reporter.add(TaskConfigsChanged(name, token, ({"n": "0"},)), 10)

    def told(now_ms: int) -> list[str]:
        found = reporter.take_due(group, now_ms)
        return [each.connector for each in found if isinstance(each, PutTaskConfigs)]

    assert told(2_000) == names[:MOST_SPLITS]
    assert reporter.awaited == {Resource(name) for name in names[:MOST_SPLITS]}
    assert told(2_010) == []
    evolve(group, TaskConfigs(names[0], 1, (TaskConfig({"n": "0"}, 1),)), group.end)
    assert told(2_020) == [names[MOST_SPLITS]]
    assert told(2_000 + AGAIN_MS) == names[1 : MOST_SPLITS + 1], "these are said again"


def test_statuses_wait_while_many_are_on_their_way_but_never_that_a_resource_has_ended() -> None:
    reporter, token, group = (
        StatusReporter("connect", FixedLog("W1")),
        Token(2, 1),
        Group("connect"),
    )
    evolve(group, ConnectorConfig("a", {}, 1, 0), 0)
    tasks = [Resource("a", number) for number in range(MOST_STATUSES + 6)]
    on_way, waiting = tasks[:MOST_STATUSES], tasks[MOST_STATUSES:]

    def told(now_ms: int) -> list[Resource]:
        found = reporter.take_due(group, now_ms)
        return [
            each.resource for one in found if isinstance(one, ReportStatus) for each in one.updates
        ]

    def says(resource: Resource, state: RunState = RunState.RUNNING) -> list[Resource]:
        reporter.add(StatusChanged(resource, token, state, "waiting for the engine"), 10)
        return told(2_000)

    assert [says(each) for each in on_way] == [[each] for each in on_way]
    assert [says(each, RunState.UNASSIGNED) for each in waiting[:2]] == [[], []]
    reporter.add(Stopped(waiting[2], token, Ending.STOPPED), 10)
    assert told(2_000) == waiting[:3]
    assert says(waiting[3]) == says(waiting[4]) == []
    for offset, each in enumerate(tasks[:4], 1):
        status = TaskStatus(each, RunState.RUNNING, "w1", token, 10, "waiting for the engine")
        evolve(group, status, offset)
    assert says(waiting[5]) == waiting[3:], "in one message, once the log shows the others"
    assert told(2_000 + AGAIN_MS) == tasks[4:], "these are said again"


def test_what_left_the_member_and_is_known_to_have_ended_is_forgotten() -> None:
    reporter, token = StatusReporter("connect", FixedLog("W1")), Token(2, 1)
    group = Group("connect")
    evolve(group, ConnectorConfig("a", {}, 1, 0), 0)
    for task in range(3):
        resource = Resource("a", task)
        reporter.add(StatusChanged(resource, token, RunState.UNASSIGNED), 10)
        assert list(reporter.take_due(group, 10))
        evolve(group, TaskStatus(resource, RunState.UNASSIGNED, "w1", token, 10), 1 + task)
        assert not list(reporter.take_due(group, 2_000))
        assert not reporter._latest_ms  # what must not grow
