"""One JVM for all workers, one each, or a server of Spark Connect: each row comes once.

Whatever happens to any process.
"""

import os
import random
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from fairlead_tests.chaos.crew import GROUP, crew
from fairlead_tests.chaos.faults import RandomFaults, csv_and_json
from fairlead_tests.chaos.line import flowing
from fairlead_tests.spark_engine.connect_server import ConnectServerProcess

# Each run sees workers that share a JVM: test_matrix.py.
pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(0)]

SHARED = {"engine.kind": "shared", "spark.master": "local[2]"}
EMBEDDED = {"engine.kind": "embedded", "spark.master": "local[1]"}
EVENTS = ("kill worker", "kill JVM", "freeze")
PATIENCE_S = 400.0
"""Two JVMs may start at once here, on a machine that has other work: that takes minutes."""


class PatientFaults(RandomFaults):
    """Events on such a machine."""

    longest_s = PATIENCE_S


@pytest.mark.parametrize(
    ("settings", "events"),
    [(SHARED, (*EVENTS, "kill owner")), (EMBEDDED, EVENTS)],
    ids=["shared", "embedded"],
)
def test_no_row_is_lost_or_doubled_wherever_jvms_are(
    tmp_path: Path, settings: Mapping[str, str], events: tuple[str, ...]
) -> None:
    run_faults(tmp_path, 7, settings, list(events))


def test_no_row_is_lost_or_doubled_on_a_server_of_spark_connect(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    server = ConnectServerProcess(tmp_path / "server")
    server.start()
    try:
        events = ["kill worker", "kill server", "freeze", "kill server"]
        run_faults(tmp_path, 7, on_server(server, tmp_path), events, server=server)
    finally:
        server.kill()


@pytest.mark.parametrize("settings", [SHARED, EMBEDDED], ids=["shared", "embedded"])
def test_the_same_for_as_long_as_one_likes(tmp_path: Path, settings: Mapping[str, str]) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    run_faults(tmp_path, seed, settings, [], float(os.environ.get("CHAOS_SECONDS", "600")))


def on_server(server: ConnectServerProcess, folder: Path) -> Mapping[str, str]:
    """Return the settings of a node whose workers have their sessions there."""
    return {"spark.master": server.master, "paths.allow": str(folder)}


def run_faults(
    folder: Path,
    seed: int,
    settings: Mapping[str, str],
    events: list[str],
    seconds: float = 0,
    server: ConnectServerProcess | None = None,
) -> None:
    """Run two lines through these events, and more of them until time is up."""
    lines = csv_and_json(folder, seed)
    with (
        crew(folder / "node", settings=settings, patience_s=PATIENCE_S) as node,
        flowing(node, *lines),
    ):

        def kill_owner() -> str:
            """The process that owns the JVM is killed, and the JVM with it."""
            jvm = node.jvm("w1")
            owner = node.hit(f"engine {GROUP}", signal.SIGKILL)
            node.eventually(lambda: node.jvm("w1") != jvm, "there is another JVM")
            return str(owner)

        def kill_server(server: ConnectServerProcess) -> str:
            """The server of all sessions is killed, and another one started."""
            statuses = node.look().statuses
            before = {each: status for each, status in statuses.items() if each.is_task}
            server.kill()
            server.start()
            told = lambda: any(map(node.has_told_more, before, before.values()))  # noqa: E731
            node.eventually(told, "a task has noticed")
            return f"at {server.port}"

        faults = PatientFaults(node, lines, random.Random(seed))
        if settings is SHARED:
            faults.events = {**faults.events, "kill owner": kill_owner}
        if server is not None:
            faults.events = {**faults.events, "kill server": partial(kill_server, server)}
            del faults.events["kill JVM"]
        node.runs(*(each.name for each in lines))
        faults.inject_all(events, seconds)
        for each in lines:
            each.finish(node)
        if server is not None:
            server.kill()  # or it would be taken for a process that the node has left
        print(f"seed {seed}: {faults.told()}")
    assert [each.wrong() for each in lines] == [[], []]
