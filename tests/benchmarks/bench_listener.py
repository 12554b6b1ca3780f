# pyright: basic
"""What the listener for Kafka's clients carries, with durable groups behind, and what it costs.

`python tests/benchmarks/bench_listener.py` prints JSON lines. The peer is a real broker in the same
run, loaded by the same client; without Java the figures stand alone. Client, listener, groups and
broker share the machine: what is told of CPU is that of the server's processes alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

from fairlead.actors.classic.bytes.consumer import (
    PartitionAssignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat
from fairlead.actors.messages.errors import Error
from fairlead.events.entries.codec import encode
from fairlead.events.model import Cause, ClassicMember, ClassicProtocol, Resource, Why
from fairlead.events.records import ClassicGroup
from fairlead_tests import TESTS
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.benchmarks.wire_load import (
    CLASSIC,
    CONSUMER,
    FETCHES,
    TOPIC,
    WARM_SECONDS,
    Load,
    Member,
    dial,
)
from fairlead_tests.consumer.driver import SETTINGS, WALL_MS, ConsumerDriver, topic
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker, broker_at
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_listener.node import ListenerNode, listener_node

CONNECTIONS: Final = 64
SECONDS: Final = 5.0
GROUPS, MEMBERS_EACH, SPEAKERS = 1_000, 10, 50
IDLE_SECONDS: Final = 10.0
CONVERTED: Final = 1_000
JOINING, PARTITIONS = 400, 2_000
LOG_MIB: Final = 64
PATIENT: Final = {"group_consumer_session_timeout_ms": 600_000}
"""So nobody's session ends while nobody speaks."""
NOWHERE: Final = "127.0.0.1:9"
GIGA: Final = 1e9
MINOR_FAULTS: Final = 7
"""Its place in /proc/PID/stat, after the name of the program."""


class Served(NamedTuple):
    """What is loaded: where, and by which processes it is served."""

    port: int
    processes: Callable[[], list[psutil.Process]]


class Measured(NamedTuple):
    """What came of it; CPU and page faults of the server by what was answered."""

    load: Load
    cpu_us: float
    faults: float
    """Nearly none, unless a loop maps memory for the frames of each call (`call_with_room`)."""


def main() -> None:
    """Measure with a broker behind and beside it, or alone."""
    converts()
    joins()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        try:
            with broker_at(root / "broker") as broker:
                compare(root, broker)
        except NoPeer as reason:
            print(f"there is no broker to compare with: {reason}", file=sys.stderr)
            with listener_node(root / "data", NOWHERE, **PATIENT) as node:
                for kind in (CLASSIC, CONSUMER):
                    tell_heartbeats(kind, measure(kind, ours(node)), None)
                holds_groups(node)


def compare(root: Path, broker: Broker) -> None:
    """Load each in turn with the same, the other idle."""
    topics = Topics(broker.bootstrap)
    topics.make(TOPIC)
    topics.write(TOPIC, [os.urandom(1 << 20 >> 2) for _ in range(LOG_MIB * 4)])
    port = int(broker.bootstrap.rpartition(":")[2])
    process = broker._process
    assert process is not None
    theirs = Served(port, lambda: [psutil.Process(process.pid)])
    with listener_node(root / "data", broker.bootstrap, **PATIENT) as node:
        for kind in (CLASSIC, CONSUMER):
            tell_heartbeats(kind, measure(kind, ours(node)), measure(kind, theirs))
        relayed = measure(FETCHES, ours(node)._replace(port=node.port + 2), connections=2)
        direct = measure(FETCHES, theirs, connections=2)
        rates = [each.load.per_second / GIGA for each in (relayed, direct)]
        conditions = "fetches of 4 MiB from the page cache, 2 connections"
        tell("relay", rates[0], "GB/s", peer="broker", peer_value=rates[1], conditions=conditions)
        holds_groups(node)


def ours(node: ListenerNode) -> Served:
    """Return a node as it is loaded: its listener and its groups serve."""

    def processes() -> list[psutil.Process]:
        titles = {each: " ".join(each.cmdline()) for each in node._children()}
        return [each for each, title in titles.items() if "kafka" in title or "shard" in title]

    return Served(node.port, processes)


def measure(kind: str, served: Served, connections: int = CONNECTIONS) -> Measured:
    """Load it by a process of its own."""
    command = [sys.executable, "-m", "fairlead_tests.benchmarks.wire_load", kind]
    words = [str(served.port), str(connections), str(SECONDS)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, *words], stdin=pipe, stdout=pipe, text=True, env=environment
    ) as ran:
        assert ran.stdin
        assert ran.stdout
        assert ran.stdout.readline() == "ready\n"
        before, faults = cpu_seconds(served), page_faults(served)
        ran.stdin.write("go\n")
        ran.stdin.flush()
        load = Load(**json.loads(ran.stdout.readline()))
        used, faults = cpu_seconds(served) - before, page_faults(served) - faults
    each = (1.0 if kind == FETCHES else SECONDS / (SECONDS + WARM_SECONDS)) / load.answered
    return Measured(load, used * each * 1e6, faults * each)


def cpu_seconds(served: Served) -> float:
    """Return what its processes have used so far."""
    times = [each.cpu_times() for each in served.processes()]
    return sum(each.user + each.system for each in times)


def page_faults(served: Served) -> int:
    """Return how many pages its processes have touched anew so far."""
    stats = (Path(f"/proc/{each.pid}/stat").read_text() for each in served.processes())
    return sum(int(each.rpartition(")")[2].split()[MINOR_FAULTS]) for each in stats)


def tell_heartbeats(kind: str, mine: Measured, peer: Measured | None) -> None:
    groups = f"{CONNECTIONS} groups" if kind == CLASSIC else "one group"
    where = f"{CONNECTIONS} connections, {groups}, one request under way on each"
    by_name: list[tuple[str, str, Callable[[Measured], float]]] = [
        ("rate", "1/s", lambda each: each.load.per_second),
        ("p50", "ms", lambda each: each.load.p50_ms),
        ("p99", "ms", lambda each: each.load.p99_ms),
        ("cpu of the server", "us each", lambda each: each.cpu_us),
        ("page faults of the server", "each", lambda each: each.faults),
    ]
    for name, unit, value in by_name:
        told: dict[str, Any] = {"conditions": where}
        if peer is not None:
            told |= {"peer": "broker", "peer_value": value(peer)}
        tell(f"{kind} heartbeats: {name}", value(mine), unit, **told)


def holds_groups(node: ListenerNode) -> None:
    """Tell what many groups cost while nobody speaks."""
    sockets = [dial(node.port) for _ in range(SPEAKERS)]
    begun = time.perf_counter()
    for number in range(0, GROUPS, SPEAKERS):
        for member in range(MEMBERS_EACH):
            speaking = [
                Member(each, f"group-{number + place}", f"member-{member}")
                for place, each in enumerate(sockets)
            ]
            for one in speaking:
                one.beat()
            for one in speaking:
                one.heed()
    taken = time.perf_counter() - begun
    for each in sockets:
        each.close()
    where = f"{GROUPS} groups of {MEMBERS_EACH} consumers"
    tell("joins", GROUPS * MEMBERS_EACH / taken, "1/s", conditions=f"{where}, {SPEAKERS} at a time")
    everything = [psutil.Process(node.process.pid), *node._children()]
    memory = sum(each.memory_full_info().pss for each in everything)
    tell("memory of all processes of the node", memory / 1e6, "MB", conditions=where)
    all_of_it = Served(node.port, lambda: everything)
    before = cpu_seconds(all_of_it)
    time.sleep(IDLE_SECONDS)
    used = cpu_seconds(all_of_it) - before
    conditions = f"{where}, nobody speaks for {IDLE_SECONDS:g} s"
    tell("idle", 100 * used / IDLE_SECONDS, "% of a core", conditions=conditions)


def converts() -> None:
    """Tell what it costs a group to be converted, with all of its members."""
    topics = {TOPIC: topic(TOPIC, CONVERTED)}
    members = tuple(map(classic_member, range(CONVERTED)))
    generation = ClassicGroup(
        1, Cause(Why.MEMBER_JOINED, "m0"), WALL_MS, "consumer", "range", "m0", members, True
    )
    driver = ConsumerDriver(topics=topics)
    driver.control.append([encode(generation)], WALL_MS)
    driver.open()
    used, written = time.process_time(), len(driver.control.entries)
    joined = driver.asks(
        ConsumerGroupHeartbeat(
            "g",
            "new",
            0,
            rebalance_timeout_ms=20_000,
            subscribed_topic_names=(TOPIC,),
            topic_partitions={},
        )
    )
    used = time.process_time() - used
    assert joined.error is Error.NONE
    assert len(driver.group.members) == CONVERTED + 1
    records = len(driver.control.entries) - written
    conditions = (
        f"a classic group of {CONVERTED} with a partition each, {records} records in one batch"
    )
    tell("conversion", used, "CPU s of the coordinator", conditions=conditions)


def joins() -> None:
    """Tell what it costs a group that many consumers join, one after the other."""
    topics = {TOPIC: topic(TOPIC, PARTITIONS)}
    driver = ConsumerDriver(topics=topics, settings=replace(SETTINGS, assignment_interval_ms=1_000))
    used = time.process_time()
    for number in range(JOINING):
        driver.joins(f"m{number}", TOPIC)
        driver.now_ms += 1
    used = time.process_time() - used
    assert len(driver.group.members) == JOINING
    conditions = f"{JOINING} consumers, {PARTITIONS} partitions, a target each second at most"
    tell("joins of a large group", used, "CPU s of the coordinator", conditions=conditions)


def classic_member(number: int) -> ClassicMember:
    """Return one that has the partition of its number."""
    said = encode_subscription(Subscription([TOPIC]))
    has = encode_assignment(PartitionAssignment([Resource(TOPIC, number)]))
    offered = (ClassicProtocol("range", said),)
    return ClassicMember(f"m{number}", 45_000, 60_000, offered, client_id="c", assignment=has)


if __name__ == "__main__":
    main()
