"""The settings that set a node's workers apart from others."""

import os
from pathlib import Path

import pytest
from config.conftest import Refused

from fairlead.events.placement import ORDINARY, Abilities
from fairlead.runtime.cluster.messages import AddWorker
from fairlead.runtime.cluster.spec import WorkerTraits
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.commands import node_spec


def traits_of(*overrides: str, file: Path | None = None) -> WorkerTraits:
    return node_spec(load_config(file, {}, overrides), 8083).traits


def test_a_nodes_workers_are_as_its_settings_say() -> None:
    assert traits_of() == WorkerTraits(None, ORDINARY)
    told = traits_of("client.rack=b", "worker.tags=gpu, ssd,gpu", "worker.capacity=4")
    assert told == WorkerTraits("b", Abilities(4, frozenset({"gpu", "ssd"})))


def test_a_file_may_list_the_tags(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text('[worker]\ntags = ["gpu", "ssd"]\n')
    assert traits_of(file=file).abilities.tags == {"gpu", "ssd"}


def test_what_is_said_of_one_worker_stands_in_place_of_what_its_node_says() -> None:
    node = WorkerTraits("b", Abilities(4, frozenset({"gpu"})))
    assert AddWorker(os.getpid()).traits(node) == node
    own = AddWorker(os.getpid(), zone="c", tags=frozenset({"ssd"}), capacity=1)
    assert own.traits(node) == WorkerTraits("c", Abilities(1, frozenset({"ssd"})))


@pytest.mark.parametrize("setting", ["worker.tags=gpu", "worker.capacity=2"])
def test_workers_that_leave_the_computing_to_the_group_can_say_nothing_of_themselves(
    refused: Refused, setting: str
) -> None:
    (message,) = refused("group.remote.assignor=uniform", setting)
    assert "gets no tags and no capacity of workers" in message
    assert traits_of("group.remote.assignor=uniform", "client.rack=b").zone == "b"
