"""The process of a group trims the history that its log need not keep, between requests."""

import gc
import logging
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import (
    CompactHistory,
    CompactionProgress,
    CompactionState,
    DescribeCompaction,
)
from fairlead.actors.shards.host_actor import (
    BETWEEN_LOOKS,
    BETWEEN_SLICES,
    FIRST_LOOK,
    Compact,
    ContinueCompaction,
    GroupActor,
    OpenGroup,
)
from fairlead.events.entries.codec import CONTROL, OFFSETS, encode
from fairlead.events.entries.compaction import SLICE
from fairlead.events.entries.retention import Retention
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata


class Alone(GroupActor):
    """A group actor without a system; its timers fire when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[tuple[float, object]] = []
        self.answers: list[object] = []

    def wake_after(self, seconds: float, payload: object = None) -> None:
        self.timers.append((seconds, payload))

    def send(self, _: object, message: object) -> None:
        self.answers.append(message)


def write(folder: Path, epochs: int) -> None:
    joined = Cause(Why.MEMBER_JOINED)
    with GroupLog.open_writer(folder / "control", "connect", CONTROL) as log:
        for epoch in range(1, epochs + 1):
            log.append(log.end, [encode(GroupMetadata(epoch, joined, 1))], 1)
    GroupLog.open_writer(folder / "offsets", "connect", OFFSETS).close()


def test_a_group_that_is_idle_trims_its_history_in_slices(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    write(tmp_path, 1_100)
    actor = Alone()
    order = OpenGroup("connect", tmp_path, GroupSettings(), retention=Retention(epochs=100))
    actor.receive(order, "supervisor")
    pauses = [seconds for seconds, payload in actor.timers if isinstance(payload, Compact)]
    assert pauses == [FIRST_LOOK]
    caplog.set_level(logging.INFO)
    actor.timers.clear()
    while not actor.timers or actor.timers[-1][0] != BETWEEN_LOOKS:
        actor.woken(Compact())
    slices = -(-1_000 // SLICE)
    assert {seconds for seconds, _ in actor.timers[:-1]} == {BETWEEN_SLICES}
    assert len(actor.timers) >= 2 * slices, "each is read, and then trimmed"
    assert [each for each in caplog.messages if "compacted" in each] == [
        f"the history before entry 1000 of {tmp_path / 'control'} was compacted: `history` has its"
        " summary"
    ]
    actor.stopping()
    with LogReader.open(tmp_path / "control") as log:
        assert log.verify().low == 1_000


def test_a_compaction_that_is_asked_for_is_done_in_slices_and_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    write(tmp_path, 1_100)
    actor = Alone()
    actor.receive(OpenGroup("connect", tmp_path, GroupSettings()), "supervisor")
    order = CompactHistory("connect", None, 100, None, "user ann", "r-1")
    actor.answers.clear()
    for message in (DescribeCompaction("connect"), order, order):
        actor.receive(message, "rest")
    running = CompactionProgress(CompactionState.RUNNING)
    refused = CompactionProgress(CompactionState.RUNNING, is_refused=True)
    assert actor.answers == [CompactionProgress(CompactionState.NONE), running, refused]
    begun = [payload for _, payload in actor.timers if isinstance(payload, ContinueCompaction)]
    assert len(begun) == 1
    slices = 0
    while isinstance(actor.timers[-1][1], ContinueCompaction):
        actor.timers.clear()
        actor.timers.append((0.0, None))
        actor.woken(ContinueCompaction())
        slices += 1
    assert slices >= 2 * (1_000 // SLICE)
    actor.answers.clear()
    actor.receive(DescribeCompaction("connect"), "rest")
    assert actor.answers == [CompactionProgress(CompactionState.DONE, 1_000)]
    actor.stopping()
