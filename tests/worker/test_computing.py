"""A member's part in computing: what is lost on the way is asked again, what is late is dropped."""

from dataclasses import replace

from fairlead.actors.messages.assignors import ComputeAssignment, ComputeAssignmentReply
from fairlead.actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from fairlead.actors.messages.errors import Error
from fairlead.events.model import NOTHING
from fairlead.runtime.node.worker.core.computing import (
    LOST_MS,
    OVERDUE_MS,
    RETRY_ASSIGN_MS,
    RETRY_MS,
    Computing,
)

TIMEOUT_MS = 60_000
SNAPSHOT = Snapshot(4, 3, "balanced", b"", NOTHING, {}, (), {}, NOTHING, 0)
PREPARED = PrepareReply(Error.NONE, snapshot=SNAPSHOT)
RESULT = ComputeAssignmentReply(4, Assignment({}))
FENCED = Error.FENCED_MEMBER_EPOCH


def computing() -> Computing:
    """A computation that has begun at 0."""
    found = Computing("g", "m", TIMEOUT_MS)
    assert found.begin(1, 0) == Prepare("g", "m", 1)
    return found


def install(epoch: int) -> Install:
    """The message that hands the result in."""
    return Install("g", "m", epoch, 4, RESULT.assignment, "")


def test_a_lost_prepare_is_asked_again_with_the_epoch_of_then() -> None:
    found = computing()
    assert found.tick(1, LOST_MS - 1) is None
    assert found.tick(2, LOST_MS) == Prepare("g", "m", 2)
    assert found.tick(2, 2 * LOST_MS - 1) is None
    assert found.tick(3, 2 * LOST_MS) == Prepare("g", "m", 3)


def test_a_lost_install_is_handed_in_again_with_the_epoch_of_then() -> None:
    found = computing()
    assert found.take_snapshot(PREPARED, 100) == ComputeAssignment(SNAPSHOT, "m")
    assert found.take_result(RESULT, 1, 200) == install(1)
    assert found.tick(1, 200 + LOST_MS - 1) is None
    assert found.tick(2, 200 + LOST_MS) == install(2)
    assert found.tick(2, 200 + 2 * LOST_MS) == install(2)
    found.take_install_reply(InstallReply(Error.NONE), 300 + 2 * LOST_MS)
    assert (found.is_busy, found.tick(2, 200 + 3 * LOST_MS)) == (False, None)


def test_nothing_is_asked_of_the_group_while_the_assignor_computes() -> None:
    found = computing()
    found.take_snapshot(PREPARED, 100)
    assert [found.tick(1, at_ms) for at_ms in range(100, TIMEOUT_MS, LOST_MS)] == [None] * 14
    assert found.is_busy


def test_the_second_answer_to_a_prepare_that_was_asked_twice_changes_nothing() -> None:
    found = computing()
    found.tick(1, LOST_MS)
    assert found.take_snapshot(PREPARED, LOST_MS + 1) == ComputeAssignment(SNAPSHOT, "m")
    assert found.take_snapshot(PREPARED, LOST_MS + 2) is None
    assert found.take_snapshot(PrepareReply(Error.UNKNOWN_MEMBER_ID), LOST_MS + 3) is None
    assert found.is_busy


def test_what_was_fenced_is_asked_again_soon_and_when_lost_then_as_ever() -> None:
    found = computing()
    assert found.take_snapshot(PrepareReply(FENCED), 1_000) is None
    assert found.tick(2, 1_000 + RETRY_MS - 1) is None
    assert found.tick(2, 1_000 + RETRY_MS) == Prepare("g", "m", 2)
    assert found.tick(2, 1_000 + RETRY_MS + LOST_MS - 1) is None
    assert found.tick(2, 1_000 + RETRY_MS + LOST_MS) == Prepare("g", "m", 2)


def test_what_takes_too_long_is_given_up() -> None:
    found = computing()
    assert [found.tick(1, TIMEOUT_MS), found.tick(1, TIMEOUT_MS + LOST_MS)] == [None, None]
    assert not found.is_busy


def test_a_result_counts_for_the_snapshot_it_was_computed_from_alone() -> None:
    found = computing()
    later = replace(SNAPSHOT, snapshot_id="later")
    assert found.take_snapshot(PrepareReply(Error.NONE, snapshot=later), 100) == ComputeAssignment(
        later, "m"
    )
    assert found.take_result(replace(RESULT, snapshot_id="earlier"), 1, 200) is None
    made = found.take_result(replace(RESULT, snapshot_id="later"), 1, 300)
    assert made == replace(install(1), snapshot_id="later")


def asked() -> Computing:
    """A computation that its assignor is asked for since 100."""
    found = computing()
    assert found.take_snapshot(PREPARED, 100) == ComputeAssignment(SNAPSHOT, "m")
    return found


def test_a_new_assignor_process_is_asked_what_the_old_one_left_unanswered() -> None:
    found = asked()
    assert found.ask_anew(1, 200) == ComputeAssignment(SNAPSHOT, "m")
    assert found.take_result(RESULT, 1, 300) == install(1)
    assert found.ask_anew(1, 400) is None


def test_a_computation_that_ends_its_process_every_time_has_failed() -> None:
    found = asked()
    again = ComputeAssignment(SNAPSHOT, "m")
    assert [found.ask_anew(1, 200), found.ask_anew(1, 300)] == [again, again]
    error = "the process of assignor balanced ended 3 times over it"
    assert found.ask_anew(2, 400) == Install("g", "m", 2, 4, None, error)
    assert found.ask_anew(2, 500) is None


def test_an_assignor_that_had_no_time_to_listen_is_asked_again_in_a_moment() -> None:
    found = asked()
    found.retry_later(ComputeAssignment(replace(SNAPSHOT, group_epoch=3), "m"), 5_000)
    assert found.ask_again(9_000) is None
    found.retry_later(ComputeAssignment(SNAPSHOT, "m"), 10_100)
    assert found.ask_again(10_100 + RETRY_ASSIGN_MS - 1) is None
    assert found.ask_again(10_100 + RETRY_ASSIGN_MS) == ComputeAssignment(SNAPSHOT, "m")
    assert found.ask_again(10_100 + 2 * RETRY_ASSIGN_MS) is None


def test_an_assignor_hangs_once_the_group_is_about_to_turn_to_another_member() -> None:
    found = asked()
    due_ms = TIMEOUT_MS - OVERDUE_MS
    assert [found.overdue(at_ms) for at_ms in (due_ms - 1, due_ms, due_ms + 1)] == [
        False,
        True,
        False,
    ]
    assert found.ask_anew(1, due_ms + 100) is None, "the next member's turn is due"
    assert found.is_busy, "so that it does not begin anew meanwhile"
    found.tick(1, TIMEOUT_MS)
    assert not found.is_busy


def test_an_answer_in_time_or_no_question_at_all_is_no_hang() -> None:
    assert not computing().overdue(TIMEOUT_MS)
    found = asked()
    found.take_result(RESULT, 1, 200)
    assert not found.overdue(TIMEOUT_MS)


def test_a_computation_that_begins_knows_nothing_of_the_one_before() -> None:
    found = asked()
    assert found.take_result(RESULT, 1, 200) == install(1)
    assert found.begin(2, 300) == Prepare("g", "m", 2)
    found.take_install_reply(InstallReply(Error.NONE), 400)
    assert found.is_busy, "that reply is for the Install of the one before"
    assert found.take_result(RESULT, 2, 500) is None
    assert found.take_snapshot(PREPARED, 600) == ComputeAssignment(SNAPSHOT, "m")
