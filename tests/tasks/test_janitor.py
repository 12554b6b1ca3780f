"""What nobody is left to publish is published all the same, and what never counted is swept."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.group.members.commit import OffsetLedger, commit_offsets
from fairlead.actors.messages.commands import FinishDeletion, FinishStop
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import (
    CommitOffsets,
    CommitVerdict,
    ExternalStateRemoved,
    PutTaskConfigs,
)
from fairlead.actors.messages.orders import DeleteConnector, PutConnector, SetTargetState
from fairlead.events.commits import Commit, CommitId
from fairlead.events.entries.codec import encode
from fairlead.events.evolve import evolve
from fairlead.events.group import AWAY_EPOCH, Group, token_of
from fairlead.events.log.errors import ReadersFullError
from fairlead.events.log.frame import Entry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import MemberState, Resource, RunState, Token
from fairlead.events.records import CurrentAssignment, MemberMetadata
from fairlead.runtime.node.worker.cleanup_duty import CHECK_MS, CleanupDuty, is_on_duty
from fairlead.runtime.node.worker.cleanups import Cleanup
from fairlead.runtime.node.worker.core.contract import (
    AnswerCommit,
    BatchPublished,
    CommitAsked,
    Forgotten,
)
from fairlead.runtime.node.worker.group_ledger import GroupLedger
from fairlead.runtime.node.worker.janitor import Janitor
from fairlead.runtime.pipeline.spi.connector import Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.source import Source
from fairlead.runtime.pipeline.tasks.ledger import LedgerUnavailable
from fairlead_tests.decider import Decider
from fairlead_tests.tasks.numbers import Hooks, LineSink, Numbers, staged, written

NAME, FIRST, SECOND = "A", Resource("A", 0), Resource("A", 1)


@dataclass
class Named:
    """A member by its name."""

    member_id: str


class Scene:
    """W1 runs connector A and its two tasks; W2 has nothing, and a janitor."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root = root
        self._path = path
        self.decider = Decider()
        config = {"root": str(root), "last": "9", "placement.weight": "2"}
        self.decider.carry_out(PutConnector("connect", NAME, config))
        self.decider.join("W1")
        self.decider.settle()
        self.split(2)
        GroupLog.open_writer(path, "connect").close()
        self.handed_over: list[BatchPublished] = []
        self.ledger = GroupLedger("connect", path, self.hear)
        self.janitor = Janitor(self.ledger, self.pipeline_of)

    def split(self, tasks: int) -> None:
        """Have the connector split its work into so many tasks."""
        token = token_of(self.decider.group, "W1", Resource(NAME))
        assert token is not None
        config = self.decider.group.connectors[NAME].config
        split = PutTaskConfigs("connect", "W1", NAME, token, (config,) * tasks)
        self.decider.carry_out(split)
        self.decider.settle()

    def delete(self, *, forgets: bool = False) -> None:
        """Delete the connector, and let W1 give everything up."""
        self.decider.carry_out(DeleteConnector("connect", NAME, forgets=forgets))
        self.decider.settle()

    def bury(self) -> bool:
        """Bury the connector if nothing is left of it any more; whether that was done."""
        self.decider.carry_out(FinishDeletion(NAME))
        return NAME not in self.decider.group.connectors

    @staticmethod
    def pipeline_of(cleanup: Cleanup) -> Pipeline:
        """The pipeline that a cleanup's config leads to."""
        assert set(cleanup.connector_config) == {"root", "last"}, "placement is the group's alone"
        return Numbers().pipeline(Context(cleanup.resource, print), cleanup.config)

    def stage(self, task: Resource, *numbers: int, batch: int = 0) -> Commit:
        """Stage a batch as W1 does."""
        token = token_of(self.decider.group, "W1", task)
        assert token is not None
        commit_id = CommitId(*task, token, batch)
        manifest = LineSink(self.root, Hooks()).stage(numbers, commit_id, 0)
        return Commit(commit_id, (), manifest, len(numbers))

    def tell(self, command: CommitOffsets) -> bool:
        """Have the group decide about commits; tell whether any is not published after that."""
        self.ledger.close()
        with GroupLog.open_writer(self._path, "connect") as log:
            ledger = OffsetLedger(log)
            decision = commit_offsets(self.decider.group, ledger, command, 0)
            log.append(log.end, [encode(record) for record in decision.records], 0)
            return ledger.has_unpublished(NAME)

    def commit(self, *commits: Commit) -> None:
        """Commit what W1 staged."""
        assert self.tell(CommitOffsets("connect", "W1", commits))

    def hear(self, asked: CommitAsked | BatchPublished | Forgotten) -> None:
        """Take what a task or the janitor hands over; a commit that was accepted is so again."""
        if isinstance(asked, Forgotten):
            told = ExternalStateRemoved("connect", "W1", asked.connector, asked.config_ms)
            self.decider.carry_out(told)
        elif isinstance(asked, BatchPublished):
            self.handed_over.append(asked)
        else:
            commit_id = asked.commit.commit_id
            self.ledger.answer(AnswerCommit(commit_id, CommitVerdict(commit_id, Error.NONE)))

    def work(self, member_id: str = "W1") -> None:
        """Let the janitor look, do, and look again."""
        for _ in range(3):
            self.janitor.tick(self.decider.group, member_id)
            join_janitor()

    def is_all_published(self) -> bool:
        """Tell the group what the janitor says; whether the log names no commit after that."""
        told = tuple(each.commit_id for each in self.handed_over)
        return bool(told) and not self.tell(CommitOffsets("connect", "W1", (), told))

    @property
    def seen(self) -> list[int]:
        return written(self.root)


def join_janitor() -> None:
    for thread in threading.enumerate():
        if thread.name == "janitor":
            thread.join()


@pytest.fixture
def scene(root: Path, tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(root, tmp_path / "offsets")
    yield scene
    scene.ledger.close()


def test_a_committed_batch_of_a_deleted_connector_is_published_and_reported(scene: Scene) -> None:
    scene.commit(scene.stage(FIRST, 1, 2), scene.stage(SECOND, 3))
    scene.delete()
    assert scene.decider.group.members.keys() == {"W1"}
    scene.work()
    assert (scene.seen, staged(scene.root)) == ([1, 2, 3], [])
    assert scene.is_all_published()


def test_a_committed_batch_of_a_task_that_is_no_more_is_published(scene: Scene) -> None:
    scene.commit(scene.stage(SECOND, 3))
    scene.split(1)
    scene.work()
    assert (scene.seen, staged(scene.root)) == ([3], [])
    assert scene.is_all_published()


def test_the_janitor_publishes_a_batch_under_the_number_that_its_task_was_told(
    scene: Scene, hooks: Hooks
) -> None:
    commit = scene.stage(FIRST, 1)
    scene.commit(scene.stage(SECOND, 3), commit)
    told = scene.ledger.commit(commit)
    scene.delete()
    scene.work()
    assert told in hooks.sequences
    assert len(set(hooks.sequences)) == 2
    assert scene.is_all_published()
    assert scene.ledger.commit(commit) is None


def test_what_a_worker_holds_is_its_own_to_publish(scene: Scene) -> None:
    scene.commit(scene.stage(FIRST, 1))
    scene.stage(SECOND, 3)
    scene.work()
    assert (scene.seen, len(staged(scene.root)), scene.handed_over) == ([], 2, [])


def test_a_static_member_that_is_away_does_no_chores() -> None:
    group = Group("connect")
    for member_id, epoch in (("W1", -2), ("W2", 3), ("W3", 3)):
        evolve(group, MemberMetadata(member_id, instance_id=member_id), group.end)
        step = CurrentAssignment(member_id, epoch, 3, MemberState.STABLE, {}, {})
        evolve(group, step, group.end)
    assert [each for each in group.members if is_on_duty(group, each)] == ["W2"]


def test_only_the_member_with_the_lowest_id_does_the_chores(scene: Scene) -> None:
    scene.commit(scene.stage(FIRST, 1))
    scene.decider.join("W2")
    scene.delete()
    scene.work("W2")
    assert scene.seen == []
    scene.work("W1")
    assert scene.seen == [1]


def test_what_never_counted_is_swept_once_the_connector_is_gone(scene: Scene) -> None:
    scene.commit(scene.stage(FIRST, 1))
    scene.stage(FIRST, 2, batch=1)
    scene.stage(SECOND, 3)
    scene.work()
    scene.delete()
    scene.work()
    assert (scene.seen, len(staged(scene.root))) == ([1], 2)
    scene.decider.carry_out(FinishDeletion(NAME))
    assert scene.decider.group.connectors == {}
    scene.work()
    assert (scene.seen, staged(scene.root)) == ([1], [])


def test_what_a_task_that_is_no_more_had_staged_is_swept(scene: Scene) -> None:
    scene.stage(FIRST, 1)
    scene.stage(SECOND, 2)
    scene.work()
    scene.split(1)
    scene.work()
    (left,) = staged(scene.root)
    assert left.startswith("A-0/")


def test_what_a_later_owner_stages_is_not_swept(scene: Scene) -> None:
    scene.work()
    scene.delete()
    scene.decider.carry_out(FinishDeletion(NAME))
    epoch = scene.decider.group.assignment_epoch
    later = CommitId(*FIRST, Token(epoch + 1, 1), 0)
    LineSink(scene.root, Hooks()).stage([1], later, 0)
    scene.work()
    assert len(staged(scene.root)) == 1


def test_a_janitor_that_has_nothing_to_do_starts_no_thread_until_something_is_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = list[str]()

    class Noted(threading.Thread):
        def start(self) -> None:
            begun.append(self.name)
            super().start()

    monkeypatch.setattr("fairlead.runtime.node.worker.janitor.Thread", Noted)
    scene.work()
    begun.clear()
    scene.work()
    assert begun == []
    commit = scene.stage(FIRST, 1)
    scene.commit(commit)
    scene.work()
    assert begun, "to read which task it is of"
    scene.delete()
    scene.work()
    assert (scene.seen, scene.is_all_published()) == ([1], True)
    scene.work()
    begun.clear()
    scene.work()
    assert begun == []


def test_tasks_with_unpublished_commits_are_found_in_what_was_written_since(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert scene.ledger.tasks_with_unpublished() == set()
    scan, scans = LogReader.scan, list[int]()

    def noted(log: LogReader, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        scans.append(kind)
        return scan(log, kind, key_prefix)

    monkeypatch.setattr(LogReader, "scan", noted)
    first, second = scene.stage(FIRST, 1), scene.stage(SECOND, 2)
    scene.commit(first, second)
    assert scene.ledger.tasks_with_unpublished() == {FIRST, SECOND}
    scene.tell(CommitOffsets("connect", "W1", (), (first.commit_id,)))
    assert scene.ledger.tasks_with_unpublished() == {SECOND}
    assert scans == []
    scene.tell(CommitOffsets("connect", "W1", (), (second.commit_id,)))
    with GroupLog.open_writer(tmp_path / "offsets", "connect") as log:
        log.trim(log.end)
    assert scene.ledger.tasks_with_unpublished() == set()
    assert len(scans) == 1, "what was trimmed is read from what is left"


def test_tasks_with_unpublished_commits_are_found_after_a_read_that_failed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.commit(scene.stage(FIRST, 1))

    def fail(log: LogReader, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        raise ReadersFullError(f"{log.path}: {kind}, {key_prefix!r}")

    with monkeypatch.context() as full:
        full.setattr(LogReader, "scan", fail)
        with pytest.raises(LedgerUnavailable):
            scene.ledger.tasks_with_unpublished()
    assert scene.ledger.tasks_with_unpublished() == {FIRST}


def test_what_can_not_be_published_is_told_once_and_tried_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    commit = scene.stage(FIRST, 1)
    scene.commit(commit, scene.stage(SECOND, 3))
    aside = scene.root.with_name("aside")
    scene.root.rename(aside)
    scene.root.touch()
    scene.delete()
    with caplog.at_level(logging.WARNING, "fairlead.runtime.node.worker.janitor"):
        scene.work()
        scene.work()
    told = [
        f"the cleanup of {task} is retried later: {scene.root}: not a directory"
        for task in (FIRST, SECOND)
    ]
    assert sorted(each.partition(",")[0] for each in caplog.messages) == told
    scene.root.unlink()
    aside.rename(scene.root)
    scene.work()
    assert (scene.seen, staged(scene.root), scene.is_all_published()) == ([1, 3], [], True)


def test_only_the_member_whose_turn_it_is_and_the_next_follow_the_whole_group(
    tmp_path: Path,
) -> None:
    def write(*records: MemberMetadata | CurrentAssignment) -> None:
        with GroupLog.open_writer(tmp_path / "log", "connect", reserve_bytes=0) as log:
            log.append(log.end, [encode(each) for each in records], 0)

    def following(now_ms: int) -> list[str]:
        with LogReader.open(tmp_path / "log") as log:
            duties = {
                each: CleanupDuty("connect", Named(each), log) for each in ("W0", "W1", "W2", "W3")
            }
            return [each for each, duty in duties.items() if duty.group(now_ms) is not None]

    write(*(MemberMetadata(f"W{number}") for number in range(4)))
    assert following(0) == ["W0", "W1"]
    write(CurrentAssignment("W0", AWAY_EPOCH, 0, MemberState.AWAY, {}, {}))
    assert following(0) == ["W1", "W2"], "who is away has no turn"
    write(*(MemberMetadata(each) for each in ("V", "W")))
    assert following(0) == [], "both have come before them"


def test_whose_turn_it_is_is_not_looked_up_while_the_log_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan, scans = LogReader.scan, list[int]()

    def noted(log: LogReader, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        scans.append(kind)
        return scan(log, kind, key_prefix)

    monkeypatch.setattr(LogReader, "scan", noted)
    with GroupLog.open_writer(tmp_path / "log", "connect", reserve_bytes=0) as log:
        log.append(log.end, [encode(MemberMetadata("W1"))], 0)
    with LogReader.open(tmp_path / "log") as reader:
        duty = CleanupDuty("connect", Named("W1"), reader)
        followed = [duty.group(now_ms) is not None for now_ms in range(0, 60_000, CHECK_MS)]
    assert (all(followed), len(scans)) == (True, 1)


def test_a_connector_is_gone_only_once_the_sources_of_all_its_tasks_forgot_what_they_keep(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Source[Any]] = []

    def forget(source: Source[Any]) -> None:
        tries.append(source)
        if len(tries) < 3:
            raise OSError("the server is away")

    monkeypatch.setattr(Source, "remove_external_state", forget)
    scene.work()
    scene.split(1)
    scene.work()
    scene.split(2)
    assert tries == []  # a task that is gone has siblings
    scene.delete(forgets=True)
    scene.janitor.tick(scene.decider.group, "W1")
    join_janitor()
    assert (len(tries), scene.bury()) == (2, False)
    scene.janitor = Janitor(scene.ledger, scene.pipeline_of)  # the worker's process is another
    scene.work()
    assert (len(tries), scene.bury()) == (4, True)
    scene.work()
    assert len(tries) == 4


def test_a_source_keeps_what_is_to_be_left_there_and_what_a_new_connector_goes_on_with(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Source[Any]] = []

    def forget(source: Source[Any]) -> None:
        tries.append(source)
        raise OSError("the server is away")

    monkeypatch.setattr(Source, "remove_external_state", forget)
    scene.split(1)
    config = scene.decider.group.connectors[NAME].config
    scene.delete(forgets=True)
    scene.work()
    assert tries, "the deleted one's is asked to forget"
    assert not scene.bury()
    scene.delete()
    tries.clear()
    assert scene.bury()
    scene.decider.carry_out(PutConnector("connect", NAME, config))
    scene.work()
    assert tries == []


def test_what_a_task_that_came_back_commits_is_not_published_by_its_former_config(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep(*_: object) -> None:
        raise OSError("the sink is away")

    scene.commit(scene.stage(SECOND, 1))
    scene.work()
    scene.split(1)
    monkeypatch.setattr(LineSink, "sweep", sweep)
    scene.work()
    assert scene.is_all_published()
    scene.split(2)
    scene.commit(scene.stage(SECOND, 2))
    scene.handed_over.clear()
    scene.work()
    assert (scene.seen, scene.handed_over) == ([1], [])


def test_the_source_of_a_stopped_connector_is_released_once_for_each_stop(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[Source[Any]] = []

    def release(source: Source[Any]) -> None:
        released.append(source)
        if len(released) == 1:
            raise OSError("the server is away")

    def want(state: RunState) -> None:
        scene.decider.carry_out(SetTargetState("connect", NAME, state))
        scene.decider.settle()
        scene.work()

    monkeypatch.setattr(Source, "release", release)
    scene.split(1)
    want(RunState.PAUSED)
    want(RunState.RUNNING)
    want(RunState.STOPPED)
    assert released == [], "what was committed may wait to be published"
    scene.decider.carry_out(FinishStop(NAME))
    scene.work()
    assert len(released) == 2, "what failed is tried again"
    want(RunState.RUNNING)
    want(RunState.STOPPED)
    scene.decider.carry_out(FinishStop(NAME))
    scene.work()
    assert len(released) == 3
