"""No message to a host is longer than the transport takes, and no answer is lost for that."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.classic import ClassicHeartbeat
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, TopicRights
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import DescribeGroupReply, HostCall, ListGroups
from fairlead.actors.messages.offsets import OffsetFetchReply, TopicOffset
from fairlead.actors.shards import packets
from fairlead.actors.shards.packets import ReplyQueue, size_of, with_number


def answer(number: int, offsets: int) -> OffsetFetchReply:
    told = tuple(TopicOffset("t", each, metadata="m" * 100) for each in range(offsets))
    return OffsetFetchReply(Error.NONE, told, number=number)


def numbers(queue: ReplyQueue) -> list[int]:
    return [each.number for each in queue.pop_message() if isinstance(each, OffsetFetchReply)]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> ReplyQueue:
    monkeypatch.setattr(packets, "MOST_BYTES", size_of(answer(1, 10)))
    return ReplyQueue()


def test_what_does_not_fit_into_a_message_is_told_with_the_next(queue: ReplyQueue) -> None:
    queue.add([answer(1, 10), answer(2, 2), answer(3, 2), answer(4, 7)])
    assert [numbers(queue) for _ in range(4)] == [[1], [2, 3], [4], []]
    assert not queue


def test_an_answer_that_no_message_takes_becomes_a_refusal(queue: ReplyQueue) -> None:
    queue.add([answer(1, 11), answer(2, 1)])
    refused, told = queue.pop_message()
    assert isinstance(refused, OffsetFetchReply)
    assert (refused.error, refused.offsets, refused.number) == (Error.INVALID_REQUEST, (), 1)
    assert told == answer(2, 1)


def test_what_is_told_of_groups_is_counted_as_well() -> None:
    assert size_of(DescribeGroupReply(Error.NONE, "Empty")) == packets.SMALL
    assert size_of(answer(1, 2)) == packets.SMALL + 2 * (packets.PARTITION + len("t") + 100)


@pytest.mark.parametrize(
    "call",
    [
        ClassicHeartbeat("g", "m", 1),
        ConsumerGroupHeartbeat("g", "m", 1, topic_rights=TopicRights()),
        ListGroups(),
    ],
    ids=["classic", "consumer", "all"],
)
def test_a_call_that_gets_its_number_says_what_it_said(call: HostCall) -> None:
    assert with_number(call, 7) == replace(call, number=7)
