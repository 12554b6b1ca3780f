"""Connectors of a real worker of Connect are imported under load, and returned.

A line is lost or there twice if it is not in the sink's file once. The import is killed at each
step, and the same command goes on.
"""
# pyright: basic

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from fairlead.runtime.interfaces.cli.output.printing import UNREACHABLE
from fairlead.runtime.pipeline.plugins.ivy import Coordinates, Ivy, NotFetched
from fairlead.runtime.pipeline.plugins.setup import Installation
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.beside import OF_BOTH
from fairlead_tests.plugins.connect_node import ONE_BROKER, ConnectNode, connect_node, until
from fairlead_tests.plugins.importing import SECRET, SECRET_KEY, BusyPairs, ImportCommand
from fairlead_tests.plugins.installed import CONNECT_FILE, installation, java_here, plugin_path
from fairlead_tests.plugins.real_worker import real_worker, topics_of

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]
FORWARD = (
    "stopping there",
    "stopped there",
    "being created here",
    "created here",
    "offsets are here",
    "starting here",
)
AS_NODE = {"group.id": "connect", "offset.storage.topic": "connect-offsets"}
OLD = "3.4.1"
SEED = 7
BACK = ("stopping here", "ready to start there")


@contextmanager
def connect_beside(
    broker: Broker,
    folder: Path,
    own: Mapping[str, str],
    workers: int = 1,
    connect_file: str = CONNECT_FILE,
    runs_on: Installation | None = None,
) -> Iterator[tuple[httpx.Client, Path]]:
    """Run workers of Connect on a broker; yield a client of one, and the file of its properties."""
    properties = {
        **ONE_BROKER,
        **topics_of(folder.name),
        **OF_BOTH,
        "bootstrap.servers": broker.bootstrap,
        "plugin.path": str(plugin_path(folder / "plugins", connect_file)),
        "plugin.discovery": "service_load",
        "group.id": folder.name,
        **own,
    }
    with ExitStack() as stack:
        for number in range(workers):
            place = folder / f"connect-{number}"
            place.mkdir()
            connect, _ = stack.enter_context(
                real_worker(runs_on or installation(), properties, place)
            )
        yield connect, place / "worker.properties"


def connect_of(version: str, folder: Path) -> Installation:
    """Return Connect of a version, or skip the test where it cannot be had."""
    runtime = Coordinates.parse(f"org.apache.kafka:connect-runtime:{version}")
    try:
        jars = Ivy(java_here()).fetch([runtime], is_whole=True)
    except NotFetched as error:
        pytest.skip(str(error))
    (folder / "connect").mkdir(parents=True)
    for jar in jars:
        (folder / "connect" / jar.name).symlink_to(jar)
    return Installation(folder, version)


def states(pairs: BusyPairs, state: str) -> dict[str, str]:
    return dict.fromkeys(pairs.connectors, state)


@pytest.mark.soak  # each run imports at every step, without Kafka: cli/test_import_steps.py
def test_connectors_move_to_the_node_and_back_and_no_line_is_lost_or_doubled(
    node: ConnectNode, broker: Broker, tmp_path: Path
) -> None:
    with connect_beside(broker, tmp_path, AS_NODE) as (connect, properties):
        pairs, command = BusyPairs(connect, tmp_path, ["moved"]), ImportCommand(node, properties)
        with pairs.running():
            command.run("--yes", until_line="starting here")
            command.run("--yes")
            assert pairs.states(node.rest) == states(pairs, "RUNNING")
            assert pairs.states(connect) == states(pairs, "STOPPED")
            config = node.rest.get("/connectors/moved-source/config").json()
            assert config[SECRET_KEY] == "********"
            assert SECRET not in command.record.read_text()
            pairs.flow()
            command.run("--back", "--yes")
            assert pairs.states(node.rest) == {}
            pairs.verify()
            assert pairs.states(connect) == states(pairs, "RUNNING")


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("own", [AS_NODE, {}], ids=["same topic", "another topic"])
def test_twelve_of_two_workers_move_and_return_with_the_import_killed_at_each_step(
    own: dict[str, str], node: ConnectNode, broker: Broker, tmp_path: Path
) -> None:
    dice = random.Random(SEED)
    names = [f"pair-{number}-{len(own)}" for number in range(6)]
    with connect_beside(broker, tmp_path, own, 2) as (connect, properties):
        pairs, command = BusyPairs(connect, tmp_path, names), ImportCommand(node, properties)
        with pairs.running():
            for number, _ in enumerate(pairs.connectors):
                command.run("--yes", until_line=FORWARD[number % len(FORWARD)])
                command.run_for(dice.uniform(0.3, 3), "--yes")
            command.run("--yes")
            assert pairs.states(node.rest) == states(pairs, "RUNNING")
            assert pairs.states(connect) == states(pairs, "STOPPED")
            pairs.flow()
            for number in range(6):
                command.run("--back", "--yes", until_line=BACK[number % len(BACK)])
                command.run_for(dice.uniform(0.3, 3), "--back", "--yes")
            command.run("--back", "--yes")
            assert pairs.states(node.rest) == {}
            pairs.flow()
            assert pairs.states(connect) == states(pairs, "RUNNING")
            pairs.verify()


@pytest.mark.soak
def test_what_rests_there_rests_here_and_what_has_nothing_to_read_is_returned(
    node: ConnectNode, broker: Broker, tmp_path: Path
) -> None:
    with connect_beside(broker, tmp_path, {}) as (connect, properties):
        pairs = BusyPairs(connect, tmp_path, ["at-rest"])
        source, sink = pairs.connectors
        command = ImportCommand(node, properties)
        with pairs.running():
            pairs.verify()
            connect.put(f"/connectors/{source}/pause")
            connect.put(f"/connectors/{sink}/stop")
            rest = {source: "PAUSED", sink: "STOPPED"}
            until(lambda: pairs.states(connect) == rest, "they rest")
            command.run("--yes")
            assert pairs.states(node.rest) == rest
            command.run("--yes", "--back")
            until(lambda: pairs.states(connect) == rest, "they rest again")
            assert pairs.states(node.rest) == {}
            connect.put(f"/connectors/{source}/resume")
            until(lambda: pairs.states(connect)[source] == "RUNNING", "it runs again")
            output = command.run("--yes", source, "--timeout", "8s", code=1)
            assert f"{source} was returned: it has run here for 8 s and committed no" in output
            assert (pairs.states(connect)[source], pairs.states(node.rest)) == ("RUNNING", {})
            command.run("--yes", source, "--timeout", "8s", "--accept-idle")
            assert pairs.states(node.rest) == {source: "RUNNING"}
            command.run("--yes", "--back")


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_connectors_of_a_connect_that_stops_none_are_deleted_there_and_made_again(
    node: ConnectNode, broker: Broker, tmp_path: Path
) -> None:
    old = connect_of(OLD, tmp_path / "old")
    file = f"org.apache.kafka:connect-file:{OLD}"
    own = {**AS_NODE, "group.id": "older"}
    with connect_beside(broker, tmp_path, own, 1, file, old) as (connect, properties):
        pairs, command = BusyPairs(connect, tmp_path, ["old"]), ImportCommand(node, properties)
        with pairs.running():
            output = command.run("-o", "json")
            assert "can neither stop a connector nor show its offsets" in output
            deletes = ("--yes", "--delete-there")
            for step in ("stopping there", "stopped there", "starting here"):
                command.run(*deletes, until_line=step)
            command.run(*deletes)
            assert pairs.states(node.rest) == states(pairs, "RUNNING")
            assert pairs.states(connect) == {}
            pairs.flow()
            for step in BACK:
                command.run("--back", "--yes", until_line=step)
            command.run("--back", "--yes")
            assert pairs.states(node.rest) == {}
            pairs.flow()
            assert pairs.states(connect) == states(pairs, "RUNNING")
            assert [*tmp_path.rglob("*.configs/*")] == []
            pairs.verify()


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_an_import_goes_on_after_the_node_was_killed(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    plugins = plugin_path(tmp_path / "of-node", CONNECT_FILE)
    settings = {"exactly.once.source.support": "enabled", "scheduled.rebalance.max.delay.ms": 0}
    with (
        connect_node(tmp_path / "node", broker.bootstrap, plugins, settings) as node,
        connect_beside(broker, tmp_path, AS_NODE) as (connect, properties),
    ):
        pairs, command = BusyPairs(connect, tmp_path, ["crash"]), ImportCommand(node, properties)
        with pairs.running():
            for step in ("created here", "starting here"):
                command.run("--yes", until_line=step)
                node.crash()
                told = command.run("--yes", code=UNREACHABLE)
                assert "no cluster answers" in told
                node.up()
            command.run("--yes")
            pairs.flow()
            command.run("--back", "--yes", until_line="stopping here")
            node.crash()
            node.up()
            command.run("--back", "--yes")
            pairs.flow()
            pairs.finish()
            (pair,) = pairs.pairs
            assert topics.values(pair.topic) == pairs.lines, "each line is in the topic once"


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", ["3.5.2", "3.9.1"])
def test_connectors_of_former_versions_move_and_return(
    version: str, node: ConnectNode, broker: Broker, tmp_path: Path
) -> None:
    former = connect_of(version, tmp_path / "former")
    file = f"org.apache.kafka:connect-file:{version}"
    with connect_beside(broker, tmp_path, AS_NODE, 1, file, former) as (connect, properties):
        pairs, command = BusyPairs(connect, tmp_path, [version]), ImportCommand(node, properties)
        with pairs.running():
            command.run("--yes")
            assert pairs.states(node.rest) == states(pairs, "RUNNING")
            pairs.flow()
            command.run("--back", "--yes")
            pairs.flow()
            assert pairs.states(connect) == states(pairs, "RUNNING")
            pairs.verify()
