"""Where many nodes are: what runs at the owner alone, and which ends are changes of its role."""
# pyright: basic

from math import inf
from pathlib import Path
from typing import Any, cast

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.timing import Backoff
from fairlead.actors.transport.actor import Actor
from fairlead.actors.worker.instructions import Timing
from fairlead.events.stores.opening import StoreSpec
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.cluster.spec import EngineSpec, KafkaSpec, NodeSpec
from fairlead.runtime.node.process_files import ProcessFiles
from fairlead.runtime.node.supervisor.children import GroupChild, Host
from fairlead.runtime.node.supervisor.node_children import GroupShards, ShardChild

LIMITS = 9, 9, 9_000, 3_000, 60_000, 60_000
"""Of the listener; nothing here looks at them."""


class Starts:
    """Keeps what is started and stopped."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def create(self, kind: type[Actor], name: str) -> str:
        self.said.append(f"starts {name}")
        return f"{kind.__name__} {name}"

    def pid_of(self, child: object) -> None:
        """No child has a process."""

    def send(self, to: object, message: object) -> None:
        """Nobody hears."""

    def stop(self, child: object) -> None:
        self.said.append(f"stops {child}")


def end(child: ShardChild, host: Host) -> None:
    """End its process, and start the next one as the supervisor does."""
    child.has_ended()
    child.back_off(host.node.backoff_ms)
    child.start_if_due(host)


@pytest.fixture
def actor() -> Starts:
    return Starts()


@pytest.fixture
def host(actor: Starts, tmp_path: Path) -> Host:
    spec = NodeSpec(
        tmp_path,
        "connect",
        "here",
        (),
        GroupSettings(),
        Timing(),
        EngineSpec("noop"),
        Backoff(0, 0),
        kafka=KafkaSpec("127.0.0.1", 0, "here", (), 1, *LIMITS),
        store=StoreSpec("postgres", "fairlead"),
    )
    return Host(cast("Any", actor), spec, ProcessFiles(RunFolder(tmp_path).path))


def test_a_shard_that_moves_away_is_not_started_again(actor: Starts, host: Host) -> None:
    shards = GroupShards(host)
    (shard,) = shards.children
    shards.start()
    assert (actor.said, shard.idle_seconds(0)) == ([], inf)

    shards.move(here=True)
    shards.move(here=False)
    end(shard, host)
    shards.start_due()
    told = ["starts 0", "stops ServingShardActor 0"]
    assert (actor.said, shard.idle_seconds(0)) == (told, inf)

    shards.move(here=True)
    end(shard, host)
    assert actor.said[2:] == ["starts 0", "starts 0"]


def test_a_change_of_role_is_no_failure_and_a_refused_log_is_one(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = Backoff(10_000, 10_000)
    group = GroupChild("connect")
    for has_failed, restarts_at_once in ((False, True), (False, True), (True, False)):
        group.start(host)
        monkeypatch.setattr(group, "started_at", group.started_at - 2)
        group.failures, group.has_failed = 1, has_failed
        group.runs(1)
        group.has_ended()
        assert group.back_off(pauses) is restarts_at_once


def test_a_node_that_ends_gives_its_group_up_before_its_listener_ends(
    actor: Starts, host: Host
) -> None:
    group = GroupChild("connect")
    group.give_up(host)
    group.start(host)
    group.give_up(host)
    assert actor.said == ["starts connect", "stops ClusterGroupActor connect"]
