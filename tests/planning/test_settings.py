"""Plans are made by the settings of the node's assignors, which lie in its run folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.events.model import ClientAssignor
from fairlead.runtime.cluster.node_files import read_assignors, write_assignors
from fairlead.runtime.cluster.spec import AssignorSpec
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.commands import node_spec
from fairlead.runtime.planning.sandbox import built_in_assignors
from fairlead_tests.decider import JOIN, Decider

PACE = ["assignor.moves.per.round=1", "assignor.moves.interval.ms=2000"]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path


def test_the_pace_of_moves_is_that_of_the_node(data_dir: Path) -> None:
    config = load_config(environ={}, overrides=PACE)
    write_assignors(data_dir / "run", node_spec(config, 1).assignors)
    assignor = built_in_assignors(read_assignors(data_dir / "run").conf)["incremental"]
    decider = Decider()
    decider.configure("A A-0 A-1 A-2 A-3")
    join = replace(JOIN, assignors=(ClientAssignor("incremental"),))
    for member_id in ("W1", "W2"):
        decider.join(member_id, join)
        if member_id == "W1":
            decider.settle()
    snapshot = snapshot_of(decider.group, "incremental", 1_000)
    made = assignor.assign(snapshot)
    assert (len(made.members["W2"]), made.again_at_ms) == (1, 3_000)


def test_what_was_written_is_read_again_by_the_owner_alone(data_dir: Path) -> None:
    spec = AssignorSpec(("mine", "balanced"), {"token": "hunter2"}, 1 << 20)
    write_assignors(data_dir / "run", AssignorSpec())
    write_assignors(data_dir / "run", spec)
    assert read_assignors(data_dir / "run") == spec
    (file,) = (data_dir / "run").iterdir()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("found", ["", "[]", '{"names": 1}', '{"names": [], "conf": 7}', "\x00"])
def test_a_file_that_can_not_be_read_says_nothing(data_dir: Path, found: str) -> None:
    (data_dir / "run" / "assignors.json").write_text(found)
    assert read_assignors(data_dir / "run") == AssignorSpec()
