"""Nodes of one cluster: one owns the group, the others follow the store, and any takes over."""
# pyright: basic

import signal
import socket
import ssl
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from fairlead.events.entries.codec import decode
from fairlead.events.group import Group
from fairlead.events.records import OwnerBegan, OwnerResigned
from fairlead.runtime.kafka.wire.served import DESCRIBE_GROUPS, FIND_COORDINATOR, METADATA
from fairlead_tests.actor_system import title_of
from fairlead_tests.cluster.node import eventually
from fairlead_tests.kafka_listener.spoken import asking, told
from fairlead_tests.stores.nodes import Cluster, ClusterNode

CONFIG = {
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "source.path": "/nowhere/in",
    "sink.format": "parquet",
    "sink.path": "/nowhere/out",
    "tasks.max": "2",
}


ALL_TOPICS = {
    "Topics": None,
    "AllowAutoTopicCreation": False,
    "IncludeClusterAuthorizedOperations": False,
    "IncludeTopicAuthorizedOperations": False,
}


def put(node: ClusterNode, name: str) -> None:
    """Create a connector; who is told that nobody answers repeats the command."""

    def is_done() -> bool:
        answer = node.rest("PUT", f"/connectors/{name}/config", json=CONFIG)
        assert answer.is_success or answer.status_code == 503, answer.text
        return answer.is_success

    eventually(is_done, f"{name} is created")


def names_at(node: ClusterNode) -> list[str]:
    return sorted(node.rest("GET", "/connectors").json())


def runs_at(node: ClusterNode, name: str) -> bool:
    status = node.rest("GET", f"/connectors/{name}/status").json()
    states = [each["state"] for each in (status["connector"], *status["tasks"])]
    return len(states) == 3 and set(states) == {"RUNNING"}


def entries_of(node: ClusterNode, name: str) -> list[object]:
    with node.log(name) as log:
        return [each for batch in log.tail(log.low()) for each in batch]


def owners_of(node: ClusterNode) -> list[OwnerBegan | OwnerResigned]:
    """Return the records about owners in a node's copy."""
    with node.log() as log:
        records = [decode(each) for batch in log.tail(log.low()) for each in batch]
    return [each for each in records if isinstance(each, OwnerBegan | OwnerResigned)]


def test_a_cluster_of_nodes_outlives_its_owner(cluster: Cluster) -> None:
    with cluster.nodes("n1", "n2") as (first, second):
        eventually(lambda: len(second.group().members) == 2, "both workers are members")
        owner, other = (first, second) if first.owner == "n1" else (second, first)
        put(other, "a")  # what a command wrote is read at once where it was sent
        assert names_at(other) == ["a"]
        eventually(lambda: names_at(owner) == ["a"], "the owner tells of it as well")
        eventually(lambda: runs_at(other, "a"), "its tasks run")
        before = other.group()
        owner.kill()
        put(other, "b")
        assert other.owner == other.name
        assert names_at(other) == ["a", "b"]
        after = other.group()
        assert isinstance(after.ownership, OwnerBegan)
        assert isinstance(before.ownership, OwnerBegan)
        assert after.ownership.epoch > before.ownership.epoch
        assert after.ownership.silence_ms >= 3_000
        assert moves_of(after) == moves_of(before)  # a takeover moves nobody

        owner.wipe()
        owner.start()
        owner.wait()
        assert other.owner == other.name  # who comes back follows
        eventually(lambda: names_at(owner) == ["a", "b"], "it has the history again")
        for name in ("control", "offsets"):
            is_equal = partial(have_same, owner, other, name)
            eventually(is_equal, f"the copies of the {name} log are equal")


def have_same(one: ClusterNode, other: ClusterNode, name: str) -> bool:
    return entries_of(one, name) == entries_of(other, name)


def moves_of(group: Group) -> Mapping[str, int]:
    """Return under which epochs members hold what they hold of the connector a."""
    return {
        str(resource): epoch
        for member in group.workers()
        for resource, epoch in member.current.assigned.items()
        if resource.connector == "a"
    }


def test_an_owner_gives_the_group_up_when_it_is_told_to_and_when_it_ends(cluster: Cluster) -> None:
    # A process that starts anew on a busy machine is not overtaken by the other node.
    patient = {"owner_silence_ms": 30_000, "session_timeout_ms": 60_000}
    with cluster.nodes("n1", "n2", workers=0, **patient) as nodes:
        owner, other = nodes if nodes[0].owner == "n1" else nodes[::-1]
        owner.hit("group connect", signal.SIGKILL)  # the folder's own claim waits for nothing
        names = [owner.name, owner.name]
        eventually(lambda: [each.node for each in owners_of(other)] == names, "it owns it again")

        known = {owner.name: (True, True, False), other.name: (False, True, True)}
        for node in (owner, other):
            is_known = partial(lambda node: nodes_told(node) == known, node)
            eventually(is_known, f"{node.name} tells of both nodes")
            # Clients find their groups from any listener, and are left with the other one.
            is_found = partial(names_places, node, listener_of(owner), listener_of(other))
            eventually(is_found, f"{node.name} names both listeners, the owner's as coordinator")
        for group in ("connect", "of-clients"):  # whoever asks elsewhere looks for it again
            asked = {"Groups": [group], "IncludeAuthorizedOperations": False}
            (described,) = asked_of(other, DESCRIBE_GROUPS, 5, asked)["Groups"]
            assert described["ErrorCode"] == ErrorCode.not_coordinator
        moved = other.rest("POST", "/groups/connect/owner", params={"to": other.name})
        assert moved.status_code == 202, moved.text
        eventually(lambda: other.owner == other.name, "the other owns the group")
        known = {owner.name: (False, True, True), other.name: (True, True, False)}
        eventually(lambda: nodes_told(owner) == known, "it is told")
        owner, other = other, owner
        owner.end()
        eventually(lambda: other.owner == other.name, "the first one owns the group again")
        ownership = other.group().ownership
        assert isinstance(ownership, OwnerBegan)
        assert ownership.silence_ms < patient["owner_silence_ms"]
        records = [type(each).__name__ for each in owners_of(other)]
        given_up = ["OwnerResigned", "OwnerBegan"]
        assert records == ["OwnerBegan", "OwnerBegan", *given_up, *given_up]


def listener_of(node: ClusterNode) -> tuple[str, int]:
    host, _, port = str(node.settings["kafka.listeners"]).rpartition("/")[2].rpartition(":")
    return host, int(port)


def asked_of(node: ClusterNode, api: int, version: int, fields: dict[str, Any]) -> Any:
    """Return what a node's listener answers; None: it does not listen yet."""
    own = str(node.settings["kafka.ssl.keystore.location"])
    context = ssl.create_default_context(cafile=str(node.settings["kafka.ssl.truststore.location"]))
    context.load_cert_chain(own)
    asked = asking(api, version, fields)
    host, port = listener_of(node)
    try:
        plain = socket.create_connection((host, port), 20)
    except ConnectionRefusedError:
        return None  # it has begun with REST, and is about to listen
    with plain, context.wrap_socket(plain, server_hostname=host) as line:
        line.sendall(len(asked).to_bytes(4) + asked)
        with line.makefile("rb") as answer:
            frame = answer.read(int.from_bytes(answer.read(4)))
    return told(api, version, frame)


def names_places(node: ClusterNode, owner: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether clients of this node's listener are sent to the owner, and know the other one."""
    found = asked_of(node, FIND_COORDINATOR, 4, {"KeyType": 0, "CoordinatorKeys": ["g"]})
    if found is None or _places(found["Coordinators"]) != [owner]:
        return False
    return _places(asked_of(node, METADATA, 9, ALL_TOPICS)["Brokers"]) == [other, owner]


def _places(items: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    return [(each["Host"], each["Port"]) for each in items]


def nodes_told(node: ClusterNode) -> dict[str, tuple[bool, bool, bool]]:
    """Return of which nodes one tells: whether each owns the group, lives, and follows."""
    found = node.rest("GET", "/nodes").json().get("nodes", ())
    return {
        each["name"]: (each["owns"], each["is_ready"], each["copies"] is not None) for each in found
    }


@pytest.mark.soak  # it lives without a listener for 10 s
def test_an_owner_whose_listener_is_gone_gives_the_group_up(cluster: Cluster) -> None:
    with cluster.nodes("n1", "n2", workers=0) as nodes:
        owner, other = nodes if nodes[0].owner == "n1" else nodes[::-1]
        known = {owner.name: (True, True, False), other.name: (False, True, True)}
        eventually(lambda: nodes_told(owner) == known, "the owner has heard of the other node")

        def is_left() -> bool:
            for each in owner.processes():
                if title_of(each) == "fairlead: kafka connect":
                    each.kill()
            return other.owner == other.name

        eventually(is_left, "the other node owns the group")
        given_up, began = owners_of(other)[-2:]
        assert (type(given_up), given_up.node) == (OwnerResigned, owner.name)
        assert isinstance(began, OwnerBegan)
        assert not (owner.folder / "logs" / "actors.log").read_text().count("Traceback")


# Each run has what it rests on: what a succeeded owner appends is in vain (test_contract.py), and
# is in no copy (test_stored_log.py); after it the node follows (node/test_claims.py).
@pytest.mark.soak
def test_an_owner_that_was_paused_wakes_as_one_that_follows(cluster: Cluster) -> None:
    with cluster.nodes("n1", "n2", workers=0) as nodes:
        owner, other = nodes if nodes[0].owner == "n1" else nodes[::-1]
        paused = owner.hit("group connect", signal.SIGSTOP)
        put(other, "a")
        paused.send_signal(signal.SIGCONT)
        put(owner, "b")
        assert (owner.owner, names_at(owner)) == (other.name, ["a", "b"])
        assert [each.node for each in owners_of(owner)] == [owner.name, other.name]
        for name in ("control", "offsets"):
            is_equal = partial(have_same, owner, other, name)
            eventually(is_equal, f"the copies of the {name} log are equal")
