"""When a worker asks its assignors what to say, and when it reports that they do not answer."""

from fairlead.actors.assignors.interface import MemberAssignment, Worker
from fairlead.actors.messages.assignors import Given, Introduce, Introduced
from fairlead.events.model import NOTHING, Assignor, Resource
from fairlead.events.records import TargetAssignment
from fairlead.runtime.worker.counsel import REFRESH_MS, REPEAT_MS, Counsel

TIMEOUT_MS = 60_000
PID = 77
COLD, WARM = Worker("w1", capacity=0), Worker("w1")
SAID = (Assignor("balanced"),)
WORK = frozenset({Resource("a")})
TARGET = TargetAssignment(4, {"m": WORK}, "balanced", 1, b"notes")


def counsel() -> Counsel:
    """The counsel of a cold worker whose assignor process was just found."""
    found = Counsel("m", COLD, TIMEOUT_MS)
    assert (found.tick(0), found.overdue(TIMEOUT_MS)) == (None, None)
    found.moved(PID)
    return found


def asks(found: Counsel, until_ms: int) -> list[tuple[int, int]]:
    """When what is asked, by number, up to a moment."""
    asked = ((at_ms, found.tick(at_ms)) for at_ms in range(0, until_ms + 1, 50))
    return [(at_ms, each.number) for at_ms, each in asked if each is not None]


def test_a_question_is_repeated_until_it_is_answered_and_then_put_anew_from_time_to_time() -> None:
    found = counsel()
    assert asks(found, 2 * REPEAT_MS) == [(0, 1), (REPEAT_MS, 2), (2 * REPEAT_MS, 3)]
    assert found.introduced(Introduced(3, SAID), 10_100) == SAID
    assert found.is_known
    assert found.tick(10_100 + REFRESH_MS - 1) is None
    assert found.tick(10_100 + REFRESH_MS) == Introduce("m", COLD, 4)


def test_only_the_answer_to_the_latest_question_counts() -> None:
    found = counsel()
    asks(found, REPEAT_MS)
    assert found.introduced(Introduced(1, SAID), REPEAT_MS) is None
    assert not found.is_known


def test_new_facts_are_told_at_once() -> None:
    found = counsel()
    assert found.tick(0) == Introduce("m", COLD, 1)
    found.is_now(COLD)
    assert found.tick(50) is None
    found.is_now(WARM)
    assert found.tick(50) == Introduce("m", WARM, 2)
    assert found.introduced(Introduced(1, SAID), 100) is None
    assert found.introduced(Introduced(2, SAID), 100) == SAID


def test_what_was_said_of_a_cold_worker_does_not_let_a_warm_one_join() -> None:
    found = counsel()
    found.tick(0)
    found.introduced(Introduced(1, SAID), 50)
    found.is_now(WARM)
    assert not found.is_known
    found.tick(100)
    found.introduced(Introduced(2, SAID), 150)
    assert found.is_known


def test_when_no_assignor_speaks_for_it_the_worker_stays_as_it_was_and_asks_again() -> None:
    found = counsel()
    found.tick(0)
    assert found.introduced(Introduced(1, (), ("broken",)), 100) is None
    assert not found.is_known
    assert found.tick(100 + REPEAT_MS) == Introduce("m", COLD, 2)
    assert found.introduced(Introduced(2, SAID), 5_200) == SAID
    found.tick(5_200 + REFRESH_MS)
    assert found.introduced(Introduced(3, (), ("broken",)), 16_000) is None
    assert found.is_known


def test_a_process_that_owes_an_answer_for_too_long_is_reported_once() -> None:
    found = counsel()
    asks(found, TIMEOUT_MS - 50)
    assert found.overdue(TIMEOUT_MS - 1) is None
    assert [found.overdue(TIMEOUT_MS), found.overdue(TIMEOUT_MS + 50)] == [PID, None]


def test_an_answer_however_late_is_proof_of_life() -> None:
    found = counsel()
    asks(found, TIMEOUT_MS - 50)
    found.introduced(Introduced(1, SAID), TIMEOUT_MS - 1)
    assert found.overdue(TIMEOUT_MS) is None


def test_another_process_is_asked_at_once_and_owes_nothing_yet() -> None:
    found = counsel()
    asks(found, TIMEOUT_MS - 50)
    found.moved(PID + 1)
    assert found.overdue(TIMEOUT_MS) is None
    assert found.tick(TIMEOUT_MS) == Introduce("m", COLD, 13)


def test_an_assignor_is_told_its_workers_share_whenever_that_is_another() -> None:
    found = counsel()
    told = Given("balanced", MemberAssignment("m", WORK, "", 1, b"notes"))
    assert [found.give(TARGET, WORK), found.give(TARGET, WORK)] == [told, None]
    assert found.give(TARGET, NOTHING) is not None
    assert found.give(TARGET, WORK) == told
    found.moved(PID + 1)
    assert found.give(TARGET, WORK) == told


def test_nothing_is_told_while_nobody_has_computed() -> None:
    assert counsel().give(TargetAssignment(0, {}), NOTHING) is None
