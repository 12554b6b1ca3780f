"""A worker's core, driven by hand: what it does, and in which order (transcripts: `driven.py`)."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    DescribeAssignorsReply,
    NotifyAssignment,
)
from fairlead.actors.messages.computing import Assignment, InstallReply, PrepareReply, Snapshot
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import (
    CommitOffsets,
    CommitReply,
    CommitVerdict,
    Heartbeat,
    HeartbeatReply,
)
from fairlead.events.commits import CommitId
from fairlead.events.model import NOTHING, ClientAssignor, Resource, RunState, TaskConfig, Token
from fairlead.events.records import (
    ConnectorConfig,
    MemberMetadata,
    TargetAssignment,
    TaskConfigs,
    TaskStatus,
)
from fairlead.runtime.cluster.messages import AssignorAt, GroupAt, Leave
from fairlead.runtime.node.worker.core.commit_queue import ANSWER_MS
from fairlead.runtime.node.worker.core.contract import (
    AnswerCommit,
    BatchPublished,
    CommitAsked,
    EngineStarted,
    EngineWarm,
    Exit,
    StartResource,
)
from fairlead.runtime.node.worker.core.starts import (
    MOST_SILENT,
    MOST_STARTING,
    REST_MS,
    STARTING_MS,
)
from fairlead.runtime.node.worker.core.worker_core import LOOK_MS
from fairlead.runtime.pipeline.tasks.reports import (
    Ending,
    Hung,
    StatusChanged,
    TaskConfigsChanged,
)
from fairlead_tests.membership.driver import HEARTBEAT_MS, PATIENCE_MS, SESSION_MS, resources
from fairlead_tests.worker.driven import PID, Driven, commit

A0 = Resource("A", 0)


def transcript(text: str) -> str:
    """Return a transcript as it stands in a test, without its indentation."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def running(text: str = "A A-0", driven: Driven | None = None) -> Driven:
    """A core that runs these, and whose group knows; its transcript begins anew."""
    driven = driven or Driven()
    driven.begin()
    driven.answer("")
    driven.grants(text)
    driven.answer(text)
    driven.answer()
    driven.transcript()
    return driven


# -- joining


def test_a_worker_joins_once_an_assignor_has_spoken_for_it() -> None:
    driven = Driven()
    driven.begin()
    assert driven.transcript() == transcript("""
        < begin
        < AssignorAt
        > DescribeAssignors
        < DescribeAssignorsReply
        > heartbeat at 0, owned: nothing
    """)


def test_a_worker_whose_group_runs_an_assignor_itself_joins_at_once() -> None:
    driven = Driven(names=())
    driven.begin()
    assert driven.transcript() == "< begin\n> heartbeat at 0, owned: nothing"


def test_a_worker_that_may_not_join_cold_joins_when_its_engine_is_warm() -> None:
    driven = Driven(names=(), is_warm=False, joins_warm=True)
    driven.begin()
    driven.report(EngineStarted(99), EngineWarm())
    assert driven.transcript() == transcript("""
        < begin
        < EngineStarted, EngineWarm
        > EngineRuns
        > heartbeat at 0, owned: nothing
    """)


def test_assignors_are_asked_anew_once_a_cold_worker_is_warm() -> None:
    driven = Driven(is_warm=False)
    driven.begin()
    assert driven.last(DescribeAssignors).worker.capacity == 0
    driven.report(EngineWarm())
    driven.passes(1)
    assert driven.last(DescribeAssignors).worker.capacity == 1


def test_the_assignor_hears_of_a_share_once_the_log_shows_what_it_rests_on() -> None:
    driven = Driven()
    driven.begin()
    request, end = driven.last(Heartbeat), driven.log.group.end
    share = resources("A A-0")
    reply = HeartbeatReply(
        Error.NONE,
        request.member_id,
        1,
        request.incarnation,
        request.sequence,
        log_offset=end + 5,
        assignment=share,
    )
    target = TargetAssignment(1, {"m": share}, "balanced")
    driven.log.write(MemberMetadata("m", joined_epoch=1), target)
    driven.hear(reply)
    assert "NotifyAssignment" not in driven.transcript()
    driven.grants("A A-0")
    driven.log.group.end = end + 5
    driven.passes(50)
    assert driven.last(NotifyAssignment).assignment.resources == share


def test_a_new_process_of_assignors_hears_of_the_share_as_well() -> None:
    driven, share = Driven(), resources("A")
    driven.begin()
    driven.log.write(MemberMetadata("m", joined_epoch=1), TargetAssignment(1, {"m": share}, "x"))
    driven.answer("A")
    driven.grants("A")
    driven.passes(LOOK_MS)
    first = driven.last(NotifyAssignment)
    driven.transcript()
    driven.hear(AssignorAt(None, PID + 1))
    asked = driven.last(DescribeAssignors)
    driven.hear(DescribeAssignorsReply(asked.number, (ClientAssignor("balanced"),)))
    driven.passes(LOOK_MS)
    again = driven.last(NotifyAssignment)
    assert (again is first, again.assignment.resources) == (False, share)


# -- starting and stopping


def test_what_is_granted_starts_with_its_config_once_the_log_shows_it() -> None:
    driven = Driven()
    driven.begin()
    driven.answer("A A-0")
    driven.transcript()
    driven.passes(50)
    assert driven.transcript() == "< 50 ms", "the log does not show it yet"
    driven.grants("A A-0", A={"x": "y"})
    driven.passes(50)
    started = [each.launch for each in driven.effects if isinstance(each, StartResource)]
    assert [(str(each.resource), each.token) for each in started] == [
        ("A", Token(1, 1)),
        ("A-0", Token(1, 1)),
    ]
    assert started[0].config == {"name": "A", "x": "y"}
    assert started[1].config == {"task": "0"}


def test_what_runs_is_not_started_again_whatever_else_the_log_says() -> None:
    driven = running()
    driven.log.write(ConnectorConfig("B", {}, 1, 0))
    for _ in range(3):
        driven.answer("A A-0")
        driven.passes(HEARTBEAT_MS)
    assert not [line for line in driven.transcript().splitlines() if "start" in line]


def test_only_so_many_are_starting_and_each_whose_state_the_log_shows_or_that_ends_makes_room() -> (
    None
):
    many = " ".join(["A", *(f"A-{number}" for number in range(4 * MOST_STARTING))])
    token, state = Token(1, 1), RunState.RUNNING
    driven = Driven()
    driven.begin()
    driven.answer("")
    driven.grants(many)

    def started() -> list[Resource]:
        return [each.launch.resource for each in driven.effects if isinstance(each, StartResource)]

    driven.answer(many)
    counts = [len(started())]
    driven.passes(STARTING_MS - 1)
    counts.append(len(started()))
    while len(started()) > counts[-1] or len(counts) == 2:
        counts.append(len(started()))
        driven.report(*(StatusChanged(each, token, state) for each in started()))
    assert counts == [*[MOST_SILENT] * 3, *range(2 * MOST_SILENT, MOST_STARTING + 1, MOST_SILENT)]
    driven.log.write(*(TaskStatus(each, state, "w1", token, 0) for each in started()[:3]))
    driven.answer(many)
    assert len(started()) == MOST_STARTING + 3
    driven.ends("A-5")
    assert len(started()) == MOST_STARTING + 4


def test_what_reports_no_state_for_a_while_makes_room_for_others() -> None:
    many = " ".join(["A", *(f"A-{number}" for number in range(2 * MOST_SILENT))])
    driven = Driven()
    driven.begin()
    driven.answer("")
    driven.grants(many)
    driven.answer(many)
    counts = list[int]()
    for passes_ms in (STARTING_MS - 1, 1, STARTING_MS):
        driven.passes(passes_ms)
        counts.append(sum(isinstance(each, StartResource) for each in driven.effects))
    assert counts == [MOST_SILENT, 2 * MOST_SILENT, 2 * MOST_SILENT + 1]


def test_a_launch_that_changed_is_stopped_and_starts_anew_when_it_has_ended() -> None:
    driven = running()
    tasks = driven.log.group.task_configs["A"].tasks
    other = replace(tasks[0], config={"task": "other"}, generation=2)
    driven.log.write(TaskConfigs("A", 2, (other,)))
    driven.answer()
    driven.ends("A-0")
    assert driven.transcript() == transcript("""
        < NONE at 1: no news
        > heartbeat at 1
        > stop A-0
        < Stopped
        > start A-0 under 1-2
    """)


def test_a_task_is_stopped_once_for_a_config_of_which_its_connector_is_to_tell_it() -> None:
    driven = running()
    driven.log.write(ConnectorConfig("A", {"name": "A", "x": "y"}, 2, 0))
    driven.answer()
    driven.ends("A")
    driven.transcript()
    driven.log.write(TaskConfigs("A", 2, (TaskConfig({"task": "0", "x": "y"}, 2),)))
    driven.answer()
    driven.ends("A-0")
    assert driven.transcript() == transcript("""
        < NONE at 1: no news
        > heartbeat at 1
        > stop A-0
        < Stopped
        > start A-0 under 1-2
    """)


def test_a_task_is_stopped_for_what_only_its_connectors_config_has() -> None:
    driven = running()
    for memory in ("9", "8"):
        config = {"name": "A", "task.memory": memory}
        driven.log.write(ConnectorConfig("A", config, 2, 0))
        driven.answer()
        driven.ends("A-0")
        assert "> stop A-0" in driven.transcript().splitlines()
    repeated = TaskConfig({"task": "0", "task.memory": "8"}, 1)
    driven.log.write(TaskConfigs("A", 1, (repeated,)))
    driven.answer()
    driven.ends("A-0")
    driven.transcript()
    driven.log.write(ConnectorConfig("A", {"name": "A", "task.memory": "7"}, 2, 0))
    driven.answer()
    assert "stop A-0" not in driven.transcript()


def test_what_ends_by_itself_rests_and_begins_again_under_the_same_token() -> None:
    driven = running()
    driven.ends("A-0", Ending.FENCED)
    driven.passes(REST_MS - 1)
    driven.passes(1)
    lines = [line for line in driven.transcript().splitlines() if "status" not in line]
    assert lines == ["< Stopped", f"< {REST_MS - 1} ms", "< 1 ms", "> start A-0 under 1-1"]


def test_what_is_revoked_is_free_when_it_has_ended_and_its_end_is_told_first() -> None:
    driven = running()
    driven.answer("A")
    driven.ends("A-0")
    assert driven.transcript() == transcript("""
        < NONE at 1: A
        > stop A-0
        > heartbeat at 1
        < Stopped
        > status: A-0 UNASSIGNED
        > heartbeat at 1, owned: A
    """)


def test_what_was_never_begun_is_free_at_once() -> None:
    driven = Driven()
    driven.begin()
    driven.answer("A A-0")
    driven.answer()
    driven.transcript()
    driven.answer("A")
    assert driven.transcript() == transcript("""
        < NONE at 1: A
        > heartbeat at 1
        > heartbeat at 1, owned: A
    """)


def test_what_does_not_end_ends_the_process() -> None:
    driven = running()
    driven.report(Hung(A0, Token(1, 1)))
    assert [each for each in driven.effects if isinstance(each, Exit)] == [Exit("A-0 does not end")]


def test_a_member_that_may_have_lost_its_session_abandons_all_and_joins_when_it_has_ended() -> None:
    driven = running()
    driven.passes(PATIENCE_MS)
    driven.passes(SESSION_MS - PATIENCE_MS - 1_000)
    driven.ends("A A-0", Ending.CANCELLED)
    assert driven.transcript() == transcript("""
        < 4500 ms
        > heartbeat at 1, owned: A A-0
        < 4500 ms
        > abandon all
        < Stopped, Stopped
        > status: A UNASSIGNED, A-0 UNASSIGNED
        > heartbeat at 0, owned: nothing
    """)


# -- what the group is told, and in which order


def test_a_goodbye_comes_after_the_ends_and_the_commits() -> None:
    driven = running()
    driven.hear(Leave())
    driven.report(CommitAsked(commit("A-0")))
    driven.ends("A A-0")
    assert driven.transcript() == transcript("""
        < Leave
        > stop A
        > stop A-0
        < CommitAsked
        > commits of A-0, 0 published
        < Stopped, Stopped
        > status: A UNASSIGNED, A-0 UNASSIGNED
        > heartbeat at -1
    """)


def test_a_commit_that_is_asked_for_with_the_last_end_goes_before_the_goodbye() -> None:
    driven = running("A-0")
    driven.hear(Leave())
    driven.transcript()
    driven.report(BatchPublished(CommitId("A", 0, Token(1, 1), 3)))
    driven.answer()
    driven.ends("A-0")
    lines = driven.transcript().splitlines()
    assert lines.index("> commits of nothing, 1 published") < lines.index("> heartbeat at -1")


def test_a_status_is_said_again_until_the_log_shows_it() -> None:
    driven = running()
    driven.report(StatusChanged(A0, Token(1, 1), RunState.RUNNING))
    driven.passes(999)
    driven.passes(1)
    assert driven.transcript() == transcript("""
        < StatusChanged
        > status: A-0 RUNNING
        < 999 ms
        < 1 ms
        > status: A-0 RUNNING
    """)


def test_a_group_that_moved_hears_of_ends_again_before_a_goodbye() -> None:
    driven = running("A-0")
    driven.hear(Leave())
    driven.ends("A-0")
    driven.transcript()
    driven.hear(GroupAt(None, 2))
    assert driven.transcript() == transcript("""
        < GroupAt
        > status: A-0 UNASSIGNED
        > heartbeat at -1
    """)


def test_how_a_connector_splits_its_work_is_said_until_the_log_shows_it() -> None:
    driven = running()
    driven.report(TaskConfigsChanged("A", Token(1, 1), ({"task": "0"},)))
    driven.report(TaskConfigsChanged("A", Token(1, 1), ({"task": "0"}, {"task": "1"})))
    assert driven.transcript() == transcript("""
        < TaskConfigsChanged
        < TaskConfigsChanged
        > A has 2 tasks
    """)


# -- commits


def test_a_commit_that_was_carried_is_never_lost_when_the_group_moves() -> None:
    driven = running()
    driven.report(CommitAsked(commit("A-0", 7)), BatchPublished(CommitId("A", 0, Token(1, 1), 6)))
    driven.hear(GroupAt(None, 5))
    driven.report(CommitAsked(commit("A-0", 7)))
    number = driven.last(CommitOffsets).number
    told = CommitVerdict(commit("A-0", 7).commit_id, Error.NONE)
    driven.hear(CommitReply((told,), number - 1))
    driven.hear(CommitReply((told,), number))
    assert driven.transcript() == transcript("""
        < CommitAsked, BatchPublished
        > commits of A-0, 1 published
        < GroupAt
        > commit 7 of A-0: the group's actor went away
        > heartbeat at 1, owned: A A-0
        > commits of nothing, 1 published
        < CommitAsked
        < CommitReply
        < CommitReply
        > commits of A-0, 0 published
    """)
    driven.hear(CommitReply((told,), number + 1))
    assert driven.effects[-1] == AnswerCommit(told.commit_id, told)


def test_a_commit_without_an_answer_in_time_is_told_as_unknown() -> None:
    driven = running()
    driven.report(CommitAsked(commit("A-0")))
    driven.transcript()
    driven.passes(ANSWER_MS)
    assert driven.transcript() == transcript("""
        < 4000 ms
        > commit 0 of A-0: the group did not answer in time
    """)


# -- computing


SNAPSHOT = Snapshot(4, 3, "balanced", b"", NOTHING, {}, (), {}, NOTHING, 0)


def computing() -> Driven:
    """A core whose assignor computes."""
    driven = running()
    driven.answer(error=Error.COMPUTE_ASSIGNMENT)
    driven.hear(PrepareReply(Error.NONE, snapshot=SNAPSHOT))
    return driven


def test_a_computation_goes_from_the_group_to_the_assignor_and_back() -> None:
    driven = computing()
    driven.answer(error=Error.COMPUTE_ASSIGNMENT)
    driven.hear(ComputeAssignmentReply(4, Assignment({}), "", SNAPSHOT.snapshot_id))
    driven.hear(InstallReply(Error.NONE))
    assert driven.transcript() == transcript("""
        < COMPUTE_ASSIGNMENT at 1: no news
        > Prepare
        > heartbeat at 1
        < PrepareReply
        > ComputeAssignment
        < COMPUTE_ASSIGNMENT at 1: no news
        > heartbeat at 1
        < ComputeAssignmentReply
        > Install
        < InstallReply
    """)


def test_an_answer_to_an_earlier_install_ends_no_computation() -> None:
    driven = computing()
    driven.transcript()
    driven.hear(InstallReply(Error.UNKNOWN_MEMBER_ID))
    driven.answer(error=Error.COMPUTE_ASSIGNMENT)
    assert driven.transcript() == transcript("""
        < InstallReply
        < COMPUTE_ASSIGNMENT at 1: no news
        > heartbeat at 1
    """)


@pytest.mark.parametrize(("number", "is_asked"), [(-1, False), (7, True)])
def test_what_another_process_of_the_group_asked_for_is_dropped(
    number: int, is_asked: bool
) -> None:
    driven = computing()
    driven.hear(GroupAt(None, number))
    driven.transcript()
    driven.answer(error=Error.COMPUTE_ASSIGNMENT)
    assert ("> Prepare" in driven.transcript()) == is_asked


def test_a_new_assignor_process_is_asked_what_the_old_one_did_not_answer() -> None:
    driven = computing()
    driven.transcript()
    driven.hear(AssignorAt(None, PID + 1))
    assert driven.transcript() == transcript("""
        < AssignorAt
        > DescribeAssignors
        > ComputeAssignment
    """)
    assert driven.last(ComputeAssignment).snapshot == SNAPSHOT


def test_what_an_assignor_comes_to_say_else_is_in_the_next_heartbeat() -> None:
    driven = running()
    driven.passes(2_000)
    driven.answer()
    for _ in range(4):
        driven.passes(2_000)
        driven.answer()
    other = ClientAssignor("balanced", metadata=b"other")
    driven.transcript()
    driven.hear(DescribeAssignorsReply(driven.last(DescribeAssignors).number, (other,)))
    assert driven.transcript() == transcript("""
        < DescribeAssignorsReply
        > heartbeat at 1, owned: A A-0
    """)


# -- when it is to be woken


def test_a_worker_at_rest_is_woken_about_once_a_second() -> None:
    driven = running()
    wakes, until_ms = 0, driven.now_ms + 20 * HEARTBEAT_MS
    answer_at_ms = driven.now_ms + HEARTBEAT_MS
    while driven.now_ms < until_ms:
        due_ms = min(driven.core.next_tick_ms(), answer_at_ms)
        driven.now_ms = max(due_ms, driven.now_ms)
        if due_ms == answer_at_ms:
            answer_at_ms += HEARTBEAT_MS
            driven.answer()
        else:
            wakes += 1
            driven.passes(0)
            asked = driven.last(DescribeAssignors)
            driven.hear(DescribeAssignorsReply(asked.number, (ClientAssignor("balanced"),)))
    assert wakes <= (20 * HEARTBEAT_MS) // LOOK_MS + 20 * HEARTBEAT_MS // 10_000


@pytest.mark.parametrize("names", [("balanced",), ()])
def test_time_is_never_due_again_at_the_moment_that_it_was_let_pass(names: tuple[str, ...]) -> None:
    driven = running(driven=Driven(names=names))
    driven.report(CommitAsked(commit("A-0")), StatusChanged(A0, Token(1, 1), RunState.RUNNING))
    for _ in range(50):
        due_ms = driven.core.next_tick_ms()
        assert due_ms > driven.now_ms
        driven.now_ms = due_ms
        driven.passes(0)
        if any(isinstance(each, Exit) for each in driven.effects):
            break
