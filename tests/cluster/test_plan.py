"""What a plan says is what then happens, on real processes and through the real REST."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.actors.messages.orders import Cordon
from fairlead.runtime.interfaces.cli.main import main
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.cluster.remains import Starts
from fairlead_tests.local_assignors.packages import install_example
from fairlead_tests.rest.process import running

pytestmark = pytest.mark.cluster

EXAMPLE = Path(__file__).parents[2] / "deploy" / "together"
CONFIG = {
    "connector.class": "SparkPipeline",
    "source.path": "/in",
    "source.format": "csv",
    "sink.path": "/out",
    "sink.format": "parquet",
}


@dataclass
class Planner:
    """A node, and the REST interface over it."""

    node: Node
    rest: httpx.Client

    def homes(self) -> dict[str, str]:
        """The name of the worker that has each resource."""
        return {each: worker for worker, held in self.node.held().items() for each in held}

    def plan(self, **proposed: Any) -> dict[str, Any]:
        told = self.rest.post(f"/groups/{GROUP}/plan", json=proposed)
        assert told.status_code == 200, told.text
        found: dict[str, Any] = told.json()
        assert found["settled"], "the group is idle"
        return found

    def put(self, connector: str, tasks: int) -> None:
        """Create or scale a connector, and wait until it has that many tasks."""
        config = {**CONFIG, "tasks.max": str(tasks)}
        self.rest.put(f"/connectors/{connector}/config", json=config).raise_for_status()
        names = {f"{connector}-{number}" for number in range(tasks)} | {connector}

        def is_split() -> bool:
            configured = self.node.group().configured
            return {str(each) for each in configured if each.connector == connector} == names

        eventually(is_split, f"{connector} has {tasks} tasks")

    def holds_true(self, do: Callable[[], None], workers: str, **proposed: Any) -> None:
        """Plan a change, make it, and hold what came of it against what was said."""
        before = self.homes()
        plan = self.plan(**proposed)
        do()
        self.node.settles(*workers.split())
        eventually(lambda: not self.node.group().schedule.again_at_ms, "all moves are made")
        self.node.settles(*workers.split())
        came = sorted(set(self.node.held()) - {name_of(each) for each in plan["workers"]})
        said = dict(before)
        said |= {each["id"]: name_of(each["taker"]) for each in plan["moves"] + plan["starts"]}
        for each in plan["stops"]:
            del said[each["id"]]
        names = {f"new-{number}": name for number, name in enumerate(came, 1)}
        assert {each: names.get(name, name) for each, name in said.items()} == self.homes()


def name_of(worker: dict[str, str]) -> str:
    return worker["worker"].rpartition("/")[2]


@contextmanager
def planner(node: Node) -> Generator[Planner]:
    with running(node.data_dir) as (_, rest):
        yield Planner(node, rest)


def test_what_a_plan_says_is_what_then_happens(start_node: Starts) -> None:
    node = start_node(workers=["w1", "w2"])
    with planner(node) as group:
        group.put("numbers", 11)
        node.settles("w1", "w2")
        group.holds_true(lambda: node.add("w3"), "w1 w2 w3", add_workers=1)
        group.holds_true(
            lambda: group.put("letters", 5),
            "w1 w2 w3",
            connectors=[{"name": "letters", "config": {**CONFIG, "tasks.max": 5}}],
        )
        group.holds_true(lambda: group.put("numbers", 6), "w1 w2 w3", scale={"numbers": 6})
        group.holds_true(
            lambda: node.command(Cordon(GROUP, "w1", drain=True)), "w1 w2 w3", drain=["w1"]
        )
        group.holds_true(lambda: group.put("numbers", 9), "w1 w2 w3", scale={"numbers": 9})
        group.holds_true(lambda: node.remove("w2"), "w1 w3", remove_workers=["w2"])

        def two_come() -> None:
            for name in ("w2", "w4"):
                node.add(name)
                node.settles(*{*node.held(), name})

        group.holds_true(two_come, "w1 w2 w3 w4", add_workers=2)


def test_the_command_tells_the_plan_of_a_cluster_that_runs(
    start_node: Starts, capsys: pytest.CaptureFixture[str]
) -> None:
    node = start_node(workers=["w1", "w2"])
    with planner(node) as group:
        group.put("numbers", 6)
        node.settles("w1", "w2")
        assert main(["plan", "--add-worker", "1", "--url", str(group.rest.base_url)]) == 0
    assert "2 of 7 resources move, 5 stay" in capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("name", ["deferred", "eager", "incremental", "simple-cooperative"])
def test_every_assignor_of_fairlead_can_be_planned_with(start_node: Starts, name: str) -> None:
    pace = {"moves.per.round": "2", "moves.interval.ms": "1000"}
    node = start_node(workers=["w1", "w2"], assignors=[name], assignor_conf=pace)
    with planner(node) as group:
        group.put("numbers", 11)
        node.settles("w1", "w2")
        assert group.plan(drain=["w1"])["assignor"] == name
        group.holds_true(lambda: node.add("w3"), "w1 w2 w3", add_workers=1)
        group.holds_true(
            lambda: node.command(Cordon(GROUP, "w1", drain=True)), "w1 w2 w3", drain=["w1"]
        )
        group.holds_true(lambda: node.remove("w2"), "w1 w3", remove_workers=["w2"])


@pytest.mark.soak
def test_a_plan_is_made_by_an_assignor_of_ones_own_too(
    start_node: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "node" / "site"
    install_example(site, EXAMPLE)
    monkeypatch.setenv("PYTHONPATH", str(site))
    conf = {"salt": "7"}
    node = start_node(workers=["w1", "w2"], assignors=["together"], assignor_conf=conf)
    with planner(node) as group:
        for number in range(6):
            group.put(f"c{number}", 2)
        node.settles("w1", "w2")
        assert group.plan(drain=["w1"])["assignor"] == "together"
        group.holds_true(lambda: node.add("w3"), "w1 w2 w3", add_workers=1)
        group.holds_true(
            lambda: node.command(Cordon(GROUP, "w1", drain=True)), "w1 w2 w3", drain=["w1"]
        )
