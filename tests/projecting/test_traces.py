"""What the logs tell of epochs and batches, as spans: their ids, parents, times and attributes."""

from types import SimpleNamespace
from typing import Any

from fairlead.events.catalogue import commit_key
from fairlead.events.commits import Commit, CommitId, Committed, Cost, Manifest, TaskProgress
from fairlead.events.entries.codec import encode
from fairlead.events.log.frame import Entry
from fairlead.events.model import BATCHES_RUN, RunState, Token
from fairlead.events.records import Record, Tombstone
from fairlead.projections.traces.batches import BatchSpans
from fairlead.projections.traces.epochs import EpochSpans
from fairlead.projections.traces.spans import SpanEvent, TraceSpan, batch_context, epoch_context
from fairlead_tests.decider import resource
from fairlead_tests.projecting.timed_log import TimedDecider, computed

C, D = map(resource, "CD")
CLUSTER = "a-cluster"


def spans_of(group: TimedDecider) -> list[TraceSpan]:
    log: Any = SimpleNamespace(log_id="connect")
    fold = EpochSpans(CLUSTER, log, 0)
    return [span for entry in group.entries for span in fold.apply(entry)]


def handed_over() -> TimedDecider:
    """W1 alone with A to D; W2 joins, W1 stops C and D, W2 runs C, and D only after W1 is gone."""
    group = computed(ahead_ms=0)
    group.at(5_500).beat("W1", "A B C D")
    group.at(5_580).says(C, RunState.UNASSIGNED)
    group.at(5_590).says(D, RunState.UNASSIGNED)
    group.at(5_700).beat("W1", "A B")
    group.at(5_800).beat("W2", "")
    group.at(5_900).says(C, RunState.RUNNING)
    group.at(6_000).says(C, RunState.RUNNING, BATCHES_RUN)
    group.at(6_050).settle()
    group.at(6_100).says(D, RunState.RUNNING)
    return group


def test_an_epoch_goes_from_its_record_until_all_members_are_at_its_target() -> None:
    epochs = [each for each in spans_of(handed_over()) if each.name == "epoch"]
    assert [(each.start_ms, each.end_ms) for each in epochs] == [(1_000, 1_700), (5_000, 5_800)]
    assert epochs[1] == TraceSpan(
        "epoch",
        epoch_context(CLUSTER, "connect", 2),
        5_000,
        5_800,
        {
            "fairlead.group": "connect",
            "fairlead.epoch": 2,
            "fairlead.cause": "member-joined",
            "fairlead.subject": "http://w2",
            "fairlead.assignment_epoch": 2,
            "fairlead.assignor": "balanced",
            "fairlead.moved": 2,
            "fairlead.returned": 0,
            "fairlead.placed": 0,
            "fairlead.unplaceable": 0,
        },
        events=(SpanEvent("target", 5_200),),
    )


def test_a_handover_is_a_child_of_its_epoch_and_ends_when_the_new_owner_runs() -> None:
    epoch = epoch_context(CLUSTER, "connect", 2)
    moves = [each for each in spans_of(handed_over()) if each.parent == epoch]
    assert [each.attributes["fairlead.connector"] for each in moves] == ["C", "D"]
    moved = moves[1]
    assert moved == TraceSpan(
        "handover",
        epoch.child("handover", D),
        5_500,
        6_100,
        {
            "fairlead.group": "connect",
            "fairlead.connector": "D",
            "fairlead.reason": "balance",
            "fairlead.from": "http://w1",
            "fairlead.to": "http://w2",
            "fairlead.downtime_ms": 510,
        },
        epoch,
        (
            SpanEvent("asked", 5_500),
            SpanEvent("stopped", 5_590),
            SpanEvent("revoked", 5_700),
            SpanEvent("assigned", 5_800),
            SpanEvent("running", 6_100),
        ),
    )


def test_an_epoch_whose_target_was_replaced_ends_with_that() -> None:
    group = computed(ahead_ms=0)
    group.at(5_300).join("W3")
    group.at(5_600).compute()
    context = epoch_context(CLUSTER, "connect", 2)
    (superseded,) = (each for each in spans_of(group) if each.context == context)
    assert (superseded.end_ms, superseded.attributes["fairlead.superseded"]) == (5_600, "true")


class Offsets:
    """An offset log, and the spans of it."""

    def __init__(self) -> None:
        self.fold = BatchSpans(CLUSTER, "connect")
        self.spans: list[TraceSpan] = []
        self._cost, self._end = Cost(), 0

    def commit(
        self,
        number: int,
        time_ms: int,
        cost: Cost,
        token: Token = Token(5, 1),  # noqa: B008  # a value
        *,
        has_files: bool = True,
    ) -> None:
        """Commit a batch of ten rows, of which one is skipped."""
        self._cost, count = self._cost.plus(cost), number + 1
        self.last = CommitId("a", 0, token, number)
        counts = 10 * count, 9 * count, 90 * count
        if has_files:
            commit = Commit(self.last, (), Manifest("/lake", "staging", 9, 90, 1), 10)
            self.add(Committed(commit, time_ms), time_ms)
        self.add(
            TaskProgress(self.last, count, *counts, time_ms, skipped=count, cost=self._cost),
            time_ms,
        )

    def publish(self, time_ms: int) -> None:
        self.add(Tombstone(Committed, commit_key(self.last)), time_ms)

    def add(self, record: Record, time_ms: int) -> None:
        kind, version, key, value = encode(record)
        entry = Entry(self._end, kind, version, key, time_ms, value)
        self._end += 1
        self.spans += [span for _, span in self.fold.apply(entry)]

    def settle(self, before_ms: int) -> list[tuple[str, int, int]]:
        """The names and times of all spans, once no batch waits any more."""
        self.spans += [span for _, span in self.fold.settle(before_ms)]
        return [(each.name, each.start_ms, each.end_ms) for each in self.spans]


def test_a_batch_is_told_with_its_successor_which_has_the_times_of_its_last_phases() -> None:
    log = Offsets()
    log.commit(0, 1_000, Cost(500, plan_ms=10, wait_ms=0, run_ms=200))
    assert log.fold.oldest == 1
    log.publish(1_090)
    log.commit(1, 2_000, Cost(700, 20, 30, 100, commit_ms=5, publish_ms=60))
    assert (log.fold.oldest, log.settle(0)) == (
        4,
        [
            ("batch", 790, 1_065),
            ("plan", 790, 800),
            ("run", 800, 1_000),
            ("commit", 1_000, 1_005),
            ("publish", 1_005, 1_065),
        ],
    )
    root, *phases = log.spans
    batch = CommitId("a", 0, Token(5, 1), 0)
    assert root.context == batch_context(CLUSTER, "connect", batch)
    assert root.link == epoch_context(CLUSTER, "connect", 5)
    assert {each.parent for each in phases} == {root.context}
    assert len({each.context for each in log.spans}) == 5
    assert root.attributes == {
        "fairlead.group": "connect",
        "fairlead.connector": "a",
        "fairlead.task": 0,
        "fairlead.epoch": 5,
        "fairlead.generation": 1,
        "fairlead.batch": 0,
        "fairlead.rows.read": 10,
        "fairlead.rows.written": 9,
        "fairlead.rows.skipped": 1,
        "fairlead.bytes.read": 500,
        "fairlead.bytes.written": 90,
    }


def test_a_batch_without_a_successor_ends_when_the_group_heard_that_it_was_published() -> None:
    log = Offsets()
    log.commit(0, 1_000, Cost(run_ms=200))
    assert log.settle(9_000) == [], "it is not published"
    log.publish(1_090)
    assert log.settle(1_000) == []
    told = log.settle(1_001)
    assert (told[0], told[-1]) == (("batch", 800, 1_090), ("publish", 1_000, 1_090))
    assert log.fold.oldest is None


def test_times_of_another_owner_of_the_task_are_none_of_a_batch() -> None:
    log = Offsets()
    log.commit(0, 1_000, Cost(run_ms=200))
    log.commit(1, 2_000, Cost(run_ms=100, commit_ms=7, publish_ms=8), Token(6, 1))
    assert log.settle(0) == [("batch", 800, 1_000), ("run", 800, 1_000)]


def test_a_log_without_its_beginning_is_told_from_the_second_batch_on() -> None:
    log = Offsets()
    log.commit(7, 1_000, Cost(run_ms=200), has_files=False)
    log.commit(8, 2_000, Cost(run_ms=100), has_files=False)
    assert log.settle(2_001)[0] == ("batch", 1_900, 2_000)


def test_the_last_batch_of_a_connector_that_is_deleted_is_told_and_its_counts_are_forgotten() -> (
    None
):
    log = Offsets()
    log.commit(0, 1_000, Cost(run_ms=200))
    log.add(Tombstone(TaskProgress, ("a", 0)), 1_500)
    assert (log.settle(0)[0], log.fold.oldest) == (("batch", 800, 1_000), None)
