# pyright: basic
"""Nodes of one cluster: heartbeats, commits from other hosts, copies, a killed group, rest.

    python tests/benchmarks/bench_cluster.py [postgres|kafka ...]

Three nodes of this machine share one store, by default each in turn: PostgreSQL, which flushes each
commit, and three brokers. Prints one JSON line per figure. CPU is that of the nodes' processes: it
tells more than the clock while the machine does other work.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Container, Generator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Final

import psutil
import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from fairlead.events.log.reader import LogReader
from fairlead_tests import TESTS
from fairlead_tests.actor_system import title_of
from fairlead_tests.benchmarks.figures import percentile, tell
from fairlead_tests.benchmarks.node_member import NodeMember
from fairlead_tests.benchmarks.wire_load import WARM_SECONDS, Load
from fairlead_tests.cluster.node import eventually
from fairlead_tests.kafka.trio import trio_at
from fairlead_tests.postgres_server import PASSWORD, started
from fairlead_tests.stores.nodes import Cluster, ClusterNode

CONNECTIONS: Final = 64
SECONDS: Final = 5.0
COMMITS: Final = 300
LOOK_SECONDS: Final = 0.0002
KILLS: Final = 10
PAUSE_SECONDS: Final = 3.0
"""Between two deaths of a process: those in a row are followed by longer and longer pauses."""
CONNECTORS: Final = 100
IDLE_SECONDS: Final = 20.0
_SEGMENTS: Final = re.compile(r"\bdata_segs_out:(\d+)")
CONFIG: Final = {
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "source.path": "/nowhere/in",
    "sink.format": "parquet",
    "sink.path": "/nowhere/out",
    "tasks.max": "1",
}


def main(*kinds: str) -> None:
    """Measure with each store in turn."""
    for kind in kinds or STORES:
        with (
            tempfile.TemporaryDirectory() as scratch,
            STORES[kind](Path(scratch)) as (cluster, asked),
        ):
            with cluster.nodes("n1", "n2", "n3", workers=0) as nodes:
                owner, others = owner_of(nodes)
                heartbeats(kind, cluster, owner)
                commits(kind, others[0])
                copies(kind, owner, others[0])
                kills(kind, owner, others[0])
            with cluster.nodes("n1", "n2", "n3", workers=1) as nodes:
                rests(kind, nodes, asked)


def owner_of(nodes: list[ClusterNode]) -> tuple[ClusterNode, list[ClusterNode]]:
    """Return the node that owns the group, and the others."""
    eventually(lambda: len({each.owner for each in nodes} - {""}) == 1, "one node owns the group")
    (owner,) = (each for each in nodes if each.owner == each.name)
    return owner, [each for each in nodes if each is not owner]


def heartbeats(kind: str, cluster: Cluster, owner: ClusterNode) -> None:
    """Tell how many full heartbeats of other hosts' workers are answered, over TLS."""
    port = str(owner.settings["kafka.listeners"]).rpartition(":")[2]
    words = [str(cluster.folder), port, str(CONNECTIONS), str(SECONDS)]
    command = [sys.executable, "-m", "fairlead_tests.benchmarks.node_load", *words]
    environ, pipe = {**os.environ, "PYTHONPATH": str(TESTS)}, subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ) as ran:
        assert ran.stdin
        assert ran.stdout
        assert ran.stdout.readline() == "ready\n"
        before = cpu_seconds(owner)
        ran.stdin.write("go\n")
        ran.stdin.flush()
        load = Load(**json.loads(ran.stdout.readline()))
        used = cpu_seconds(owner) - before
    each = SECONDS / (SECONDS + WARM_SECONDS) / load.answered
    where = f"full heartbeats over TLS, {CONNECTIONS} connections"
    tell(f"{kind}: heartbeats", load.per_second, "1/s", conditions=where)
    tell(f"{kind}: heartbeats p99", load.p99_ms, "ms", conditions=where)
    tell(f"{kind}: heartbeats, CPU of the owner", used * each * 1e6, "us each", conditions=where)


def commits(kind: str, node: ClusterNode) -> None:
    """Tell how long a worker on another host than the owner's waits for a commit."""
    put(node, "a")
    with closing(NodeMember(node)) as member:
        member.works_on("a")
        taken = sorted(member.commit("a") for _ in range(COMMITS))
    where = "one at a time, by a worker on another host than the owner's"
    for share in (0.1, 0.5, 0.99):
        name = f"{kind}: commit p{share * 100:.0f}"
        tell(name, percentile(taken, share) * 1e3, "ms", conditions=where)


def copies(kind: str, owner: ClusterNode, other: ClusterNode) -> None:
    """Tell how long after the owner's answer to a commit another node's copy has it."""
    put(owner, "b")
    with closing(NodeMember(owner, "behind")) as member, other.log("offsets") as copy:
        member.works_on("b")
        with owner.log("offsets") as log:
            taken = sorted(seconds_behind(member, log, copy) for _ in range(COMMITS))
    where = "from the answer to a commit at the owner until the copy of another node has it"
    for share in (0.5, 0.99):
        name = f"{kind}: copy behind p{share * 100:.0f}"
        tell(name, percentile(taken, share) * 1e3, "ms", conditions=where)


def seconds_behind(member: NodeMember, log: LogReader, copy: LogReader) -> float:
    """Commit, and return how long the copy needs for what the owner's log has then."""
    member.commit("b")
    begun, end = time.perf_counter(), log.end()
    while copy.end() < end:
        time.sleep(LOOK_SECONDS)
    return time.perf_counter() - begun


def kills(kind: str, owner: ClusterNode, other: ClusterNode) -> None:
    """Tell how long after the death of the owner's process a command is carried out."""
    taken: list[float] = []
    for number in range(KILLS):
        eventually(lambda: has_group(owner), "it runs")
        time.sleep(PAUSE_SECONDS)
        owner.hit("group connect", signal.SIGKILL)
        begun = time.monotonic()
        put(other, f"killed-{number}")
        taken.append(time.monotonic() - begun)
    where = f"the owner's process is killed {KILLS} times, its host lives"
    tell(f"{kind}: killed, next command p50", percentile(sorted(taken), 0.5), "s", conditions=where)
    tell(f"{kind}: killed, next command at most", max(taken), "s", conditions=where)


def has_group(node: ClusterNode) -> bool:
    return "fairlead: group connect" in map(title_of, node.processes())


def rests(kind: str, nodes: list[ClusterNode], asked: Callable[[], float]) -> None:
    """Tell what nodes and their store do while nothing happens."""
    for number in range(CONNECTORS):
        put(nodes[0], f"c{number}")
    eventually(lambda: is_quiet(nodes[0]), "all connectors run")
    before, requests = [cpu_seconds(each) for each in nodes], asked()
    time.sleep(IDLE_SECONDS)
    requests = (asked() - requests) / IDLE_SECONDS / len(nodes)
    used = [cpu_seconds(each) - at for each, at in zip(nodes, before, strict=True)]
    where = f"{len(nodes)} nodes, {CONNECTORS} connectors, nothing to do"
    tell(f"{kind}: rest", 100 * max(used) / IDLE_SECONDS, "% of a core", conditions=where)
    tell(f"{kind}: rest, asked of the store", requests, "1/s for a node", conditions=where)


def is_quiet(node: ClusterNode) -> bool:
    statuses = node.group().statuses.values()
    return sum(each.state.name == "RUNNING" for each in statuses) >= 2 * CONNECTORS


def put(node: ClusterNode, name: str) -> None:
    """Create a connector; who is told that nobody answers repeats the command."""
    while not (answer := node.rest("PUT", f"/connectors/{name}/config", json=CONFIG)).is_success:
        assert answer.status_code == 503, answer.text


def cpu_seconds(node: ClusterNode) -> float:
    """Return what a node's processes have used so far."""
    times = [each.cpu_times() for each in node.processes() if is_of_node(each)]
    return sum(each.user + each.system for each in times)


def is_of_node(process: psutil.Process) -> bool:
    return process.status() != psutil.STATUS_ZOMBIE


Prepared = tuple[Cluster, Callable[[], float]]


@contextmanager
def in_postgres(folder: Path) -> Generator[Prepared]:
    """Yield a cluster with a server, and how many transactions it has had."""
    passfile = folder / "passfile"
    passfile.touch(mode=0o600)
    passfile.write_text(f"*:*:*:*:{PASSWORD}\n")
    with started(fsync="on", full_page_writes="on") as server:
        url = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"

        def asked() -> float:
            with psycopg.connect(url, password=PASSWORD) as line:
                query = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"
                (row,) = line.execute(query).fetchall()
            return float(row[0])

        store = {"log.store": "postgres", "log.store.url": url, "log.store.unsafe": "true"}
        yield Cluster(folder, store, {"PGPASSFILE": str(passfile)}), asked


@contextmanager
def in_kafka(folder: Path) -> Generator[Prepared]:
    """Yield a cluster with three brokers, and how many requests nodes have sent them so far."""
    (folder / "brokers").mkdir()
    with trio_at(folder / "brokers") as trio:
        store = {"log.store": "kafka", "log.store.bootstrap.servers": trio.bootstrap}
        ports = {each.rpartition(":")[2] for each in trio.bootstrap.split(",")}
        yield Cluster(folder, store), lambda: segments_to(ports)


def segments_to(ports: Container[str]) -> float:
    """Return how many segments with data open connections of nodes have sent to these ports.

    A small request is one. Brokers, which speak with each other at the same ports, are left out.
    """
    listed = subprocess.run(["ss", "-tinpHO"], capture_output=True, text=True, check=True).stdout
    return sum(
        float(found[1])
        for line in listed.splitlines()
        if line.split()[4].rpartition(":")[2] in ports and 'users:(("java"' not in line
        if (found := _SEGMENTS.search(line))
    )


STORES: Mapping[str, Callable[[Path], AbstractContextManager[Prepared]]] = {
    "postgres": in_postgres,
    "kafka": in_kafka,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
