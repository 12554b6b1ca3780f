"""When a worker asks its assignors what to say, and when it reports that they do not answer."""

import pytest

from fairlead.actors.messages.assignors import (
    DescribeAssignors,
    DescribeAssignorsReply,
    MemberAssignment,
    NotifyAssignment,
    NotifyAssignmentReply,
    Worker,
)
from fairlead.events.model import NOTHING, ClientAssignor, Resource
from fairlead.events.records import TargetAssignment
from fairlead.runtime.node.worker.core.assignor_client import (
    LONGEST_REFRESH_MS,
    REFRESH_MS,
    REPEAT_MS,
    MetadataQuestions,
    ShareNotices,
)

TIMEOUT_MS = 60_000
COLD, WARM = Worker("w1", capacity=0), Worker("w1")
NAMES = ("mine", "balanced")
REPEATS_MS = TIMEOUT_MS // 3
MINE, BALANCED = ClientAssignor("mine"), ClientAssignor("balanced")
SAID = (BALANCED,)
WORK = frozenset({Resource("a")})
TARGET = TargetAssignment(4, {"m": WORK}, "balanced", 1, b"notes")


def told(number: int) -> NotifyAssignment:
    """What an assignor is told of the work that its member was given."""
    return NotifyAssignment("balanced", MemberAssignment("m", WORK, "", 1, b"notes"), number)


def new_client() -> MetadataQuestions:
    """The client of a cold worker whose assignor process was just found."""
    client = MetadataQuestions("m", COLD, NAMES, TIMEOUT_MS)
    assert (client.tick(0), client.is_hung(TIMEOUT_MS)) == (None, False)
    client.move()
    return client


def asks(client: MetadataQuestions, until_ms: int) -> list[tuple[int, int]]:
    """When what is asked, by number, up to a moment."""
    asked = ((at_ms, client.tick(at_ms)) for at_ms in range(0, until_ms + 1, 50))
    return [(at_ms, each.number) for at_ms, each in asked if each is not None]


def answers(
    client: MetadataQuestions, number: int, at_ms: int, *said: ClientAssignor
) -> tuple[ClientAssignor, ...] | None:
    """What heartbeats say after an answer without an error."""
    return client.answer(DescribeAssignorsReply(number, said), at_ms)


def test_a_question_is_repeated_until_it_is_answered_and_another_put_from_time_to_time() -> None:
    client = new_client()
    assert asks(client, 2 * REPEATS_MS) == [(0, 1), (REPEATS_MS, 1), (2 * REPEATS_MS, 1)]
    assert answers(client, 1, 2 * REPEATS_MS + 50, BALANCED) == SAID
    assert client.is_complete
    client = new_client()
    client.tick(0)
    answers(client, 1, 100, BALANCED)
    assert client.tick(100 + REFRESH_MS - 1) is None
    assert client.tick(100 + REFRESH_MS) == DescribeAssignors("m", COLD, 2)


def test_the_first_answer_to_a_repeated_question_counts_and_the_second_tells_nothing() -> None:
    client = new_client()
    asks(client, REPEATS_MS)
    assert answers(client, 1, REPEATS_MS, BALANCED) == SAID
    assert answers(client, 1, REPEATS_MS + 50, MINE) is None


def test_an_answer_that_was_meant_for_another_process_does_not_count() -> None:
    client = new_client()
    client.tick(0)
    client.move()
    assert answers(client, 1, 50, BALANCED) is None
    assert not client.is_complete


@pytest.mark.parametrize("takes_ms", [6_000, 25_000, 50_000])
def test_a_slow_assignor_keeps_no_worker_from_joining_and_does_not_fall_behind(
    takes_ms: int,
) -> None:
    client, waiting, done_at_ms = new_client(), list[int](), 0
    joined_at_ms, lengths = list[int](), set[int]()
    for now_ms in range(0, 3_600_000, 50):
        if waiting and now_ms >= done_at_ms:
            if answers(client, waiting.pop(0), now_ms, BALANCED) is not None:
                joined_at_ms.append(now_ms)
            done_at_ms = now_ms + takes_ms
        if (asked := client.tick(now_ms)) is not None:
            done_at_ms = done_at_ms if waiting else now_ms + takes_ms
            waiting.append(asked.number)
        lengths.add(len(waiting))
        assert not client.is_hung(now_ms)
    assert (joined_at_ms[0], max(lengths) <= 3) == (takes_ms, True)


def test_a_process_that_took_the_place_of_one_that_hung_is_asked_as_often_as_any() -> None:
    client = new_client()
    asks(client, TIMEOUT_MS)
    client.move()
    client.tick(TIMEOUT_MS)
    client.answer(DescribeAssignorsReply(2, (), ("broken",)), TIMEOUT_MS + 100)
    assert client.tick(TIMEOUT_MS + 100 + REPEAT_MS) == DescribeAssignors("m", COLD, 3)


def test_a_worker_that_nobody_speaks_for_knows_how_long_it_has_been_waiting() -> None:
    client = new_client()
    assert client.waited_ms(0) == 0
    asks(client, 7_000)
    client.move()
    asks(client, 8_000)
    assert client.waited_ms(9_000) == 9_000
    answers(client, 2, 9_000, BALANCED)
    client.tick(9_000 + REFRESH_MS)
    assert client.waited_ms(60_000) == 0, "it is known, and can join"


def test_who_says_nothing_stands_by_its_last_word_in_the_order_of_preference() -> None:
    client = new_client()
    client.tick(0)
    assert answers(client, 1, 50, MINE, BALANCED) == (MINE, BALANCED)
    other = ClientAssignor("balanced", metadata=b"other")
    client.tick(REFRESH_MS + 50)
    assert answers(client, 2, 11_000, other) == (MINE, other)
    client.move()
    client.tick(11_000)
    assert answers(client, 4, 12_000, BALANCED) == (MINE, BALANCED)


def test_who_never_spoke_for_the_worker_as_it_is_now_is_left_out() -> None:
    client = new_client()
    client.tick(0)
    assert answers(client, 1, 50, BALANCED) == SAID
    client.tick(REFRESH_MS + 50)
    assert answers(client, 2, 11_000, MINE) == (MINE, BALANCED)
    client.set_worker(WARM)
    client.tick(12_000)
    assert answers(client, 4, 12_050, BALANCED) == SAID


def test_who_says_something_else_each_time_is_asked_ever_less_often_until_it_does_not() -> None:
    client, now_ms, waits_ms = new_client(), 0, list[int]()
    client.tick(0)
    for number, text in enumerate("abcdefghhi", 1):
        answers(client, number, now_ms, ClientAssignor("mine", metadata=text.encode()))
        begun_ms, now_ms = now_ms, now_ms + 1_000
        while client.tick(now_ms) is None:
            now_ms += 1_000
        waits_ms.append(now_ms - begun_ms)
    seconds = [10, 20, 40, 80, 160, 300, 300, 300, 10, 20]
    assert (waits_ms, LONGEST_REFRESH_MS) == ([each * 1_000 for each in seconds], 300_000)


def test_new_facts_are_told_at_once() -> None:
    client = new_client()
    assert client.tick(0) == DescribeAssignors("m", COLD, 1)
    client.set_worker(COLD)
    assert client.tick(50) is None
    client.set_worker(WARM)
    assert client.tick(50) == DescribeAssignors("m", WARM, 2)
    assert client.answer(DescribeAssignorsReply(1, SAID), 100) is None
    assert client.answer(DescribeAssignorsReply(2, SAID), 100) == SAID


def test_what_was_said_of_a_cold_worker_does_not_let_a_warm_one_join() -> None:
    client = new_client()
    client.tick(0)
    client.answer(DescribeAssignorsReply(1, SAID), 50)
    client.set_worker(WARM)
    assert not client.is_complete
    client.tick(100)
    client.answer(DescribeAssignorsReply(3, SAID), 150)
    assert client.is_complete


def test_when_no_assignor_speaks_for_it_the_worker_stays_as_it_was_and_asks_again() -> None:
    client = new_client()
    client.tick(0)
    assert client.answer(DescribeAssignorsReply(1, (), ("broken",)), 100) is None
    assert not client.is_complete
    assert client.tick(100 + REPEAT_MS) == DescribeAssignors("m", COLD, 2)
    assert client.answer(DescribeAssignorsReply(2, SAID), 5_200) == SAID
    client.tick(5_200 + REFRESH_MS)
    assert client.answer(DescribeAssignorsReply(3, (), ("broken",)), 16_000) is None
    assert client.is_complete


def test_a_process_that_owes_an_answer_for_too_long_is_reported_once() -> None:
    client = new_client()
    asks(client, TIMEOUT_MS - 50)
    assert not client.is_hung(TIMEOUT_MS - 1)
    assert [client.is_hung(TIMEOUT_MS), client.is_hung(TIMEOUT_MS + 50)] == [True, False]


def test_an_answer_however_late_is_proof_of_life() -> None:
    client = new_client()
    asks(client, TIMEOUT_MS - 50)
    client.answer(DescribeAssignorsReply(1, SAID), TIMEOUT_MS - 1)
    assert not client.is_hung(TIMEOUT_MS)


def test_another_process_is_asked_at_once_and_owes_nothing_yet() -> None:
    client = new_client()
    asks(client, TIMEOUT_MS - 50)
    client.move()
    assert not client.is_hung(TIMEOUT_MS)
    assert client.tick(TIMEOUT_MS) == DescribeAssignors("m", COLD, 2)


def test_an_assignor_is_told_its_workers_share_whenever_that_is_another() -> None:
    notices = ShareNotices("m")
    assert [notices.notify(TARGET, WORK), notices.notify(TARGET, WORK)] == [
        told(1),
        None,
    ]
    assert notices.notify(TARGET, NOTHING) is not None
    assert notices.notify(TARGET, WORK) == told(3)
    notices.move()
    assert notices.notify(TARGET, WORK) == told(4)


def test_a_share_over_which_three_processes_ended_is_not_told_again() -> None:
    notices = ShareNotices("m")
    for number in (1, 2, 3):
        assert (notices.notify(TARGET, WORK), notices.is_withheld) == (told(number), False)
        notices.move()
    assert (notices.notify(TARGET, WORK), notices.is_withheld) == (None, True)
    notices.move()
    assert (notices.notify(TARGET, WORK), notices.is_withheld) == (None, True)
    assert notices.notify(TARGET, NOTHING) is not None
    assert not notices.is_withheld


def test_a_process_that_came_through_a_share_did_not_end_over_it() -> None:
    notices = ShareNotices("m")
    for number in range(1, 9):
        assert notices.notify(TARGET, WORK) == told(number)
        if number % 3 == 0:
            notices.acknowledge(NotifyAssignmentReply(number))
        notices.move()
        notices.acknowledge(NotifyAssignmentReply(number))
    assert not notices.is_withheld


def test_nothing_is_told_while_nobody_has_computed() -> None:
    assert ShareNotices("m").notify(TargetAssignment(0, {}), NOTHING) is None
