"""Work that needs what only a worker has that comes and goes, with all of a node's processes."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cluster.test_commands import Shell

from fairlead.actors.messages.orders import PutConnector
from fairlead.events.model import Resource
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.node.launcher.commands import OK
from fairlead_tests.cluster.deeds import overlaps
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.cluster.remains import without_remains

pytestmark = pytest.mark.cluster
REASON = "needs tag gpu: no worker that takes work meets this"
NOWHERE = 'fairlead_connector_unplaceable_resources{group="connect",connector="cubes"} '


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with without_remains() as nodes:
        yield Shell(tmp_path / "home", nodes)


def put(node: Node, name: str, tasks: int, key: str, value: str) -> None:
    """Create a connector whose work may not run just anywhere."""
    config = {"name": name, "tasks.max": str(tasks), f"placement.{key}": value}
    node.command(PutConnector(GROUP, name, config))


def told(node: Node, path: str) -> httpx.Response:
    """Ask the node's REST interface."""
    return httpx.get(RunFolder(node.data_dir).node().rest + path, timeout=60)


def answers(node: Node) -> bool:
    """Whether the REST interface, which starts by itself, is there by now."""
    try:
        return told(node, "/health").is_success
    except httpx.TransportError:
        return False


def grants(node: Node, connector: str) -> dict[tuple[str, Resource], int]:
    """Who holds what of a connector, and since which epoch."""
    members = node.group().members.values()
    held = [(each.metadata.client_id, each.current.assigned) for each in members]
    return {
        (name, resource): epoch
        for name, assigned in held
        for resource, epoch in assigned.items()
        if resource.connector == connector
    }


def is_nowhere(node: Node, *resources: str) -> bool:
    """Whether just these can be placed nowhere, and all else runs."""
    group = node.group()
    left_out = {str(each): reason for each, reason in group.target.unplaceable.items()}
    held = {str(each) for each in group.owner}
    return (
        group.group_epoch == group.assignment_epoch
        and left_out == dict.fromkeys(resources, REASON)
        and held == {str(each) for each in group.configured} - set(resources)
    )


@pytest.mark.soak  # each run has it without processes: assignors/test_demands.py
def test_work_that_needs_a_tag_waits_for_a_worker_that_has_it_and_moves_nothing_else(
    shell: Shell,
) -> None:
    node = shell.up()
    put(node, "numbers", 4, "workers", "w1,w2")
    node.runs_tasks("numbers", 4, "w1", "w2")
    before = grants(node, "numbers")
    put(node, "cubes", 2, "tags", "gpu")
    eventually(lambda: is_nowhere(node, "cubes"), "cubes is nowhere")
    eventually(lambda: answers(node), "REST answers")
    assert told(node, "/connectors/cubes/status?extended=true").json()["connector"] == {
        "state": "UNASSIGNED",
        "worker_id": "",
        "version": None,
        "reason": REASON,
    }
    assert f"{NOWHERE}1\n" in told(node, "/metrics").text

    command = shell.type("worker --name w9 --tag gpu --zone b --capacity 2")
    node.runs_tasks("cubes", 2, "w1", "w2", "w9")
    assert {name for name, _ in grants(node, "cubes")} == {"w9"}
    assert f"{NOWHERE}0\n" in told(node, "/metrics").text
    workers = {each["name"]: each["member"] for each in told(node, "/workers").json()["workers"]}
    traits = [(workers[name]["rack"], workers[name]["tags"]) for name in ("w1", "w2", "w9")]
    assert traits == [(None, []), (None, []), ("b", ["gpu"])]
    assert [workers[name]["capacity"] for name in ("w1", "w2", "w9")] == [1, 1, 2]

    assert command.end(signal.SIGINT) == OK
    eventually(lambda: is_nowhere(node, "cubes", "cubes-0", "cubes-1"), "cubes is nowhere again")
    tasks = told(node, "/connectors/cubes/status?extended=true").json()["tasks"]
    assert [(each["state"], each["reason"]) for each in tasks] == [("UNASSIGNED", REASON)] * 2
    assert grants(node, "numbers") == before
    assert overlaps(node.spans()) == []


@pytest.mark.soak
def test_a_change_of_placement_restarts_nothing_that_may_stay(shell: Shell) -> None:
    node = shell.up()
    put(node, "numbers", 3, "weight", "1")
    node.runs_tasks("numbers", 3, "w1", "w2")
    before, deeds = grants(node, "numbers"), len(node.deeds())
    epoch = node.group().assignment_epoch
    put(node, "numbers", 3, "workers", "w1,w2")
    eventually(lambda: node.group().assignment_epoch == epoch + 1, "there is a new target")
    node.settles("w1", "w2")
    assert (grants(node, "numbers"), len(node.deeds())) == (before, deeds)
