"""Crews of classic workers: what their group, its leader and they make of each other."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from fairlead.actors.assignors.classic.protocol import AssignmentError, ReceivedAssignment
from fairlead.actors.classic.bytes.connect import decode_assignment
from fairlead.actors.messages.classic import (
    ClassicCall,
    ClassicHeartbeatReply,
    JoinGroup,
    JoinGroupReply,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.classic.membership import ClassicMembership
from fairlead.actors.worker.instructions import Identity, Instruction, SendCall
from fairlead.actors.worker.states import State
from fairlead.events.group import token_of
from fairlead.events.model import NOTHING, Resource, Resources
from fairlead_tests.classic.crew import TIMING, Crew

WORK = "a a-0 a-1 a-2 b b-0"
BEAT_MS = TIMING.heartbeat_interval_ms


@pytest.fixture
def crew() -> Crew:
    made = Crew()
    made.configure(WORK)
    return made


def told(crew: Crew, name: str) -> ReceivedAssignment:
    """Return what a worker was told in the last generation."""
    member_id, classic = crew.workers[name].membership.member_id, crew.group.classic
    assert classic is not None
    (found,) = (each for each in classic.members if each.member_id == member_id)
    return decode_assignment(found.assignment, 2)


def test_a_first_worker_leads_and_runs_everything(crew: Crew) -> None:
    crew.comes("w1")
    assert crew.running() == {"w1": WORK}
    assert (crew.generation, crew.leader(), crew.is_settled) == (1, "w1", True)


def test_work_moves_in_two_rounds_one_to_give_up_and_one_to_give(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.goes_on(BEAT_MS)
    assert crew.generation == 2
    assert told(crew, "w1").revoked == (Resource("a"), Resource("a", 0), Resource("a", 1))
    assert told(crew, "w2").assigned == ()
    assert crew.running() == {"w1": "a-2 b b-0", "w2": ""}
    crew.goes_on(BEAT_MS)
    assert (crew.generation, crew.is_settled) == (3, True)
    assert crew.running() == {"w1": "a-2 b b-0", "w2": "a a-0 a-1"}


def test_what_does_not_move_runs_on_under_its_token(crew: Crew) -> None:
    crew.comes("w1")
    first = crew.workers["w1"].membership.member_id
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    held = {
        member_id: each.current.assigned for member_id, each in crew.group.classic_members.items()
    }
    second = crew.workers["w2"].membership.member_id
    assert set(held[first].values()) == {1}
    assert set(held[second].values()) == {3}


def test_a_worker_joins_anew_only_once_all_has_stopped_that_it_gives_up(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.stop_ms = 5_000
    crew.goes_on(BEAT_MS + 4_000)
    assert crew.running() == {"w1": WORK, "w2": ""}
    assert crew.generation == 2
    crew.goes_on(2 * BEAT_MS)
    assert crew.running() == {"w1": "a-2 b b-0", "w2": "a a-0 a-1"}


def test_in_eager_crews_all_stops_before_a_round_and_one_round_is_enough(crew: Crew) -> None:
    crew.comes("w1", "eager")
    crew.comes("w2", "eager")
    crew.stop_ms = 1_000
    crew.goes_on(BEAT_MS)
    assert crew.running() == {"w1": WORK, "w2": ""}
    crew.goes_on(1_000)
    assert crew.generation == 2
    assert crew.running() == {"w1": "a a-0 a-2", "w2": "a-1 b b-0"}
    assert crew.is_settled


def test_beside_an_eager_worker_all_speak_eager_and_return_when_it_has_left(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2", "eager")
    crew.goes_on(2 * BEAT_MS)
    assert crew.group.classic is not None
    assert (crew.group.classic.protocol, crew.is_settled) == ("default", True)
    assert crew.running() == {"w1": "a a-0 a-2", "w2": "a-1 b b-0"}
    crew.lets_leave("w2")
    del crew.workers["w2"]
    crew.goes_on(2 * BEAT_MS)
    assert crew.group.classic.protocol == "sessioned"
    assert (crew.running()["w1"], crew.is_settled) == (WORK, True)


@pytest.mark.parametrize("mode", ["eager", "sessioned"])
def test_nothing_runs_twice_as_a_crew_begins_to_speak_eagerly_and_ends_it(
    crew: Crew, mode: str
) -> None:
    crew.stop_ms = 1_700
    for name, each in (("w1", "sessioned"), ("w2", "compatible"), ("w3", "eager"), ("w4", mode)):
        crew.comes(name, each)
        goes_on_apart(crew, 5 * BEAT_MS)
        assert crew.is_settled
    crew.lets_leave("w3")
    goes_on_apart(crew, 5 * BEAT_MS)
    del crew.workers["w3"]
    assert crew.is_settled


def goes_on_apart(crew: Crew, milliseconds: int) -> None:
    """Let time pass, and see that nothing begins at one worker that another has not stopped yet.

    What the log does not grant does not begin, whatever a leader says.
    """
    seen: dict[str, Resources] = {}
    for _ in range(milliseconds // 100):
        crew.goes_on(100)
        for name, worker in crew.workers.items():
            member = crew.group.classic_members.get(worker.membership.member_id)
            granted = member.current.assigned.keys() if member else NOTHING
            seen[name] = (seen.get(name, NOTHING) & worker.runs) | (worker.runs & granted)
        every = [each for name in crew.workers for each in seen[name]]
        assert len(every) == len(set(every)), seen


def test_a_round_ends_the_wait_for_an_assignment_of_the_generation_before() -> None:
    worker = ClassicMembership(Identity("g", "w", "w", "http://w/"), TIMING, "sessioned", 0)
    (join,) = calls(worker.join(0))
    told = JoinGroupReply(Error.NONE, "m", 1, "connect", "sessioned", "other", number=join.number)
    sync, beat = calls(worker.handle_reply(told, 1))
    assert isinstance(sync, SyncGroup)
    called = ClassicHeartbeatReply(Error.REBALANCE_IN_PROGRESS, number=beat.number)
    (again,) = calls(worker.handle_reply(called, 2))
    assert isinstance(again, JoinGroup)
    late = SyncGroupReply(Error.NONE, "connect", "sessioned", number=sync.number)
    assert worker.handle_reply(late, 3) == []


def in_first_generation() -> tuple[ClassicMembership, int, int]:
    """Return a worker that waits for its assignment, with the numbers of its two calls."""
    worker = ClassicMembership(Identity("g", "w", "w", "http://w/"), TIMING, "sessioned", 0)
    (join,) = calls(worker.join(0))
    told = JoinGroupReply(Error.NONE, "m", 1, "connect", "sessioned", "other", number=join.number)
    sync, beat = calls(worker.handle_reply(told, 1))
    return worker, sync.number, beat.number


def test_an_illegal_generation_is_joined_anew_but_not_by_who_is_joining_already() -> None:
    late = Error.ILLEGAL_GENERATION
    worker, sync, beat = in_first_generation()
    worker.handle_reply(SyncGroupReply(Error.NONE, "connect", "sessioned", number=sync), 2)
    assert worker.state is State.STABLE
    (join,) = calls(worker.handle_reply(ClassicHeartbeatReply(late, number=beat), 2))
    assert (type(join), worker.state) == (JoinGroup, State.JOINING)
    worker, sync, beat = in_first_generation()
    (join,) = calls(
        worker.handle_reply(SyncGroupReply(Error.REBALANCE_IN_PROGRESS, number=sync), 2)
    )
    assert isinstance(join, JoinGroup)
    assert worker.handle_reply(ClassicHeartbeatReply(late, number=beat), 3) == []
    assert worker.state is State.JOINING


def test_what_a_worker_must_have_read_of_the_log_never_becomes_less() -> None:
    worker, sync, beat = in_first_generation()
    nothing = SyncGroupReply(Error.NONE, "connect", "sessioned", number=sync, log_offset=9)
    worker.handle_reply(nothing, 2)
    called = ClassicHeartbeatReply(Error.REBALANCE_IN_PROGRESS, number=beat)
    (join,) = calls(worker.handle_reply(called, 3))
    told = JoinGroupReply(Error.NONE, "m", 2, "connect", "sessioned", "other", number=join.number)
    sync, *_ = (each.number for each in calls(worker.handle_reply(told, 4)))
    worker.handle_reply(replace(nothing, number=sync, log_offset=3), 5)
    assert worker._work.log_offset == 9


def test_a_round_that_begins_before_the_first_calm_heartbeat_is_as_long_as_any_other() -> None:
    now_ms = 10_000_000  # of a machine that has run for hours
    worker = ClassicMembership(Identity("g", "w", "w", "http://w/"), TIMING, "sessioned", 0)
    (join,) = calls(worker.join(now_ms))
    told = JoinGroupReply(Error.NONE, "m", 1, "connect", "sessioned", "other", number=join.number)
    sync, beat = calls(worker.handle_reply(told, now_ms + 1))
    nothing = SyncGroupReply(Error.NONE, "connect", "sessioned", number=sync.number)
    worker.handle_reply(nothing, now_ms + 2)
    assert worker.state is State.STABLE
    called = ClassicHeartbeatReply(Error.REBALANCE_IN_PROGRESS, number=beat.number)
    worker.handle_reply(called, now_ms + 3)
    assert worker.tick(now_ms + 4) == [], "it goes on in the round"


@pytest.mark.parametrize("has_joined", [False, True])
def test_who_does_not_know_that_it_is_in_a_round_has_stopped_before_that_may_end(
    crew: Crew, has_joined: bool
) -> None:
    crew.comes("w1")
    worker, began_ms = crew.workers["w1"].membership, crew.now_ms
    (beat,) = calls(worker.tick(began_ms + BEAT_MS))
    called = ClassicHeartbeatReply(
        Error.REBALANCE_IN_PROGRESS, number=beat.number, has_joined=has_joined
    )
    (join,) = calls(worker.handle_reply(called, began_ms + BEAT_MS))
    assert isinstance(join, JoinGroup)
    now_ms, ends_ms = began_ms + BEAT_MS, began_ms + TIMING.rebalance_timeout_ms
    while now_ms < ends_ms - TIMING.fence_margin_ms:
        now_ms += BEAT_MS
        for each in calls(worker.tick(now_ms)):
            worker.handle_reply(replace(called, number=each.number), now_ms)
    assert (worker.state is State.JOINING) is has_joined
    assert (worker.state is State.FENCED) is not has_joined


def test_who_is_told_to_leave_in_a_round_has_stopped_before_that_goes_on_without_it(
    crew: Crew,
) -> None:
    crew.comes("w1")
    worker, began_ms = crew.workers["w1"].membership, crew.now_ms
    (beat,) = calls(worker.tick(began_ms + BEAT_MS))
    called = ClassicHeartbeatReply(Error.REBALANCE_IN_PROGRESS, number=beat.number)
    (join,) = calls(worker.handle_reply(called, began_ms + BEAT_MS))
    worker.leave(began_ms + BEAT_MS)
    told_of = JoinGroupReply(
        Error.NONE, worker.member_id, 2, "connect", "sessioned", "other", number=join.number
    )
    worker.handle_reply(told_of, began_ms + BEAT_MS)
    now_ms, ends_ms = began_ms + BEAT_MS, began_ms + BEAT_MS + TIMING.rebalance_timeout_ms
    while now_ms < ends_ms - TIMING.fence_margin_ms:
        assert worker.state is State.PREPARE_LEAVING
        now_ms += BEAT_MS
        for each in calls(worker.tick(now_ms)):
            well = ClassicHeartbeatReply(Error.NONE, number=each.number)
            worker.handle_reply(well, now_ms)
    assert worker.state is State.FENCED


def test_what_a_process_was_told_is_no_answer_to_the_next_one_in_its_place() -> None:
    first, second = (
        ClassicMembership(Identity("g", "w", each, "http://w/"), TIMING, "sessioned", 0)
        for each in ("first", "second")
    )
    (asked,) = calls(first.join(0))
    second.join(0)
    reply = JoinGroupReply(Error.MEMBER_ID_REQUIRED, "its name", number=asked.number)
    assert (second.handle_reply(reply, 1), second.member_id) == ([], "")


def calls(instructions: Iterable[Instruction]) -> list[ClassicCall]:
    """Return what is to be said."""
    return [each.call for each in instructions if isinstance(each, SendCall)]


def test_a_worker_that_left_in_good_order_has_its_work_run_on_by_others(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    crew.stop_ms = 1_000
    crew.lets_leave("w2")
    assert crew.workers["w2"].said[-1] != "LeaveGroup"
    crew.goes_on(1_000)
    assert (crew.workers["w2"].said[-1], crew.workers["w2"].gone) == ("LeaveGroup", "")
    del crew.workers["w2"]
    crew.goes_on(20_000)
    assert (crew.running(), crew.is_settled) == ({"w1": WORK}, True)


def test_lost_work_waits_for_its_worker_until_the_delay_is_over(crew: Crew) -> None:
    crew.comes("w1", delay_ms=8_000)
    crew.comes("w2", delay_ms=8_000)
    crew.goes_on(2 * BEAT_MS)
    crew.dies("w2")
    crew.goes_on(TIMING.session_timeout_ms + BEAT_MS)
    assert told(crew, "w1").delay_ms == 8_000
    assert crew.running() == {"w1": "a-2 b b-0"}
    crew.goes_on(8_000)
    assert (crew.running(), crew.is_settled) == ({"w1": WORK}, True)


def test_a_worker_that_comes_within_the_delay_gets_the_lost_work_when_it_is_over(
    crew: Crew,
) -> None:
    crew.comes("w1", delay_ms=8_000)
    crew.comes("w2", delay_ms=8_000)
    crew.goes_on(2 * BEAT_MS)
    crew.dies("w2")
    crew.goes_on(TIMING.session_timeout_ms + BEAT_MS)
    crew.comes("w2", delay_ms=8_000)
    crew.goes_on(BEAT_MS)
    assert crew.running() == {"w1": "a-2 b b-0", "w2": ""}
    crew.goes_on(10_000)
    assert (crew.running(), crew.is_settled) == ({"w1": "a-2 b b-0", "w2": "a a-0 a-1"}, True)


def test_after_the_leader_is_lost_another_leads_and_remembers_nothing(crew: Crew) -> None:
    crew.comes("w1", delay_ms=60_000)
    crew.comes("w2", delay_ms=60_000)
    crew.goes_on(2 * BEAT_MS)
    crew.dies("w1")
    crew.goes_on(TIMING.session_timeout_ms + BEAT_MS)
    assert crew.leader() == "w2"
    assert (crew.running(), crew.is_settled) == ({"w2": WORK}, True)


def test_what_was_deleted_while_another_led_is_given_up_under_the_next_leader(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    assert crew.running()["w2"] == "a a-0 a-1"
    crew.dies("w1")
    crew.configure("")
    crew.goes_on(30_000)
    assert crew.leader() == "w2"
    assert (crew.running(), crew.is_settled) == ({"w2": ""}, True)
    assert not crew.group.owner


def test_a_leader_that_bounces_within_a_round_leaves_it_to_another(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    crew.comes("w3")
    crew.stop_ms = 4_000
    crew.goes_on(BEAT_MS)  # the round has begun
    crew.dies("w1")
    crew.comes("w1")
    crew.goes_on(40_000)
    assert crew.is_settled
    assert sorted(" ".join(crew.running().values()).split()) == WORK.split()


def test_new_configs_are_a_round_that_the_leader_alone_calls_for(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    crew.workers["w2"].said.clear()
    crew.configure(f"{WORK} c c-0")
    assert "JoinGroup" not in crew.workers["w2"].said
    crew.goes_on(2 * BEAT_MS)
    assert crew.is_settled
    assert sorted(" ".join(crew.running().values()).split()) == f"{WORK} c c-0".split()


def test_what_is_configured_no_more_is_given_up(crew: Crew) -> None:
    crew.comes("w1")
    crew.configure("a a-0")
    crew.goes_on(1)
    assert (crew.running(), crew.is_settled) == ({"w1": "a a-0"}, True)
    assert [*crew.group.owner] == [Resource("a"), Resource("a", 0)]


def test_a_worker_behind_the_configs_starts_nothing_and_joins_anew_once_it_has_read_them(
    crew: Crew,
) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    crew.workers["w2"].sees_log = False
    crew.configure(f"{WORK} c c-0 d d-0")
    crew.goes_on(2 * BEAT_MS)
    assert told(crew, "w2").assigned
    assert crew.running()["w2"] == "a a-0 a-1"
    generation = crew.generation
    crew.workers["w2"].sees_log = True
    crew.look()
    crew.goes_on(2 * BEAT_MS)
    assert crew.generation > generation
    assert crew.is_settled
    assert sorted(" ".join(crew.running().values()).split()) == f"{WORK} c c-0 d d-0".split()


def test_a_leader_behind_the_configs_assigns_nothing_and_all_join_anew(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    crew.workers["w1"].sees_log = False
    crew.configure(f"{WORK} c c-0")
    crew.dies("w2")
    crew.workers["w1"].sees_log = True  # it would have looked as it joined
    crew.comes("w2")
    crew.goes_on(30_000)
    assert crew.is_settled
    assert sorted(" ".join(crew.running().values()).split()) == f"{WORK} c c-0".split()


def test_an_answer_of_an_older_generation_is_not_taken(crew: Crew) -> None:
    crew.comes("w1")
    worker = crew.workers["w1"]
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    before = crew.running()
    everything = told(crew, "w1")
    late = SyncGroupReply(Error.NONE, "connect", "sessioned", b"", number=2)
    assert worker.membership.handle_reply(late, crew.now_ms) == []
    again = JoinGroupReply(Error.NONE, worker.membership.member_id, 1, number=1)
    assert worker.membership.handle_reply(again, crew.now_ms) == []
    assert (crew.running(), told(crew, "w1")) == (before, everything)


def test_a_static_worker_bounces_without_a_round_and_goes_on_under_newer_tokens(
    crew: Crew,
) -> None:
    crew.comes("w1")
    crew.comes("w2", static=True)
    crew.goes_on(2 * BEAT_MS)
    generation, had = crew.generation, crew.running()
    crew.lets_leave("w2", temporary=True)
    assert crew.workers["w2"].said[-1] != "LeaveGroup"
    crew.comes("w2", static=True)
    assert (crew.generation, crew.running(), crew.is_settled) == (generation, had, True)
    returned = crew.group.classic_members[crew.workers["w2"].membership.member_id]
    assert returned.metadata.succession is not None
    assert returned.metadata.succession.returns == 1


def test_a_static_worker_whose_seat_was_taken_over_stops_and_ends(crew: Crew) -> None:
    crew.comes("w1", static=True)
    old = crew.workers.pop("w1")
    crew.comes("w1", static=True)
    new = crew.workers["w1"]
    crew.workers["old"] = old
    crew.goes_on(BEAT_MS)
    assert old.gone is not None
    assert old.gone.startswith("FENCED_INSTANCE_ID")
    assert (old.runs, " ".join(sorted(map(str, new.runs)))) == (frozenset(), WORK)


def test_a_worker_that_is_cut_off_has_stopped_before_others_have_its_work(crew: Crew) -> None:
    crew.comes("w1", delay_ms=0)
    crew.comes("w2", delay_ms=0)
    crew.goes_on(2 * BEAT_MS)
    crew.workers["w2"].is_cut = True
    for _ in range(200):
        crew.goes_on(100)
        both = crew.workers["w1"].runs & crew.workers["w2"].runs
        assert not both
    assert crew.running() == {"w1": WORK, "w2": ""}
    crew.workers["w2"].is_cut = False
    crew.goes_on(30_000)
    assert crew.is_settled


def test_lost_calls_are_said_again(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2").is_cut = True
    crew.goes_on(TIMING.patience_ms - 1_000)
    crew.workers["w2"].is_cut = False
    crew.goes_on(30_000)
    assert crew.is_settled
    assert all(crew.running().values())


def test_a_coordinator_that_is_lost_within_a_round_is_told_all_again(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.open()
    for name, each in crew.workers.items():
        crew.obey(name, each.membership.reconnect(crew.now_ms))
    crew.goes_on(30_000)
    assert crew.is_settled
    assert all(crew.running().values())


def test_what_a_worker_may_commit_is_what_it_runs(crew: Crew) -> None:
    crew.comes("w1")
    crew.comes("w2")
    crew.goes_on(2 * BEAT_MS)
    for worker in crew.workers.values():
        member_id = worker.membership.member_id
        mine = {each for each, owner in crew.group.owner.items() if owner == member_id}
        assert mine == worker.runs


def test_where_nothing_is_configured_a_worker_is_given_nothing() -> None:
    empty = Crew()
    empty.comes("w1")
    assert (empty.generation, empty.is_settled) == (1, True)
    assert told(empty, "w1").error == AssignmentError.NO_ERROR
    assert token_of(empty.group, "w1-u1", Resource("a")) is None
