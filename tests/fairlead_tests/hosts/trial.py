# pyright: basic
"""Three hosts with Spark workers on two, one store, faults one after the other, and the verdict."""

import random
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from fairlead_tests.cluster.node import eventually
from fairlead_tests.hosts.faults import FAULTS, Hosts, Place, wait_until_well
from fairlead_tests.hosts.network import network
from fairlead_tests.hosts.stores import STORES
from fairlead_tests.hosts.traffic import Commands, Rows, traffic
from fairlead_tests.postgres_server import PostgresServer
from fairlead_tests.stores.nodes import Cluster, ClusterNode

WORKERS: Mapping[str, int] = {"n1": 0, "n2": 1, "n3": 1}
PORT = 9192
PATIENCE_S = 300.0
_FENCED = re.compile(r".* stops everything: .*")


@dataclass
class Trial:
    """One cluster under faults."""

    hosts: Hosts
    rows: Rows
    commands: Commands
    calm: Callable[[], None]
    """Ends the rows and commands that are under way."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """From each fault to the next command that is acknowledged at any node."""
    stopped: list[str] = field(default_factory=list)
    """What living workers said that stopped all their tasks."""
    fences: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """What the workers of each node said so when all was well last."""

    def suffer(self, *names: str) -> None:
        """Suffer faults at the same time; later ones may come before all is well again."""
        moment = time.monotonic()
        with ThreadPoolExecutor(len(names)) as pool:
            for each in [pool.submit(FAULTS[name], self.hosts) for name in names]:
                each.result()
        eventually(lambda: self.commands.seconds_after(moment) is not None, f"after {names}")
        took = self.commands.seconds_after(moment)
        assert took is not None
        self.seconds.setdefault("+".join(sorted(names)), []).append(took)
        print(f"{time.strftime('%X')} {'+'.join(names)}: {took:.2f} s", flush=True)

    def recover(self) -> None:
        """Wait until all is well; note what has stopped all tasks where no fault has."""
        wait_until_well(self.hosts)
        for place in self.hosts.places:
            said, self.fences[place.node.name] = self.fences[place.node.name], fences_at(place.node)
            if place not in self.hosts.hurt:
                new = self.fences[place.node.name][len(said) :]
                self.stopped += [f"{place.node.name}: {each}" for each in new]
        self.hosts.hurt.clear()

    def verdict(self) -> Mapping[str, object]:
        """End the traffic, and return what is wrong after all: nothing in a sound cluster."""
        self.recover()
        self.calm()
        nodes = [each.node for each in self.hosts.places]
        eventually(lambda: not self.rows.missing(), f"all rows: {self.rows.missing()}", PATIENCE_S)
        eventually(lambda: not different(nodes), f"equal copies: {different(nodes)}")
        with nodes[0].log() as log:
            missing = self.commands.missing_in(log)
        found = {
            "rows": self.rows.missing(),
            "commands": missing,
            "copies": different(nodes),
            "stopped": self.stopped,
            "verify": [text for each in nodes if (text := flaws_of(each))],
        }
        return {name: each for name, each in found.items() if each}


def fences_at(node: ClusterNode) -> list[str]:
    """Return what workers of a node have said that stopped all their tasks."""
    paths = node.folder.glob("logs/actors.log")
    return [each for path in paths for each in _FENCED.findall(path.read_text())]


def different(nodes: Iterable[ClusterNode]) -> list[str]:
    """Return the pairs of copies that are not equal, entry by entry where both have them."""
    found: list[str] = []
    for name in ("control", "offsets"):
        for one, other in combinations(nodes, 2):
            with one.log(name) as first, other.log(name) as second:
                low = max(first.low(), second.low())
                pair = [
                    [each for part in log.tail(low) for each in part] for log in (first, second)
                ]
                if pair[0] != pair[1]:
                    found.append(f"{name} of {one.name} and {other.name}")
    return found


def flaws_of(node: ClusterNode) -> str:
    """Return what `log verify` finds in a node's copies; "" if they are sound."""
    words = [sys.executable, "-m", "fairlead.runtime", "log", "verify", "--data-dir"]
    ran = subprocess.run([*words, str(node.folder)], capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else f"{node.name}: {ran.stdout}{ran.stderr}"


@contextmanager
def trial(folder: Path, store: str, server: PostgresServer, seed: int) -> Generator[Trial]:
    """Run a cluster on hosts of its own; raises `NoNetworkError`, and what the store raises.

    The server, which has the rows, listens everywhere.
    """
    with ExitStack() as stack:
        hosts = stack.enter_context(network(len(WORKERS)))
        engine = stack.enter_context(STORES[store](folder))
        addresses = [each.address for each in hosts]
        cluster = Cluster(folder, engine.settings, engine.environ, addresses)
        places: list[Place] = []
        for host, (name, workers) in zip(hosts, WORKERS.items(), strict=True):
            settings = {
                "kafka_listeners": f"SSL://{host.address}:{PORT}",
                "workers": workers,
                "engine": "spark" if workers else "noop",
                "spark.heap": "512m",
                "engine.kind": "shared" if workers else "auto",
                "scheduled.rebalance.max.delay.ms": 0,
            }
            node = replace(cluster.node(name, settings), prefix=host.prefix)
            places.append(Place(host, node))
            stack.callback(node.kill)
            node.start()
        for place in places:
            place.node.wait()
        area = Hosts(places, engine, server, random.Random(seed))
        wait_until_well(area)
        rows = Rows(folder, server)
        rows.prepare()
        nodes = [each.node for each in places]
        for name, config in rows.configs().items():
            answer = nodes[1].rest("PUT", f"/connectors/{name}/config", json=config)
            assert answer.is_success, answer.text
        commands = Commands(nodes)
        under_way = stack.enter_context(ExitStack())
        under_way.enter_context(traffic(rows, commands, seed))
        eventually(rows.arrive, "rows arrive from both")
        yield Trial(area, rows, commands, under_way.close)
