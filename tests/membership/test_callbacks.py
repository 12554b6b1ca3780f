"""A listener hears what its member is granted, gives up and loses; it holds nothing up (§9)."""

import logging
from collections.abc import Iterator

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.deadlines import KILL_EARLY_MS, LATE
from fairlead.actors.worker.instructions import Compute, Kill
from fairlead.actors.worker.states import State
from fairlead.events.model import NOTHING
from fairlead_tests.membership.driver import (
    HEARTBEAT_MS,
    MARGIN_MS,
    REBALANCE_MS,
    SESSION_MS,
    resources,
    spelled,
)
from fairlead_tests.membership.listening import Listening

OVERDUE = Kill("what had to stop has not stopped in time")


@pytest.fixture
def run() -> Iterator[Listening]:
    """A member that has not joined, and its listener."""
    listening = Listening()
    yield listening
    listening.callbacks.close()
    listening.listener.finish()


def fence(run: Listening) -> None:
    """Have the member lose its seat."""
    run.obey(run.driver.answer(error=Error.UNKNOWN_MEMBER_ID))


def test_a_whole_life_is_told_in_order_and_each_thing_once(run: Listening) -> None:
    run.begin("A A-0")
    run.obey(run.driver.answer("A A-1"))
    assert run.listener.begun() == "revoked A-0"
    run.listener.finish()
    run.wait()
    run.obey(run.driver.answer("A A-1", epoch=2))
    assert run.listener.begun() == "assigned A-1"
    run.listener.finish()
    run.driver.answer(epoch=2)
    run.obey(run.driver.leave())
    assert run.listener.begun() == "revoked A A-1"
    run.listener.finish()
    run.wait()
    assert (run.driver.state(), run.driver.sent[-1].member_epoch) == (State.LEAVING, -1)
    assert run.listener.is_idle()


def test_nothing_counts_as_released_before_on_revoked_has_returned(run: Listening) -> None:
    run.begin("A A-0")
    run.obey(run.driver.answer("A"))
    assert run.listener.begun() == "revoked A-0"
    assert (run.callbacks.released(), spelled(run.driver.membership.owned)) == (NOTHING, "A A-0")
    run.listener.finish()
    run.wait()
    assert spelled(run.driver.membership.owned) == "A"


def test_what_is_granted_is_told_after_what_is_revoked(run: Listening) -> None:
    run.begin("A A-0")
    run.obey(run.driver.answer("A A-1"))
    run.obey(run.driver.answer("A A-1"))
    assert (run.listener.begun(), run.listener.is_idle()) == ("revoked A-0", True)


def test_a_fence_tells_what_ran_as_lost_and_not_as_revoked(run: Listening) -> None:
    run.begin("A A-0")
    fence(run)
    assert run.listener.begun() == "lost A A-0"
    assert run.driver.state() is State.FENCED
    run.listener.finish()
    run.wait()
    assert (run.driver.state(), run.driver.sent[-1].member_epoch) == (State.JOINING, 0)
    assert run.listener.is_idle()


def test_a_revocation_that_was_not_told_yet_becomes_a_loss(run: Listening) -> None:
    run.begin("A A-0 A-1")
    run.obey(run.driver.answer("A A-1"))
    assert run.listener.begun() == "revoked A-0"
    run.obey(run.driver.answer("A"))
    fence(run)
    run.listener.finish()
    assert run.listener.begun() == "lost A A-1"
    run.listener.finish()
    run.wait()
    run.wait()
    assert (run.driver.state(), run.listener.is_idle()) == (State.JOINING, True)


def test_an_assignment_that_was_not_told_before_a_fence_is_never_told(run: Listening) -> None:
    run.begin("A A-0")
    run.obey(run.driver.answer("A"))
    assert run.listener.begun() == "revoked A-0"
    run.listener.finish()
    run.wait()
    run.obey(run.driver.answer("A A-1", epoch=2))
    assert run.listener.begun() == "assigned A-1"
    run.obey(run.driver.answer("A A-1 A-2", epoch=3))
    fence(run)
    assert spelled(run.driver.membership.owned) == "A A-1", "A-2 never began"
    run.listener.finish()
    assert run.listener.begun() == "lost A A-1"
    run.listener.finish()
    run.wait()
    assert (run.driver.state(), run.listener.is_idle()) == (State.JOINING, True)


def test_what_is_being_revoked_is_not_revoked_again_by_a_leave(run: Listening) -> None:
    run.begin("A A-0 A-1")
    run.obey(run.driver.answer("A A-1"))
    assert run.listener.begun() == "revoked A-0"
    run.obey(run.driver.answer("A"))
    run.obey(run.driver.leave())
    ends = list[str]()
    for _ in range(2):
        run.listener.finish()
        run.wait()
        ends.append(run.listener.begun())
    run.listener.finish()
    run.wait()
    assert ends == ["revoked A-1", "revoked A"]
    assert (run.driver.state(), run.listener.is_idle()) == (State.LEAVING, True)


def test_what_failed_to_be_revoked_is_revoked_again_by_a_leave(run: Listening) -> None:
    run.begin("A A-0")
    run.obey(run.driver.answer("A"))
    run.listener.begun()
    run.listener.finish(OSError("no space"))
    run.wait()
    run.obey(run.driver.leave())
    assert run.listener.begun() == "revoked A A-0"


def test_a_hung_listener_never_stops_heartbeats_and_the_revocations_deadline_fences(
    run: Listening,
) -> None:
    run.begin("A A-0")
    revoke_by_ms = run.driver.now_ms + REBALANCE_MS
    run.obey(run.driver.answer("A"))
    assert run.listener.begun() == "revoked A-0", "and never returns"
    count = beats = len(run.driver.sent)
    while run.driver.now_ms + HEARTBEAT_MS < revoke_by_ms - MARGIN_MS:
        run.obey(run.driver.passes(HEARTBEAT_MS))
        run.obey(run.driver.answer())
        beats += 1
        assert (len(run.driver.sent), run.driver.sent[-1].owned) == (beats, None)
    assert beats - count == (REBALANCE_MS - MARGIN_MS - 1) // HEARTBEAT_MS

    late = run.driver.passes(revoke_by_ms - MARGIN_MS - run.driver.now_ms)
    assert [str(each) for each in late] == [f"Fence(reason='{LATE}')"]
    run.obey(late)
    run.obey(run.driver.passes(MARGIN_MS - KILL_EARLY_MS - 1))
    assert run.left == []
    run.obey(run.driver.passes(1))
    assert run.left == [OVERDUE], "the fence waits for no listener"
    assert run.driver.membership.end_ms() == revoke_by_ms - KILL_EARLY_MS


def test_a_listener_that_hangs_while_it_is_assigned_hears_of_the_loss_when_it_returns(
    run: Listening,
) -> None:
    run.driver.join()
    run.obey(run.driver.answer("A A-0"))
    assert run.listener.begun() == "assigned A A-0"
    run.driver.answer()
    run.obey(run.driver.passes(SESSION_MS - MARGIN_MS))
    assert (run.driver.state(), run.listener.is_idle()) == (State.FENCED, True)
    run.listener.finish()
    assert run.listener.begun() == "lost A A-0"
    run.listener.finish()
    run.wait()
    assert run.driver.state() is State.JOINING


def test_who_wakes_after_its_session_is_to_kill_and_its_listener_hears_of_the_loss(
    run: Listening,
) -> None:
    run.begin("A A-0")
    run.obey(run.driver.passes(2 * SESSION_MS))
    assert [type(each) for each in run.left] == [Kill]
    assert run.listener.begun() == "lost A A-0"


def test_a_failed_on_assigned_counts_as_assigned(
    run: Listening, caplog: pytest.LogCaptureFixture
) -> None:
    run.driver.join()
    run.obey(run.driver.answer("A A-0"))
    run.listener.begun()
    run.listener.finish(OSError("no space"))
    run.obey(run.driver.answer("A"))
    assert run.listener.begun() == "revoked A-0"
    assert caplog.messages == ["on_assigned failed for A A-0"]
    assert spelled(run.driver.membership.owned) == "A A-0"


def test_a_failed_on_revoked_releases_nothing_and_is_lost_at_the_deadline(
    run: Listening, caplog: pytest.LogCaptureFixture
) -> None:
    run.begin("A A-0")
    run.obey(run.driver.answer("A"))
    run.listener.begun()
    run.listener.finish(OSError("no space"))
    run.wait()
    assert spelled(run.driver.membership.owned) == "A A-0"
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [
        (logging.ERROR, "on_revoked failed for A-0")
    ]
    fence(run)
    assert run.listener.begun() == "lost A A-0"


def test_an_on_revoked_that_fails_after_the_fence_is_lost_as_well(run: Listening) -> None:
    run.begin("A A-0")
    run.obey(run.driver.answer("A"))
    run.listener.begun()
    fence(run)
    run.listener.finish(OSError("no space"))
    assert run.listener.begun() == "lost A A-0"


def test_what_a_failed_on_lost_left_running_is_killed(run: Listening) -> None:
    run.begin("A A-0")
    fence(run)
    run.listener.begun()
    run.listener.finish(OSError("no space"))
    run.wait()
    assert (run.driver.state(), spelled(run.driver.membership.owned)) == (State.FENCED, "A A-0")
    run.obey(run.driver.passes(MARGIN_MS))
    assert run.left == [OVERDUE]


def test_what_is_not_for_a_listener_is_left_to_who_runs_the_member(run: Listening) -> None:
    assert not run.callbacks.submit(Compute(1))
    assert (run.callbacks.released(), run.listener.is_idle()) == (NOTHING, True)


def test_a_closed_listener_is_called_no_more(run: Listening) -> None:
    run.begin("A A-0")
    run.obey(run.driver.answer("A"))
    assert run.listener.begun() == "revoked A-0"
    run.callbacks.close()
    run.obey(run.driver.leave())
    run.listener.finish()
    run.wait()
    assert run.listener.is_idle()
    assert run.driver.membership.owned == resources("A")
