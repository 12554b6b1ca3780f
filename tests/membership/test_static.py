"""A static member: its seat belongs to an instance id (PROTOCOL §8)."""

import pytest

from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.worker.instructions import Fence, Gone, Start, Stop
from fairlead.actors.worker.states import State
from fairlead_tests.membership.driver import (
    PATIENCE_MS,
    SESSION_MS,
    MemberDriver,
    resources,
    seated,
    static_driver,
)


def test_every_request_names_the_instance_id() -> None:
    driver = seated(driver=static_driver())
    driver.leave()
    driver.stopped("A A-0")
    assert [each.instance_id for each in driver.sent] == ["s"] * len(driver.sent)


def test_a_temporary_leave_stops_everything_first_and_says_minus_two() -> None:
    driver = seated(driver=static_driver())
    assert driver.leave(temporary=True) == [Stop(resources("A A-0"))]
    assert (driver.stopped("A"), driver.state()) == ([], State.PREPARE_LEAVING)
    assert (driver.stopped("A-0"), driver.state()) == ([], State.LEAVING)
    assert driver.sent[-1] == Heartbeat("g", "m", -2, "i", len(driver.sent), instance_id="s")
    assert driver.answer(epoch=-2) == [Gone()]
    assert driver.state() is State.UNSUBSCRIBED


def test_a_temporary_goodbye_is_repeated_until_it_is_answered_for_at_most_a_session() -> None:
    driver = seated("", static_driver())
    driver.leave(temporary=True)
    count = len(driver.sent)
    driver.passes(PATIENCE_MS)
    driver.passes(PATIENCE_MS)
    assert [each.member_epoch for each in driver.sent[count - 1 :]] == [-2, -2, -2]
    assert driver.passes(SESSION_MS - 2 * PATIENCE_MS) == [Gone()]


def test_a_member_without_an_instance_id_can_not_leave_for_a_while() -> None:
    driver = seated()
    with pytest.raises(ValueError, match="instance id"):
        driver.leave(temporary=True)
    assert driver.state() is State.STABLE


@pytest.mark.parametrize(("first", "epoch"), [(True, -2), (False, -1)])
def test_a_leave_that_has_begun_stays_as_it_began(first: bool, epoch: int) -> None:
    driver = seated(driver=static_driver())
    driver.leave(temporary=first)
    assert driver.leave(temporary=not first) == []
    driver.stopped("A A-0")
    assert driver.sent[-1].member_epoch == epoch


def test_who_left_for_a_while_may_come_back_and_is_given_its_work() -> None:
    driver = seated(driver=static_driver())
    driver.leave(temporary=True)
    driver.stopped("A A-0")
    driver.answer(epoch=-2)
    driver.join()
    assert (driver.sent[-1].member_epoch, driver.sent[-1].owned) == (0, ())
    assert driver.answer("A A-0", epoch=1) == [Start(resources("A A-0"), 7)]


def test_who_came_back_rejoins_after_a_fence_rather_than_leaves() -> None:
    driver = seated(driver=static_driver())
    driver.leave(temporary=True)
    driver.stopped("A A-0")
    driver.answer(epoch=-2)
    driver = seated(driver=driver)
    assert [type(each) for each in driver.passes(SESSION_MS - 500)] == [Fence]
    assert (driver.stopped("A A-0"), driver.state()) == ([], State.JOINING)


def test_a_seat_without_an_instance_id_names_none() -> None:
    driver = MemberDriver()
    driver.join()
    assert driver.sent[0].instance_id is None
