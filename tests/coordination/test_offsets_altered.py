"""Offsets that people set while a connector is stopped: when they may, and what is written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.actors.messages.commands import CommandReply, ConnectRequest
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import CommitOffsets
from fairlead.actors.messages.orders import AlterOffsets, DeleteConnector, SetTargetState
from fairlead.events.commits import (
    Advance,
    Commit,
    CommitId,
    Document,
    Lag,
    Manifest,
    Offset,
    TaskProgress,
)
from fairlead.events.entries.codec import decode
from fairlead.events.group import token_of
from fairlead.events.log.space import DiskSpace
from fairlead.events.model import RunState
from fairlead.events.records import OffsetsAltered, Record, Tombstone
from fairlead_tests.coordination.driver import CoordinatorDriver
from fairlead_tests.decider import resource

FILE, OTHER = {"path": "a.csv"}, {"path": "b.csv"}
STOP_IT = "Connectors must be in the STOPPED state before their offsets can be modified."


class Scene(CoordinatorDriver):
    """A group of `a`, which runs connector A and its one task; that has read a file."""

    def begin_work(self) -> None:
        self.put("A")
        self.asks(self.joining("a"))
        self.compute("a")
        self.beat("a")
        self.split("a", "A", 1)
        self.beat("a")
        self.compute("a")
        self.asks(self.full("a", "A"))
        self.commit(FILE, {"row": 10})
        self.passes(1)

    def commit(self, partition: Document, end: Document) -> CommitId:
        """Let the task commit a batch."""
        token = token_of(self.group, "a", resource("A-0"))
        assert token is not None
        commit_id = CommitId("A", 0, token, 0)
        manifest = Manifest("/out", "s", 10, 100, 1)
        batch = Commit(commit_id, (Advance(partition, None, end),), manifest, 10, Lag(2, 20))
        self.send(CommitOffsets("connect", "a", (batch,)))
        return commit_id

    def order(self, state: RunState) -> None:
        self.send(SetTargetState("connect", "A", state))

    def stop(self) -> None:
        """Have the connector stopped, its last batch published."""
        self.order(RunState.STOPPED)
        self.beat("a")
        self.compute("a")
        self.beat("a")
        self.asks(self.full("a", "A"))
        token = token_of(self.group, "a", resource("A"))
        assert token is not None
        last = self.progress().last
        self.send(CommitOffsets("connect", "a", (), (last,)))
        self.passes(1_000)
        assert self.group.is_stopped("A")

    def alter(self, *offsets: tuple[Document, Document | None]) -> CommandReply:
        return self.answer(AlterOffsets("connect", "A", "altered", offsets, principal="ann"))

    def reset(self) -> CommandReply:
        return self.answer(AlterOffsets("connect", "A", "reset", principal="ann"))

    def answer(self, command: AlterOffsets) -> CommandReply:
        (answer,) = [
            each.reply for each in self.send(command) if isinstance(each.reply, CommandReply)
        ]
        return answer

    def logged(self) -> dict[str, Document]:
        """The offsets that a task would begin with, by path."""
        found = [decode(each) for each in self.offsets.load()[0]]
        return {
            str(each.partition["path"]): each.offset for each in found if isinstance(each, Offset)
        }

    def progress(self) -> TaskProgress:
        found = [decode(each) for each in self.offsets.load()[0]]
        (progress,) = [each for each in found if isinstance(each, TaskProgress)]
        return progress

    def appended(self, since: int) -> list[Record | None]:
        """What was written to the offset log since it ended there."""
        return [decode(each) for each in self.offsets.load()[0] if each.offset >= since]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene.at(tmp_path)
    assert isinstance(scene, Scene)
    scene.begin_work()
    yield scene
    scene.close()


def test_offsets_change_only_once_a_connector_is_stopped(scene: Scene) -> None:
    for state in (RunState.RUNNING, RunState.PAUSED, RunState.STOPPED):
        scene.order(state)
        for refused in (scene.alter((FILE, {"row": 3})), scene.reset()):
            assert refused.error is Error.INVALID_REQUEST
            assert refused.message.startswith(STOP_IT)
    assert scene.logged() == {"a.csv": {"row": 10}}


def test_a_connector_whose_last_batch_is_not_published_is_not_stopped_yet(scene: Scene) -> None:
    scene.order(RunState.STOPPED)
    scene.beat("a")
    scene.compute("a")
    scene.beat("a")
    scene.asks(scene.full("a", "A"))
    scene.passes(1_000)
    assert scene.reset().message.startswith(STOP_IT)
    scene.send(CommitOffsets("connect", "a", (), (scene.progress().last,)))
    scene.passes(1_000)
    assert scene.reset().error is Error.NONE


def test_all_offsets_of_a_change_are_one_append_and_the_log_tells_whose_it_was(
    scene: Scene,
) -> None:
    scene.stop()
    end = scene.offsets.end
    scene.coordinator.submit(
        AlterOffsets("connect", "A", "altered", ((OTHER, {"row": 7}), (FILE, None)), None, "ann"),
        "someone",
        scene.now,
    )
    ready = scene.coordinator.ready(scene.now)
    assert (len(ready.offset_entries), len(ready.entries)) == (4, 1)
    scene.append_offsets(ready.offset_entries, scene.now)
    scene.append(ready.entries, scene.now)
    scene.coordinator.advance(ready)
    last = scene.progress().last
    altered = OffsetsAltered("A", "altered", 2, scene.now.wall_ms, "ann")
    assert scene.appended(end) == [
        Offset("A", OTHER, {"row": 7}),
        Tombstone(Offset, ("A", "path='a.csv'")),
        TaskProgress(last, 1, 10, 10, 100, scene.progress().time_ms, None, last),
        altered,
    ]
    assert scene.group.offset_changes == {"A": altered}
    scene.open()
    assert scene.logged() == {"b.csv": {"row": 7}}
    assert scene.group.offset_changes["A"].actor == "ann"


def test_of_a_partition_that_is_given_twice_the_last_offset_counts(scene: Scene) -> None:
    scene.stop()
    scene.alter((FILE, {"row": 3}), (OTHER, {"row": 1}), (FILE, {"row": 4}), (OTHER, None))
    assert scene.logged() == {"a.csv": {"row": 4}}


def test_a_reset_takes_every_offset_away_and_a_second_one_writes_nothing(scene: Scene) -> None:
    scene.stop()
    scene.alter((OTHER, {"row": 7}))
    assert scene.reset().error is Error.NONE
    assert scene.logged() == {}
    ends = scene.offsets.end, scene.control.end
    assert scene.reset().error is Error.NONE
    assert scene.alter((FILE, None)).error is Error.NONE
    assert (scene.offsets.end, scene.control.end) == ends


def test_offsets_that_were_looked_at_before_the_connector_ran_again_are_not_set(
    scene: Scene,
) -> None:
    scene.stop()
    looked_ms = scene.group.target_states["A"].time_ms
    new = ((FILE, {"row": 3}),)
    scene.passes(1)
    scene.order(RunState.RUNNING)
    scene.beat("a")
    scene.compute("a")
    scene.asks(scene.full("a", "A"))
    scene.stop()
    late = scene.answer(AlterOffsets("connect", "A", "sought", new, looked_ms))
    assert (late.error, late.message) == (
        Error.INVALID_REQUEST,
        "connector A ran since its offsets were looked at: nothing was changed; ask again",
    )
    now_ms = scene.group.target_states["A"].time_ms
    assert scene.answer(AlterOffsets("connect", "A", "sought", new, now_ms)).error is Error.NONE


@pytest.mark.parametrize("resume_first", [False, True])
def test_of_a_change_and_a_resumption_at_once_the_first_one_decides(
    scene: Scene, *, resume_first: bool
) -> None:
    scene.stop()
    orders: list[ConnectRequest] = [
        AlterOffsets("connect", "A", "reset"),
        SetTargetState("connect", "A", RunState.RUNNING),
    ]
    for order in reversed(orders) if resume_first else orders:
        scene.coordinator.submit(order, "someone", scene.now)
    scene.flush()
    assert scene.logged() == ({"a.csv": {"row": 10}} if resume_first else {})


def test_a_process_that_dies_between_the_logs_leaves_the_offsets_changed_and_all_of_them(
    scene: Scene,
) -> None:
    scene.stop()
    altered = die_between_the_logs(scene)
    assert scene.logged() == {}
    assert (scene.group.is_stopped("A"), scene.group.offset_changes) == (True, {})
    scene.passes(1_000)
    assert scene.group.offset_changes == {"A": altered}
    end = scene.control.end
    scene.open()
    scene.passes(1_000)
    assert (scene.reset().error, scene.control.end) == (Error.NONE, end)


def die_between_the_logs(scene: Scene) -> OffsetsAltered:
    """Have offsets reset by a process that dies in between, and another one begin."""
    scene.coordinator.submit(AlterOffsets("connect", "A", "reset"), "someone", scene.now)
    ready = scene.coordinator.ready(scene.now)
    scene.append_offsets(ready.offset_entries, scene.now)
    scene.open()
    return OffsetsAltered("A", "reset", 1, scene.now.wall_ms, None)


def test_of_a_connector_that_is_created_anew_nobody_has_set_offsets(scene: Scene) -> None:
    scene.stop()
    die_between_the_logs(scene)
    scene.send(DeleteConnector("connect", "A"))
    scene.asks(scene.full("a", "A"))
    scene.compute("a")
    scene.beat("a")
    scene.asks(scene.full("a", ""))
    scene.passes(1_000)
    assert "A" not in scene.group.connectors
    scene.put("A")
    scene.open()
    scene.passes(1_000)
    assert scene.group.offset_changes == {}


def test_the_first_batch_after_a_change_begins_where_people_said(scene: Scene) -> None:
    scene.stop()
    scene.alter((FILE, {"row": 3}))
    scene.order(RunState.RUNNING)
    scene.beat("a")
    scene.compute("a")
    scene.asks(scene.full("a", "A"))
    token = token_of(scene.group, "a", resource("A-0"))
    assert token is not None
    for number, start in enumerate(({"row": 10}, {"row": 3})):
        step = Advance(FILE, start, {"row": 20})
        batch = Commit(CommitId("A", 0, token, number), (step,), Manifest("/out", "s", 1, 1, 1), 1)
        scene.send(CommitOffsets("connect", "a", (batch,)))
        assert scene.logged() == {"a.csv": {"row": 20} if number else {"row": 3}}


def test_what_no_log_can_hold_changes_nothing(scene: Scene) -> None:
    scene.stop()
    refused = scene.alter((OTHER, {"row": 1}), (FILE, {"row": 1 << 70}))
    assert refused.error is Error.INVALID_REQUEST
    assert "cannot be written down" in refused.message
    assert scene.logged() == {"a.csv": {"row": 10}}
    assert scene.group.offset_changes == {}


def test_a_connector_that_is_not_there_has_no_offsets_to_change(scene: Scene) -> None:
    scene.stop()
    scene.send(DeleteConnector("connect", "A"))
    refused = scene.reset()
    assert (refused.error, refused.message) == (
        Error.UNKNOWN_CONNECTOR,
        "Connector A not found",
    )
    scene.asks(scene.full("a", ""))
    scene.passes(1_000)
    assert scene.logged() == {"a.csv": {"row": 10}}


def test_offsets_do_not_change_while_the_disk_is_full(scene: Scene) -> None:
    scene.stop()
    scene.coordinator.set_disk_space(DiskSpace(Path("/"), 1), scene.now)
    assert scene.reset().error is Error.COORDINATOR_NOT_AVAILABLE
    assert scene.logged() == {"a.csv": {"row": 10}}


def test_offsets_that_are_only_notes_are_removed_while_the_connector_runs(scene: Scene) -> None:
    notes = AlterOffsets("connect", "A", "forgotten", principal="ann", are_notes=True)
    assert scene.answer(notes).error is Error.NONE
    assert scene.logged() == {}
