"""A compaction that is asked for, on a real node whose group's process is killed amid it."""

import random
import time
from pathlib import Path

import pytest

from fairlead.actors.messages.commands import (
    CompactHistory,
    CompactionProgress,
    CompactionState,
    DescribeCompaction,
)
from fairlead.events.entries.codec import CONTROL, encode
from fairlead.events.entries.history import read_summary
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata
from fairlead_tests.cluster.node import GROUP, Node
from fairlead_tests.cluster.remains import Starts

pytestmark = [pytest.mark.cluster, pytest.mark.soak]
EPOCHS, COMMIT, KEPT = 40_000, 500, 20
ORDER = CompactHistory(GROUP, None, KEPT, None, "user ann", "r-1")


def progress_of(node: Node) -> CompactionProgress:
    found = node.ask(node.group_address, DescribeCompaction(GROUP))
    assert isinstance(found, CompactionProgress)
    return found


def with_old_epochs(start_node: Starts) -> Node:
    """Start a node whose group has work, and a long history."""
    node = start_node()
    node.settles("w1", "w2")
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    assert node.end() == 0
    node.forget_log()
    with GroupLog.open_writer(log_of(node), GROUP, CONTROL) as log:
        for first in range(1_000, 1_000 + EPOCHS, COMMIT):
            epochs = range(first, first + COMMIT)
            records = [GroupMetadata(each, Cause(Why.MEMBER_JOINED), each) for each in epochs]
            log.append(log.end, [encode(each) for each in records], 1)
    node = start_node()
    node.runs_tasks("numbers", 2, "w1", "w2")
    return node


def log_of(node: Node) -> Path:
    return node.data_dir / "groups" / GROUP / "control"


def test_a_group_that_is_killed_amid_its_compaction_loses_nothing_and_the_next_one_ends_it(
    start_node: Starts,
) -> None:
    node = with_old_epochs(start_node)
    rng, kills = random.Random(1), 0
    while True:
        node.ask(node.group_address, ORDER)
        time.sleep(rng.uniform(0, 0.5))
        if progress_of(node).state is CompactionState.DONE:
            break
        node.hit(f"group {GROUP}")
        kills += 1
        node.settles("w1", "w2")
        assert node.held()["w1"] | node.held()["w2"] == {"numbers", "numbers-0", "numbers-1"}
    assert kills > 1
    node.put("letters", 2)
    node.runs_tasks("letters", 2, "w1", "w2")
    assert node.end() == 0
    node.forget_log()
    with LogReader.open(log_of(node), GROUP, CONTROL) as reader:
        low, packed = reader.trimmed()
        summary = read_summary(packed)
        assert summary is not None
        assert summary.entries == low >= EPOCHS - COMMIT
        assert reader.verify().end == reader.end()
