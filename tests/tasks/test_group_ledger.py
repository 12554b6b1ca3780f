"""The tasks' way to the group: an answer counts only for the message that it answers."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.work import CommitOffsets, CommitReply, CommitVerdict
from fairlead.events.model import Commit, CommitId, Manifest, Token
from fairlead.runtime.tasks.ledger import Fenced, LedgerUnavailable
from fairlead.runtime.worker.group_ledger import CommitsWait, GroupLedger

PATIENCE_S = 20.0
BATCH = Commit(CommitId("A", 0, Token(1, 1), 0), (), Manifest("/out", "staging", 1, 1, 1), 1)
PUBLISHED = CommitId("A", 0, Token(1, 1), 9)


class Desk:
    """A ledger, a task's thread that commits, and the worker's actor that carries."""

    def __init__(self, folder: Path) -> None:
        self._wakes: Queue[CommitsWait] = Queue()
        self.ledger = GroupLedger("connect", "m", folder, self._wakes.put)

    def commits(self) -> tuple[Queue[Exception | None], threading.Thread]:
        """Have a task commit the batch; its queue gets how that ended."""
        ended: Queue[Exception | None] = Queue()
        thread = threading.Thread(target=_tell, args=(lambda: self.ledger.commit(BATCH), ended))
        thread.start()
        self._wakes.get(timeout=PATIENCE_S)
        return ended, thread

    def carried(self) -> CommitOffsets:
        """What the actor carries to the group now."""
        found = self.ledger.carry()
        assert found is not None
        return found


def _tell(act: Callable[[], None], ended: Queue[Exception | None]) -> None:
    try:
        act()
    except (Fenced, LedgerUnavailable) as error:
        ended.put(error)
    else:
        ended.put(None)


def verdict(message: CommitOffsets, error: Error) -> CommitReply:
    """What the group answers to a message."""
    verdicts = tuple(CommitVerdict(each.commit_id, error) for each in message.commits)
    return CommitReply(verdicts, message.number)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A ledger that nothing was asked of yet."""
    return Desk(tmp_path)


def test_a_group_that_cannot_write_is_asked_again_after_a_while_and_the_task_told_why(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, thread = desk.commits()
    desk.ledger.published(PUBLISHED)
    message = desk.carried()
    assert message.published == (PUBLISHED,)
    no_room = CommitReply((), message.number, Error.COORDINATOR_NOT_AVAILABLE, "no room")
    desk.ledger.settle(no_room)
    told = ended.get(timeout=PATIENCE_S)
    assert isinstance(told, LedgerUnavailable)
    assert str(told) == "no room"
    assert desk.ledger.carry() is None, "not at once, or the two would ask for ever"
    later = time.monotonic() + 2
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert desk.carried().published == (PUBLISHED,), "nothing is forgotten meanwhile"
    thread.join()


def test_an_answer_to_a_message_that_was_given_up_is_ignored(desk: Desk) -> None:
    ended, thread = desk.commits()
    first = desk.carried()
    desk.ledger.lose()
    assert isinstance(ended.get(timeout=PATIENCE_S), LedgerUnavailable)
    thread.join()
    again, thread = desk.commits()
    second = desk.carried()
    assert (first.commits, second.commits) == ((BATCH,), (BATCH,))
    assert first.number != second.number
    desk.ledger.settle(verdict(first, Error.FENCED))
    assert desk.ledger.carry() is None, "the second is still on its way"
    assert again.empty()
    desk.ledger.settle(verdict(second, Error.NONE))
    assert again.get(timeout=PATIENCE_S) is None
    thread.join()


def test_a_late_answer_before_anything_new_is_carried_is_ignored(desk: Desk) -> None:
    desk.ledger.published(PUBLISHED)
    first = desk.carried()
    desk.ledger.lose()
    desk.ledger.settle(verdict(first, Error.NONE))
    second = desk.carried()
    assert (second.published, second.number) == ((PUBLISHED,), first.number + 1)


def test_what_was_published_is_told_again_until_that_very_message_is_answered(desk: Desk) -> None:
    desk.ledger.published(PUBLISHED)
    first = desk.carried()
    desk.ledger.lose()
    second = desk.carried()
    desk.ledger.settle(verdict(first, Error.NONE))
    desk.ledger.lose()
    third = desk.carried()
    assert [each.published for each in (first, second, third)] == [(PUBLISHED,)] * 3
    desk.ledger.settle(verdict(third, Error.NONE))
    assert desk.ledger.carry() is None
