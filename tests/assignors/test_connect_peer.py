"""The classic incremental assignor beside Connect's own class, round by round, item by item."""

from collections.abc import Iterator
from typing import Any

import pytest
from assignors.test_classic_incremental import Group
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.actors.assignors.classic.incremental import Increments, LeaderMemory, Round, RoundTime
from fairlead.actors.assignors.classic.loads import Loads
from fairlead_tests.assignors.configured import resources_of
from fairlead_tests.assignors.connect_peer import ConnectPeer, Made, connect_peer, ordered
from fairlead_tests.java_peer import NoPeer

WORKERS = ("w1", "w10", "w2", "W3", "a-1", "north", "zz", "ü")
CONNECTORS = ("alpha", "alpha-1", "c10", "c2", "Gamma", "é")
MAX_DELAYS_MS = (0, 1, 39, 40, 41, 1_000, 1_600, 64_000, 300_000, 2**31 - 1)
"""Also those at which the backoff reaches its end; see `backoff` for where Java rounds it off."""

workers = st.sampled_from(WORKERS)
items = st.tuples(st.sampled_from(CONNECTORS), st.integers(-1, 12)).map(
    lambda pair: pair[0] if pair[1] < 0 else f"{pair[0]}-{pair[1]}"
)
events = st.one_of(
    workers.map(lambda worker: {"toggle": worker}),
    workers.map(lambda worker: {"toggle": worker}),
    workers.map(lambda worker: {"turn": worker}),
    st.sampled_from([1, 39, 40, 1_600, 64_000, 300_000, -1]).map(
        lambda ms: {"advance_clock_ms": ms}
    ),
    st.sampled_from([-1, 0, 1]).map(lambda ms: {"wait_until_due": ms}),
    st.tuples(st.sampled_from(CONNECTORS), st.integers(-1, 25)).map(
        lambda pair: {"configure": pair}
    ),
    st.tuples(workers, items).map(lambda pair: {"claim": pair}),
    st.tuples(workers, items).map(lambda pair: {"drop": pair}),
    st.just({"new_leader_assignor": True}),
)
is_delivered_mostly = st.sampled_from([True, True, True, True, False])
is_mismatched_rarely = st.sampled_from([False, False, False, False, True])
told_rounds = st.lists(
    st.tuples(st.lists(events, max_size=3), is_delivered_mostly, is_mismatched_rarely),
    max_size=12,
)


class Watched(Group):
    """A group whose every round the peer goes through as well."""

    def __init__(self, peer: ConnectPeer, task_counts: dict[str, int], max_delay_ms: int) -> None:
        super().__init__({"connectors": task_counts, "workers": ["w2"]}, max_delay_ms)
        self.peer = peer
        self.leads_since: int | None = self.memory.generation
        self.made: Made | None = None

    def meet(self, event: Any) -> None:
        match event:
            case {"wait_until_due": ms}:
                self.now_ms = max(self.now_ms, (self.memory.wait.due_ms or 0) + ms)
            case {"turn": worker} if worker in self.loads:
                self.loads = {**self.loads, worker: self.loads[worker][::-1]}
            case {"drop": (worker, name)} if worker in self.loads:
                super().meet({"worker_drops": {worker: [name]}})
            case {"turn": _} | {"drop": _}:
                pass
            case {"new_leader_assignor": True}:
                super().meet(event)
                self.leads_since = self.memory.generation
            case _:
                super().meet(event)

    def rebalance(self, *, is_delivered: bool = True, is_mismatched: bool = False) -> Increments:
        told = Round(
            resources_of(self.task_counts),
            self.loads,
            self.generation + 1,
            self.memory.generation - is_mismatched,
            RoundTime(self.now_ms, self.max_delay_ms),
        )
        made = self.made = self.peer.assign(told, self.task_counts, self.leads_since)
        self.leads_since = None
        increments = super().rebalance(is_delivered=is_delivered, is_mismatched=is_mismatched)
        assert _seen(increments, self.memory) == (
            made.increments.assigned,
            _in_any_order(made.increments.revoked),
            made.increments.delay_ms,
            made.due_ms,
            made.candidates,
        )
        return increments


def _seen(increments: Increments, memory: LeaderMemory) -> tuple[object, ...]:
    return (
        ordered(increments.assigned),
        _in_any_order(increments.revoked),
        increments.delay_ms,
        memory.wait.due_ms,
        memory.wait.candidates,
    )


def _in_any_order(loads: Loads) -> Loads:
    """Return the loads sorted: in which order work is revoked changes nothing."""
    return {worker: sorted(load) for worker, load in loads.items()}


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectPeer]:
    try:
        with connect_peer(tmp_path_factory.mktemp("peer")) as found:
            yield found
    except NoPeer as reason:
        pytest.skip(str(reason))


@pytest.mark.soak
@settings(max_examples=5_000, suppress_health_check=[HealthCheck.too_slow])
@given(
    told_rounds,
    st.dictionaries(st.sampled_from(CONNECTORS), st.integers(0, 13), max_size=3),
    st.sampled_from(MAX_DELAYS_MS),
)
def test_every_round_comes_to_just_what_the_real_class_makes_of_it(
    peer: ConnectPeer,
    told: list[tuple[list[dict[str, Any]], bool, bool]],
    task_counts: dict[str, int],
    max_delay_ms: int,
) -> None:
    group = Watched(peer, task_counts, max_delay_ms)
    for happens, is_delivered, is_mismatched in told:
        for event in happens:
            group.meet(event)
        group.rebalance(is_delivered=is_delivered, is_mismatched=is_mismatched)
