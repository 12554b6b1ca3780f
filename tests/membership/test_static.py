"""A static member: its seat belongs to an instance id (PROTOCOL §8)."""

import pytest

from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.worker.instructions import Fence, Gone, Start, Stop
from fairlead.actors.worker.states import State
from fairlead_tests.membership.seat import (
    PATIENCE_MS,
    SESSION_MS,
    Seat,
    resources,
    seated,
    static_seat,
)


def test_every_request_names_the_instance_id() -> None:
    seat = seated(seat=static_seat())
    seat.leave()
    seat.stopped("A A-0")
    assert [each.instance_id for each in seat.sent] == ["s"] * len(seat.sent)


def test_a_temporary_leave_stops_everything_first_and_says_minus_two() -> None:
    seat = seated(seat=static_seat())
    assert seat.leave(temporary=True) == [Stop(resources("A A-0"))]
    assert (seat.stopped("A"), seat.state()) == ([], State.PREPARE_LEAVING)
    assert (seat.stopped("A-0"), seat.state()) == ([], State.LEAVING)
    assert seat.sent[-1] == Heartbeat("g", "m", -2, "i", len(seat.sent), instance_id="s")
    assert seat.answer(epoch=-2) == [Gone()]
    assert seat.state() is State.UNSUBSCRIBED


def test_a_temporary_goodbye_is_repeated_until_it_is_answered_for_at_most_a_session() -> None:
    seat = seated("", static_seat())
    seat.leave(temporary=True)
    count = len(seat.sent)
    seat.passes(PATIENCE_MS)
    seat.passes(PATIENCE_MS)
    assert [each.member_epoch for each in seat.sent[count - 1 :]] == [-2, -2, -2]
    assert seat.passes(SESSION_MS - 2 * PATIENCE_MS) == [Gone()]


def test_a_member_without_an_instance_id_can_not_leave_for_a_while() -> None:
    seat = seated()
    with pytest.raises(ValueError, match="instance id"):
        seat.leave(temporary=True)
    assert seat.state() is State.STABLE


@pytest.mark.parametrize(("first", "epoch"), [(True, -2), (False, -1)])
def test_a_leave_that_has_begun_stays_as_it_began(first: bool, epoch: int) -> None:
    seat = seated(seat=static_seat())
    seat.leave(temporary=first)
    assert seat.leave(temporary=not first) == []
    seat.stopped("A A-0")
    assert seat.sent[-1].member_epoch == epoch


def test_who_left_for_a_while_may_come_back_and_is_given_its_work() -> None:
    seat = seated(seat=static_seat())
    seat.leave(temporary=True)
    seat.stopped("A A-0")
    seat.answer(epoch=-2)
    seat.join()
    assert (seat.sent[-1].member_epoch, seat.sent[-1].owned) == (0, ())
    assert seat.answer("A A-0", epoch=1) == [Start(resources("A A-0"), 7)]


def test_who_came_back_rejoins_after_a_fence_rather_than_leaves() -> None:
    seat = seated(seat=static_seat())
    seat.leave(temporary=True)
    seat.stopped("A A-0")
    seat.answer(epoch=-2)
    seat = seated(seat=seat)
    assert [type(each) for each in seat.passes(SESSION_MS - 500)] == [Fence]
    assert (seat.stopped("A A-0"), seat.state()) == ([], State.JOINING)


def test_a_seat_without_an_instance_id_names_none() -> None:
    seat = Seat()
    seat.join()
    assert seat.sent[0].instance_id is None
