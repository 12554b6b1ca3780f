"""What assigning costs: all anew, and when one member joins, or leaves, a group at rest.

The grid is that of Kafka's own assignor benchmarks: members, ten tasks for each of them, in
connectors of a hundred tasks. The peer is Connect's incremental assignor, in rounds of its own
until it is at rest: ours, and where it can be had the class itself (see `connect_peer`), of
which only the time within the JVM counts. It knows neither weights nor zones nor tags.
"""

import gc
import statistics
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.assignors.classic.incremental import LeaderMemory, Round, RoundTime
from fairlead.actors.assignors.classic.incremental import assign as classic
from fairlead.actors.assignors.classic.loads import Loads, add_loads, remove_loads
from fairlead.actors.messages.computing import MemberView, Needs, Snapshot
from fairlead.events.model import NOTHING, Resource
from fairlead.events.placement import Abilities, encode_abilities
from fairlead_tests.assignors.connect_peer import NAME as CONNECT
from fairlead_tests.assignors.connect_peer import ConnectPeer, connect_peer
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.benchmarks.groups import TASKS, member_id
from fairlead_tests.java_peer import NoPeer

SIZES = (100, 1_000, 10_000)
RUNS = 7
ROUNDS = 5
PEER_RUNS = 3
WARM_UP = 200
"""As often the peer goes through a small case first, so that its JVM has compiled it."""
CLOCK = RoundTime(0, 0)
"""Nothing waits."""
ZONES = ("a", "b", "c")
TAGS = ("gpu", "ssd", "")
PER_CONNECTOR = 100
PLAIN, WEIGHTED, TAGGED = "unweighted", "weighted+zones", "tags"


def group(members: int, case: str) -> Snapshot:
    """Return a group of so many members that have nothing yet, and all its work."""
    tasks = [
        Resource(f"c{task // PER_CONNECTOR}", task % PER_CONNECTOR)
        for task in range(members * TASKS)
    ]
    connectors = sorted({task.connector for task in tasks})
    views = [_member(number, case) for number in range(members)]
    bare = Snapshot(
        2, 1, "balanced", b"", frozenset([*tasks, *map(Resource, connectors)]),
        {each.member_id: each for each in views}, (), {}, NOTHING, 1_000_000,
        connectors=frozenset(map(Resource, connectors)),
    )  # fmt: skip
    if case == WEIGHTED:
        of = {name: 1 + index % 5 for index, name in enumerate(connectors)}
        heavy = {task: of[task.connector] for task in tasks if of[task.connector] > 1}
        return replace(bare, weights=heavy)
    if case == TAGGED:
        needs = {
            name: Needs(tags=frozenset({tag}))
            for index, name in enumerate(connectors)
            if (tag := TAGS[index % len(TAGS)])
        }
        return replace(bare, needs=needs)
    return bare


def _member(number: int, case: str) -> MemberView:
    tags = frozenset({TAGS[number % len(TAGS)]} - {""}) if case == TAGGED else frozenset[str]()
    rack = ZONES[number % len(ZONES)] if case == WEIGHTED else None
    return MemberView(
        member_id(number), 1, None, f"h{number}:8083/w1", rack, 0, 0,
        encode_abilities(Abilities(1, tags)), NOTHING, NOTHING, number, worker=f"h{number}:8083/w1",
    )  # fmt: skip


def settled(before: Snapshot) -> Snapshot:
    """Return a group once everybody has what it was assigned."""
    given = assign(before).members
    members = {
        name: replace(view, target=given[name], owned=frozenset(given[name]))
        for name, view in before.members.items()
    }
    return replace(before, members=members)


def grown(at_rest: Snapshot, case: str) -> Snapshot:
    """Return a group at rest that one more member joined."""
    number = len(at_rest.members)
    return replace(at_rest, members={**at_rest.members, member_id(number): _member(number, case)})


def shrunk(at_rest: Snapshot) -> Snapshot:
    """Return a group at rest that one of its members left."""
    gone = member_id(len(at_rest.members) // 2)
    members = {name: view for name, view in at_rest.members.items() if name != gone}
    return replace(at_rest, members=members)


def timed(step: Callable[[], object]) -> float:
    """Return how long a step takes, in milliseconds: the middle of several."""
    taken: list[float] = []
    for _ in range(RUNS):
        gc.collect()
        begun = time.perf_counter()
        step()
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


def rounds(snapshot: Snapshot) -> None:
    """Let Connect's assignor, as it is here, go from what members own to its rest."""
    loads = owned(snapshot)
    memory = LeaderMemory(assignment=NOTHING.union(*loads.values()))
    memory = replace(memory, generation=0, members=frozenset(loads))
    for generation in range(1, ROUNDS):
        step = Round(snapshot.configured, loads, generation, generation - 1, CLOCK)
        memory, made = classic(memory, step)
        loads = add_loads(remove_loads(loads, made.revoked), made.assigned)
        if not any(made.revoked.values()):
            return


def rounds_of_peer(snapshot: Snapshot, peer: ConnectPeer) -> float:
    """Return how long Connect's own class takes for the same, in milliseconds."""
    loads = owned(snapshot)
    tasks = Counter(each.connector for each in snapshot.configured if each.is_task)
    took_ms = 0.0
    for generation in range(1, ROUNDS):
        step = Round(snapshot.configured, loads, generation, generation - 1, CLOCK)
        made = peer.assign(step, tasks, 0 if generation == 1 else None)
        took_ms += made.took_ms
        loads = add_loads(remove_loads(loads, made.increments.revoked), made.increments.assigned)
        if not any(made.increments.revoked.values()):
            break
    return took_ms


def owned(snapshot: Snapshot) -> Loads:
    """Return what each member owns."""
    return {name: sorted(view.owned) for name, view in snapshot.members.items()}


def bytes_per_task(snapshot: Snapshot) -> float:
    """Return the most that assigning takes beside its input.

    What other threads of the process allocate meanwhile counts as well: the least of a few runs.
    """
    return min(peak(lambda: assign(snapshot)) for _ in range(RUNS)) / len(snapshot.configured)


def peak(step: Callable[[], object]) -> int:
    """Return how many bytes are allocated at once, at most, while a step runs."""
    gc.collect()
    tracemalloc.start()
    try:
        step()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def figures(name: str, snapshot: Snapshot, case: str, peer: ConnectPeer | None) -> None:
    """Print the figures of one case."""
    members = len(snapshot.members)
    shape = f"{members} members, {len(snapshot.configured)} resources, collector on"
    ours = timed(lambda: assign(snapshot))
    ported = timed(lambda: rounds(snapshot)) if case == PLAIN else None
    tell(
        name, ours, "ms",
        peer="" if ported is None else "classic", peer_value=ported, conditions=shape,
    )  # fmt: skip
    if case == PLAIN and peer:
        theirs = statistics.median(rounds_of_peer(snapshot, peer) for _ in range(PEER_RUNS))
        tell(f"{name}.connect", ours, "ms", peer=CONNECT, peer_value=theirs, conditions=shape)
    tell(f"{name}.memory", bytes_per_task(snapshot), "bytes/task", conditions=shape)


@contextmanager
def peer_if_any() -> Generator[ConnectPeer | None]:
    """Run Connect's own class, or say why there is none to compare with."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        peer = None
        try:
            peer = stack.enter_context(connect_peer(Path(folder)))
        except NoPeer as reason:
            print(f"without {CONNECT}: {reason}", file=sys.stderr)
        else:
            small = grown(settled(group(SIZES[0], PLAIN)), PLAIN)
            for _ in range(WARM_UP):
                rounds_of_peer(small, peer)
        yield peer


def main() -> None:
    """Print the figures of all sizes up to the one named."""
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1]
    with peer_if_any() as peer:
        for members in (size for size in SIZES if size <= largest):
            for case in (PLAIN, WEIGHTED, TAGGED):
                full = group(members, case)
                figures(f"assign.full.{case}.{members}", full, case, peer)
                at_rest = settled(full)
                figures(f"assign.joins.{case}.{members}", grown(at_rest, case), case, peer)
                figures(f"assign.leaves.{case}.{members}", shrunk(at_rest), case, peer)


if __name__ == "__main__":
    main()
