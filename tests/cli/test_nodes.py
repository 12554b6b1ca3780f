"""`get nodes`, `describe node`, `owner move`, and what `status` says of the owner."""

from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run

N1 = {
    "name": "n1",
    "owns": True,
    "is_here": False,
    "is_ready": True,
    "heard_ms": 40,
    "address": "10.0.0.1:9094",
    "version": "1.2.3",
    "workers": ["w1"],
    "owner_epoch": 2,
    "since_ms": 1_700_000_002_000,
    "silence_ms": 3_400,
    "copies": None,
}
COPIES = {"behind_entries": 3, "in_step_ms": 4_200, "clock_ms": -1_500}
N2 = {
    **N1,
    "name": "n2",
    "owns": False,
    "is_here": True,
    "is_ready": False,
    "heard_ms": 7_300,
    "workers": ["w1", "w2"],
    "owner_epoch": None,
    "since_ms": None,
    "silence_ms": None,
    "copies": COPIES,
}
NODES: dict[str, Any] = {
    "group_id": "connect",
    "store": "postgres",
    "owner": "n1",
    "owner_silent_ms": 20,
    "nodes": [N1, N2],
}


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """A cluster of two nodes."""
    cluster.answer("GET", "/nodes", NODES)
    return cluster


def test_nodes_are_listed_with_the_owner_and_how_far_the_copies_are(
    run: Run, cluster: Cluster
) -> None:
    cells = "custom-columns=NODE:.name,OWNS:.owns,BEHIND:.copies.behind_entries"
    told = run("get", "nodes", "-o", cells, "--url", cluster.url)
    rows = [["NODE", "OWNS", "BEHIND"], ["n1", "true", "<none>"], ["n2", "false", "3"]]
    assert [each.split() for each in told.out.splitlines()] == rows
    table = run("get", "nodes", "--url", cluster.url).out
    assert table.split()[:11] == [
        *("NODE", "STATUS", "ROLE", "OWNED", "FROM", "WORKERS", "ADDRESS", "VERSION", "COPIES"),
        *("n1", "Ready"),
    ]


def test_one_node_is_described(run: Run, cluster: Cluster) -> None:
    told = run("describe", "node", "n1", "--url", cluster.url)
    assert told.out.splitlines() == [
        "Node:         n1",
        "Status:       Ready",
        "Role:         owns",
        "Owned from:   2023-11-14T22:13:22.000Z",
        "Claimed:      after 3.4 s of silence",
        "Owner epoch:  2",
        "Address:      10.0.0.1:9094",
        "Version:      1.2.3",
        "Workers:      w1",
    ]
    here = run("describe", "node", "n2", "--url", cluster.url).out
    assert here.splitlines()[1:3] == [
        "Status:   NotReady, heard of 7 s ago",
        "Role:     follows, here",
    ]
    told_of_copies = "3 entries behind, in step 4.2 s ago; the clock is 1.5 s behind the owner's"
    assert " ".join(here.partition("Copies:")[2].split()) == told_of_copies


def test_a_node_that_is_not_known_is_told_with_those_that_are(run: Run, cluster: Cluster) -> None:
    told = run("describe", "node", "n9", "--url", cluster.url)
    assert told == (1, "", "fairlead: there is no node n9; there is: n1, n2\n")


def test_status_says_who_owns_the_group(run: Run, cluster: Cluster) -> None:
    told = run("status", "--url", cluster.url).out
    line = "node n1, since 2023-11-14T22:13:22.000Z; the copies here are 3 entries behind, in step"
    assert " ".join(told.partition("Owner:")[2].split()).startswith(line)


@pytest.mark.parametrize(
    ("words", "path"),
    [("", "/groups/connect/owner"), ("--to n2", "/groups/connect/owner?to=n2")],
)
def test_the_group_is_moved_to_a_node_or_to_any(
    words: str, path: str, run: Run, cluster: Cluster
) -> None:
    message = "node n1 gives the group up, to node n2"
    moved = {"group_id": "connect", "owner": "n1", "to": "n2", "message": message}
    cluster.answer("POST", path, moved, 202)
    told = run("owner", "move", *words.split(), "--group", "connect", "--url", cluster.url)
    assert told == (0, f"group connect: {message}\n", "")
    assert cluster.asked == [Asked("POST", path, None)]
