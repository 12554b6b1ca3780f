"""A door delivers an owner's answer once the copies of its host hold what the answer rests on."""

from fairlead.runtime.node.door.delivery import MOST_WAITING, AnswersAhead, LogEnds


def test_an_answer_is_delivered_at_once_if_both_copies_hold_what_it_rests_on() -> None:
    ahead = AnswersAhead[str](LogEnds(5, 7))
    assert list(ahead.arrive("a", LogEnds(5, 7))) == ["a"]
    assert list(ahead.arrive("b", LogEnds(3, 0))) == ["b"]


def test_it_waits_for_either_log_and_for_the_later_of_both() -> None:
    ahead = AnswersAhead[str](LogEnds(5, 7))
    assert list(ahead.arrive("a", LogEnds(6, 7))) == []
    assert list(ahead.arrive("b", LogEnds(5, 8))) == []
    assert list(ahead.arrive("c", LogEnds(6, 8))) == []
    assert list(ahead.advance(LogEnds(6, 7))) == ["a"]
    assert list(ahead.advance(LogEnds(6, 8))) == ["b", "c"]
    assert list(ahead.advance(LogEnds(9, 9))) == []


def test_answers_that_wait_keep_their_order_and_hold_up_no_others() -> None:
    ahead = AnswersAhead[str](LogEnds())
    ahead.arrive("late", LogEnds(9, 0))
    ahead.arrive("first", LogEnds(2, 0))
    ahead.arrive("second", LogEnds(1, 0))
    assert list(ahead.advance(LogEnds(2, 0))) == ["first", "second"]
    assert list(ahead.advance(LogEnds(9, 0))) == ["late"]


def test_of_too_many_that_wait_the_oldest_are_given_up() -> None:
    ahead = AnswersAhead[int](LogEnds())
    for number in range(MOST_WAITING + 2):
        ahead.arrive(number, LogEnds(1, 0))
    assert list(ahead.advance(LogEnds(1, 0))) == [*range(2, MOST_WAITING + 2)]
