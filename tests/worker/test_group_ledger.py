"""The tasks' way to the group: a task waits for what became of its commit."""
# pyright: reportPrivateUsage=false

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import CommitVerdict
from fairlead.events.catalogue import commit_key
from fairlead.events.commits import CommitId, Committed
from fairlead.events.entries.codec import encode
from fairlead.events.log.frame import Entry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Resource, Resources, Token
from fairlead.events.records import Record, Tombstone
from fairlead.runtime.node.worker import group_ledger
from fairlead.runtime.node.worker.core.contract import (
    AnswerCommit,
    BatchPublished,
    CommitAsked,
    Forgotten,
)
from fairlead.runtime.node.worker.group_ledger import GroupLedger, UnpublishedTasks
from fairlead.runtime.pipeline.tasks.ledger import Fenced, LedgerUnavailable
from fairlead_tests.worker.driven import commit

PATIENCE_S = 60.0
BATCH = commit("A-0")


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (AnswerCommit(BATCH.commit_id, CommitVerdict(BATCH.commit_id, Error.NONE)), None),
        (
            AnswerCommit(BATCH.commit_id, CommitVerdict(BATCH.commit_id, Error.FENCED, "old")),
            Fenced("old"),
        ),
        (AnswerCommit(BATCH.commit_id, None, "no room"), LedgerUnavailable("no room")),
    ],
)
def test_a_task_waits_until_it_is_told_what_became_of_its_commit(
    tmp_path: Path, answer: AnswerCommit, ended: Exception | None
) -> None:
    GroupLog.open_writer(tmp_path / "log", "g").close()
    asked: Queue[CommitAsked | BatchPublished | Forgotten] = Queue()
    ledger, told = GroupLedger("g", tmp_path / "log", asked.put), list[Exception | None]()

    def commit_batch() -> None:
        try:
            ledger.commit(BATCH)
        except (Fenced, LedgerUnavailable) as error:
            told.append(error)
        else:
            told.append(None)

    thread = threading.Thread(target=commit_batch)
    thread.start()
    assert asked.get(timeout=PATIENCE_S) == CommitAsked(BATCH)
    ledger.answer(answer)
    thread.join(PATIENCE_S)
    ledger.close()
    assert repr(told) == repr([ended])


def test_a_log_is_told_from_its_copies_and_the_copies_of_one_in_a_store_are_one_log(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for each in paths:
        each.mkdir()

    def places(store_id: str) -> list[str]:
        ledgers = [GroupLedger("g", each, lambda _: None, "c", store_id) for each in paths]
        return [each.place for each in ledgers]

    assert places("") == [f"{each.stat().st_dev}:{each.stat().st_ino}" for each in paths]
    assert places("postgres-1") == ["postgres-1/g"] * 2


def test_an_answer_that_nobody_waits_for_is_ignored(tmp_path: Path) -> None:
    asked: Queue[CommitAsked | BatchPublished | Forgotten] = Queue()
    ledger = GroupLedger("g", tmp_path, asked.put)
    ledger.answer(AnswerCommit(BATCH.commit_id, None, "late"))
    ledger.published(CommitId("A", 0, Token(1, 1), 9))
    assert asked.get_nowait() == BatchPublished(CommitId("A", 0, Token(1, 1), 9))


def test_a_task_that_is_cut_short_waits_for_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_ledger, "ANSWER_SECONDS", 2 * PATIENCE_S)
    asked: Queue[CommitAsked | BatchPublished | Forgotten] = Queue()
    ledger, told = GroupLedger("g", tmp_path, asked.put), list[str]()

    def commit_batch() -> None:
        with pytest.raises(LedgerUnavailable) as caught:
            ledger.commit(BATCH)
        told.append(str(caught.value))

    thread = threading.Thread(target=commit_batch)
    thread.start()
    asked.get(timeout=PATIENCE_S)
    ledger.give_up("fenced")
    thread.join(PATIENCE_S)
    assert told == ["fenced"]


def test_a_commit_that_nobody_waits_for_any_more_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_ledger, "ANSWER_SECONDS", 0.01)
    ledger = GroupLedger("g", tmp_path, lambda _: None)
    with pytest.raises(LedgerUnavailable, match="did not answer in time"):
        ledger.commit(BATCH)
    assert not ledger._answers  # what it must not keep


def test_of_the_offset_log_only_what_is_new_is_read_for_unpublished_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun, tail = tmp_path / "log", list[int](), LogReader.tail

    def noted(log: LogReader, start: int) -> Iterator[list[Entry]]:
        begun.append(start)
        return tail(log, start)

    def waiting(*records: Record) -> Resources:
        with GroupLog.open_writer(path, "g") as log:
            log.append(log.end, [encode(each) for each in records], 5)
        with LogReader.open(path, "g") as reader:
            return tasks.catch_up(reader)

    monkeypatch.setattr(LogReader, "tail", noted)
    tasks, first, other = UnpublishedTasks(), commit("A-0"), commit("A-1")
    assert waiting() == frozenset()
    assert waiting(Committed(first, 5)) == {Resource("A", 0)}
    assert waiting(Committed(other, 5)) == {Resource("A", 0), Resource("A", 1)}
    assert waiting(Tombstone(Committed, commit_key(first.commit_id))) == {Resource("A", 1)}
    assert begun == [0, 0, 1, 2]
