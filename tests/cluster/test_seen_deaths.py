"""A worker whose process is seen to end is not waited for, on real processes."""

import signal
from collections.abc import Iterable, Iterator

import pytest

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import EndMember
from fairlead.events.log.reader import LogReader
from fairlead.events.model import Why
from fairlead.events.records import MemberMetadata
from fairlead.projections.explain.cache import EpochCache
from fairlead.projections.explain.epochs import Explanation
from fairlead.projections.explain.reasons import Reason, ReasonKind
from fairlead_tests.cluster.deeds import overlaps, wall_ms
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster

PATIENCE_MS = 1_000


def kill(node: Node, worker: str) -> tuple[int, int]:
    """Kill a worker's process; returns its pid and the moment."""
    at_ms = wall_ms()
    return node.hit(f"worker {worker}", signal.SIGKILL), at_ms


def last_end(node: Node) -> Explanation:
    """What the log tells of the last member whose process ended."""
    epochs = range(node.group().group_epoch, 0, -1)
    node.forget_log()
    with LogReader.open(node.data_dir / "groups" / GROUP / "control", GROUP) as log:
        told = map(EpochCache(log).explain, epochs)
        return next(each for each in told if each.report.bump.cause.why is Why.PROCESS_ENDED)


def test_the_work_of_a_killed_worker_runs_elsewhere_within_a_second_without_a_delay(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1", "w2"], backoff_ms=60_000, backoff_max_ms=60_000)
    node.settles("w1", "w2")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    lost, survivor = node.held()["w2"], node.pid("worker w1")
    _, at_ms = kill(node, "w2")
    node.settles("w1")
    again = [each for each in node.spans() if each.pid == survivor and each.resource in lost]
    outage_ms = max(each.begin_ms for each in again) - at_ms
    assert {each.resource for each in again} == lost
    assert outage_ms < PATIENCE_MS
    assert overlaps(node.spans()) == []
    assert (node.states()["w2"], node.group().losses) == ("backing-off", {})

    told = last_end(node)
    assert {each.reason for each in told.handovers} == {
        Reason(ReasonKind.DEPARTURE, "process-ended")
    }
    downtimes = [each.downtime_ms for each in told.handovers]
    assert all(each is not None and abs(each - outage_ms) < 250 for each in downtimes), downtimes


def test_a_wrong_report_of_a_live_member_costs_it_a_new_seat_and_no_more(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1", "w2"])
    node.settles("w1", "w2")
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    pids = {name: node.pid(f"worker {name}") for name in ("w1", "w2")}
    seats = {each: it.metadata for each, it in node.group().members.items()}
    for member_id, seat in seats.items():
        late = EndMember(GROUP, member_id, "of an earlier process")
        assert node.ask(node.group_address, late).error is Error.NONE
        reply = node.ask(node.group_address, EndMember(GROUP, member_id, seat.incarnation))
        assert isinstance(reply, CommandReply)
        assert reply.error is Error.NONE
    old = set(_ids(seats.values()))
    eventually(lambda: len(_seats(node) - old) == len(old), "both have new seats")
    node.settles("w1", "w2")
    assert {name: node.pid(f"worker {name}") for name in pids} == pids


@pytest.mark.parametrize("title", ["supervisor supervisor", "admin connect"])
def test_who_comes_after_a_killed_supervisor_reports_the_workers_that_ended_with_it(
    start_node: Starts, title: str
) -> None:
    node = start_node(delay_ms=60_000)
    node.settles("w1", "w2")
    members, epoch = set(node.group().members), node.group().group_epoch
    node.hit(title, signal.SIGKILL)
    eventually(lambda: members.isdisjoint(node.group().members), "the old members are gone")
    node.settles("w1", "w2")
    assert _departures(node, epoch) == [Why.PROCESS_ENDED] * 2


@pytest.mark.soak
def test_a_node_that_comes_up_after_a_kill_reports_the_workers_that_ended_before(
    start_node: Starts,
) -> None:
    node = start_node(delay_ms=60_000)
    node.settles("w1", "w2")
    members, epoch = set(node.group().members), node.group().group_epoch
    node.launcher.kill()
    node.launcher.wait()
    node.forget_log()
    again = start_node(delay_ms=60_000)
    eventually(lambda: members.isdisjoint(again.group().members), "the old members are gone")
    again.settles("w1", "w2")
    assert _departures(again, epoch) == [Why.PROCESS_ENDED] * 2


def _departures(node: Node, since_epoch: int) -> list[Why]:
    """Why members went, whose epochs came after this one."""
    last = node.group().group_epoch
    node.forget_log()
    with LogReader.open(node.data_dir / "groups" / GROUP / "control", GROUP) as log:
        causes = [
            EpochCache(log).explain(epoch).report.bump.cause.why
            for epoch in range(since_epoch + 1, last + 1)
        ]
    gone = {Why.PROCESS_ENDED, Why.SESSION_EXPIRED, Why.MEMBER_LEFT}
    return [why for why in causes if why in gone]


def _ids(seats: Iterable[MemberMetadata]) -> Iterator[tuple[str, int]]:
    return ((each.member_id, each.joined_epoch) for each in seats)


def _seats(node: Node) -> set[tuple[str, int]]:
    """Every seat that was taken since the node started, as far as the group knows."""
    return set(_ids(each.metadata for each in node.group().members.values()))
