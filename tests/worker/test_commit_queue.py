"""Commits on their way to the group: an answer counts only for the message that it answers."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import CommitOffsets, CommitReply, CommitVerdict
from fairlead.events.commits import CommitId
from fairlead.events.model import Token
from fairlead.runtime.node.worker.core.commit_queue import (
    ANSWER_MS,
    LATE,
    NO_VERDICT,
    REFUSED_MS,
    CommitQueue,
)
from fairlead.runtime.node.worker.core.contract import AnswerCommit
from fairlead_tests.worker.driven import commit

BATCH = commit("A-0")
PUBLISHED = CommitId("A", 0, Token(1, 1), 9)


def carried(queue: CommitQueue, now_ms: int = 0) -> CommitOffsets:
    """What is sent to the group now."""
    found = queue.carry("m", now_ms)
    assert found is not None
    return found


def verdict(message: CommitOffsets, error: Error = Error.NONE) -> CommitReply:
    """What the group answers to a message."""
    verdicts = tuple(CommitVerdict(each.commit_id, error) for each in message.commits)
    return CommitReply(verdicts, message.number)


def test_a_group_that_cannot_write_is_asked_again_after_a_while_and_the_task_told_why() -> None:
    queue = CommitQueue("g")
    queue.add(BATCH)
    queue.add_published(PUBLISHED)
    message = carried(queue)
    assert message.published == (PUBLISHED,)
    refused = CommitReply((), message.number, Error.COORDINATOR_NOT_AVAILABLE, "no room")
    assert queue.settle(refused, 10) == [AnswerCommit(BATCH.commit_id, None, "no room")]
    assert queue.carry("m", 10 + REFUSED_MS - 1) is None, (
        "not at once, or the two would ask for ever"
    )
    assert queue.next_tick_ms() == 10 + REFUSED_MS
    assert carried(queue, 10 + REFUSED_MS).published == (PUBLISHED,), "nothing is forgotten"


def test_an_answer_to_a_message_that_was_given_up_is_ignored() -> None:
    queue = CommitQueue("g")
    queue.add(BATCH)
    first = carried(queue)
    assert queue.lose("away") == [AnswerCommit(BATCH.commit_id, None, "away")]
    queue.add(BATCH)
    second = carried(queue)
    assert (first.commits, second.commits) == ((BATCH,), (BATCH,))
    assert first.number != second.number
    assert queue.settle(verdict(first, Error.FENCED), 0) == []
    assert queue.carry("m", 0) is None, "the second is still on its way"
    answer = AnswerCommit(BATCH.commit_id, CommitVerdict(BATCH.commit_id, Error.NONE))
    assert queue.settle(verdict(second), 0) == [answer]


def test_a_message_without_an_answer_is_given_up() -> None:
    queue = CommitQueue("g")
    queue.add(BATCH)
    carried(queue, 100)
    assert queue.next_tick_ms() == 100 + ANSWER_MS
    assert queue.tick(100 + ANSWER_MS - 1) == []
    assert queue.tick(100 + ANSWER_MS) == [AnswerCommit(BATCH.commit_id, None, LATE)]
    assert queue.next_tick_ms() is None


def test_what_waits_while_a_message_is_on_its_way_goes_with_the_next() -> None:
    queue = CommitQueue("g")
    queue.add(BATCH)
    first = carried(queue)
    queue.add(commit("A-1"))
    queue.add(commit("A-1"))
    assert queue.carry("m", 0) is None
    queue.settle(verdict(first), 0)
    assert carried(queue).commits == (commit("A-1"),)


def test_what_was_published_is_told_again_until_that_very_message_is_answered() -> None:
    queue = CommitQueue("g")
    queue.add_published(PUBLISHED)
    first = carried(queue)
    queue.lose()
    second = carried(queue)
    queue.settle(verdict(first), 0)
    queue.lose()
    third = carried(queue)
    assert [each.published for each in (first, second, third)] == [(PUBLISHED,)] * 3
    assert [each.number for each in (first, second, third)] == [1, 2, 3]
    queue.settle(verdict(third), 0)
    assert queue.carry("m", 0) is None


def test_a_commit_without_a_verdict_is_told_as_unknown_and_why() -> None:
    queue = CommitQueue("g")
    queue.add(BATCH)
    reply = CommitReply((), carried(queue).number)
    assert queue.settle(reply, 0) == [AnswerCommit(BATCH.commit_id, None, NO_VERDICT)]
