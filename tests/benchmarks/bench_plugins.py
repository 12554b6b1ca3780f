# pyright: basic
"""How long plugins of Connect take to answer, and what their JVM needs.

`python tests/benchmarks/bench_plugins.py` prints JSON lines. The peer is a real distributed worker
of Connect on the same jars and plugins, with a broker; it is up once its REST lists connectors.
Validation is that of configs with mistakes, after ten others. Without Java there is nothing to
measure.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import httpx
import psutil

from fairlead.runtime.pipeline.plugins.catalogue.host_scanner import HostScanner
from fairlead.runtime.pipeline.plugins.host import HostLaunch, PluginHost
from fairlead_tests.benchmarks.figures import median, tell, times_us
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import broker_at
from fairlead_tests.plugins.installed import (
    CONNECT_FILE,
    DEBEZIUM,
    WORKER,
    installation,
    java_here,
    plugin_path,
)
from fairlead_tests.plugins.real_worker import real_worker, topics_of

STARTS: Final = 5
COUNT: Final = 30
FIRST: Final = 10
"""How many questions are asked before any is timed."""
SECONDS: Final = 120.0
FILES: Final = {"connector.class": "FileStreamSource", "name": "lines", "batch.size": "many"}
DATABASE: Final = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "name": "rows",
    "database.port": "none",
}
CONFIGS: Final = {"FileStream": FILES, "Debezium PostgreSQL": DATABASE}


def main() -> None:
    """Measure a host, then both, asked the same."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        root = Path(folder)
        path = plugin_path(root / "plugins", CONNECT_FILE, DEBEZIUM)
        properties = {**WORKER, "plugin.path": str(path)}
        launch = HostLaunch(installation(), java_here(), root / "host.log")
        measure_scan(launch, path / "debezium-connector-postgres-3.6.1.Final")
        try:
            measure_beside(root, launch, properties)
        except NoPeer as reason:
            print(f"there is no worker to compare with: {reason}", file=sys.stderr)


def measure_scan(launch: HostLaunch, plugin: Path) -> None:
    """Scan a plugin as when it is added."""
    found = 0

    def scan() -> None:
        nonlocal found
        found = len(HostScanner(launch).scan(plugin))

    taken = median(times_us(scan, STARTS)) / 1e6
    tell("plugins: scan of Debezium", taken, "s", conditions=f"{found} classes, median of {STARTS}")


def measure_beside(root: Path, launch: HostLaunch, properties: Mapping[str, str]) -> None:
    """Start a worker and hosts, and ask both the same."""
    with broker_at(root / "broker") as broker:
        own = {**properties, **topics_of("bench"), "bootstrap.servers": broker.bootstrap}
        begun = time.perf_counter()
        with real_worker(launch.installation, own, root) as (client, pid):
            theirs = time.perf_counter() - begun
            ours = median(times_us(lambda: start(launch, properties).close(), STARTS)) / 1e6
            up = f"until it answers first, median of {STARTS}; worker: once"
            tell("plugins: start", ours, "s", peer="worker", peer_value=theirs, conditions=up)
            with closing(start(launch, properties)) as host:
                times = [psutil.Process(each).cpu_times() for each in (host.pid, pid)]
                cpu = [each.user + each.system for each in times]
                tell("plugins: CPU of a start", cpu[0], "s", peer="worker", peer_value=cpu[1])
                for name, config in CONFIGS.items():
                    compare(name, config, host, client)
                rss = [psutil.Process(each).memory_info().rss / 2**20 for each in (host.pid, pid)]
                tell("plugins: RSS", rss[0], "MiB", peer="worker", peer_value=rss[1])


def compare(name: str, config: Mapping[str, str], host: PluginHost, worker: httpx.Client) -> None:
    """Have both validate a config."""
    path = f"/connector-plugins/{config['connector.class']}/config/validate"
    ours = validating(lambda: host.ask("validate", SECONDS, config=config, ms=90_000))
    theirs = validating(lambda: worker.put(path, json=config))
    what, how = f"plugins: validation of {name}", f"median of {COUNT}"
    tell(what, ours, "ms", peer="worker over HTTP", peer_value=theirs, conditions=how)


def start(launch: HostLaunch, properties: Mapping[str, str]) -> PluginHost:
    """Return a host that has answered once."""
    host = PluginHost(launch, properties)
    host.ask("keys", SECONDS, plugin="FileStreamSource", version="latest")
    return host


def validating(ask: Callable[[], object]) -> float:
    """Return how long a question takes, in milliseconds."""
    times_us(ask, FIRST)
    return median(times_us(ask, COUNT)) / 1000


if __name__ == "__main__":
    main()
