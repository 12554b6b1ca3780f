"""A member's part in computing: what is lost on the way is asked again, what is late is dropped."""

from fairlead.actors.assignor_actor import Assign, Assigned
from fairlead.actors.errors import Error
from fairlead.actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from fairlead.events.model import NOTHING
from fairlead.runtime.worker.computing import LOST_MS, RETRY_MS, Computing

TIMEOUT_MS = 60_000
SNAPSHOT = Snapshot(4, 3, "balanced", b"", NOTHING, {}, (), {}, NOTHING, 0)
PREPARED = PrepareReply(Error.NONE, snapshot=SNAPSHOT)
RESULT = Assigned(4, Assignment({}))
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
    assert found.prepared(PREPARED, 100) == Assign(SNAPSHOT)
    assert found.assigned(RESULT, 1, 200) == install(1)
    assert found.tick(1, 200 + LOST_MS - 1) is None
    assert found.tick(2, 200 + LOST_MS) == install(2)
    assert found.tick(2, 200 + 2 * LOST_MS) == install(2)
    found.installed(InstallReply(Error.NONE), 300 + 2 * LOST_MS)
    assert (found.is_busy, found.tick(2, 200 + 3 * LOST_MS)) == (False, None)


def test_nothing_is_asked_of_the_group_while_the_assignor_computes() -> None:
    found = computing()
    found.prepared(PREPARED, 100)
    assert [found.tick(1, at_ms) for at_ms in range(100, TIMEOUT_MS, LOST_MS)] == [None] * 14
    assert found.is_busy


def test_the_second_answer_to_a_prepare_that_was_asked_twice_changes_nothing() -> None:
    found = computing()
    found.tick(1, LOST_MS)
    assert found.prepared(PREPARED, LOST_MS + 1) == Assign(SNAPSHOT)
    assert found.prepared(PREPARED, LOST_MS + 2) is None
    assert found.prepared(PrepareReply(Error.UNKNOWN_MEMBER_ID), LOST_MS + 3) is None
    assert found.is_busy


def test_what_was_fenced_is_asked_again_soon_and_when_lost_then_as_ever() -> None:
    found = computing()
    assert found.prepared(PrepareReply(FENCED), 1_000) is None
    assert found.tick(2, 1_000 + RETRY_MS - 1) is None
    assert found.tick(2, 1_000 + RETRY_MS) == Prepare("g", "m", 2)
    assert found.tick(2, 1_000 + RETRY_MS + LOST_MS - 1) is None
    assert found.tick(2, 1_000 + RETRY_MS + LOST_MS) == Prepare("g", "m", 2)


def test_what_takes_too_long_is_given_up() -> None:
    found = computing()
    assert [found.tick(1, TIMEOUT_MS), found.tick(1, TIMEOUT_MS + LOST_MS)] == [None, None]
    assert not found.is_busy
