"""What the log explains of a worker's death, on real processes."""

import signal

import pytest

from fairlead.events.log.reader import LogReader
from fairlead.events.model import Why
from fairlead.projections.explain.cache import EpochCache
from fairlead.projections.explain.reasons import Reason, ReasonKind
from fairlead_tests.cluster.node import GROUP
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster


def test_the_epoch_of_a_killed_worker_names_the_death_what_moved_and_why(
    start_node: Starts,
) -> None:
    node = start_node(backoff_ms=60_000, backoff_max_ms=60_000)
    node.settles("w1", "w2")
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    lost = node.held()["w2"]
    (url,) = {
        each.metadata.url
        for each in node.group().members.values()
        if each.metadata.url.endswith("/w2")
    }
    node.hit("worker w2", signal.SIGKILL)
    node.settles("w1")
    epoch = node.group().group_epoch
    node.end()
    node.forget_log()
    with LogReader.open(node.data_dir / "groups" / GROUP / "control", GROUP) as log:
        epochs_told = EpochCache(log)
        causes = [epochs_told.explain(each).report.bump.cause for each in range(1, epoch + 1)]
        (at,) = (each for each, cause in enumerate(causes, 1) if cause.why is Why.PROCESS_ENDED)
        told = epochs_told.explain(at)
    assert told.report.bump.cause.subject == url
    assert {str(each.resource): each.reason for each in told.handovers} == dict.fromkeys(
        lost, Reason(ReasonKind.DEPARTURE, "process-ended")
    )
    assert {
        (each.previous_owner.worker, each.new_owner.worker)
        for each in told.handovers
        if each.previous_owner and each.new_owner
    } == {(url, url.replace("/w2", "/w1"))}
    assert all(each.downtime_ms is not None for each in told.handovers)
    took = {each.name: each.took_ms for each in told.phases}
    assert [name for name, took_ms in took.items() if took_ms is None] == ["revoke"]
    assert told.total_ms is not None
