"""A newcomer is given its share of what runs a little at a time, where workers want it so."""

import pytest

from fairlead.events.log.reader import LogReader
from fairlead.events.model import Why
from fairlead.events.records import ScheduledRebalance
from fairlead.projections.explain.epochs import EpochReport
from fairlead.projections.explain.reader import read_all
from fairlead_tests.cluster.deeds import overlaps
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster

ONE_A_SECOND = {"moves.per.round": "1", "moves.interval.ms": "1000"}


def reports(node: Node) -> list[EpochReport]:
    """Return what the group's log tells of its epochs."""
    node.forget_log()
    with LogReader.open(node.data_dir / "groups" / GROUP / "control", GROUP) as log:
        return [each.report for each in read_all(log)]


def test_what_runs_moves_to_a_newcomer_one_by_one_also_over_a_death_of_the_group(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1"], assignors=["incremental"], assignor_conf=ONE_A_SECOND)
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1")
    node.add("w2")
    eventually(lambda: node.group().schedule.again_at_ms > 0, "moves are left")
    node.hit("group connect")
    eventually(lambda: node.shares() == [3, 3], "each has its share")
    node.settles("w1", "w2")
    assert node.group().schedule == ScheduledRebalance()
    told = reports(node)
    moved = [len(each.target_change.moved) for each in told if each.target_change is not None]
    assert sorted(moved, reverse=True)[:4] == [1, 1, 1, 0]
    assert [each.bump.cause.why for each in told[-2:]] == [Why.MOVES_DUE] * 2
    assert overlaps(node.spans()) == []
