"""The settings of the assignors that a node's workers compute with."""

from pathlib import Path

from fairlead.runtime.cluster.spec import AssignorSpec
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.commands import node_spec


def spec_of(*overrides: str, file: Path | None = None) -> AssignorSpec:
    return node_spec(load_config(file, {}, overrides), 8083).assignors


def test_by_default_workers_compute_with_the_balanced_one_and_its_settings() -> None:
    conf = {"moves.per.round": "10", "moves.interval.ms": "30000", "moves.drain": "at-once"}
    assert spec_of() == AssignorSpec(("balanced",), conf, 1 << 30)


def test_names_stand_in_the_order_of_preference_however_they_are_spaced() -> None:
    assert spec_of("group.local.assignors=mine, balanced").names == ("mine", "balanced")


def test_an_assignor_is_handed_its_settings_without_their_prefixes(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text('[assignor]\nmoves.per.round = 3\n[assignor.conf]\nkeep.near = "disk"\n')
    found = spec_of("assignor.conf.Salt=x", "assignor.memory.max=200m", file=file)
    conf = {
        "moves.per.round": "3",
        "moves.interval.ms": "30000",
        "moves.drain": "at-once",
        "keep.near": "disk",
        "Salt": "x",
    }
    assert found == AssignorSpec(("balanced",), conf, 200 << 20)


def test_what_is_handed_on_can_not_take_the_place_of_a_setting() -> None:
    assert spec_of("assignor.conf.moves.per.round=0").conf["moves.per.round"] == "10"
