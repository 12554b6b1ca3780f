"""Plans are made by the settings of the node's assignors."""

from dataclasses import replace

from coordinator import JOIN, Coordinator

from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.events.model import Assignor
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.cluster import rest_command
from fairlead.runtime.planning.assignors import built_in_assignors
from fairlead.runtime.rest.__main__ import options_parser


def test_the_rest_process_is_told_the_pace_of_moves() -> None:
    pace = ["assignor.moves.per.round=1", "assignor.moves.interval.ms=2000"]
    command = rest_command(load_config(environ={}, overrides=pace), "http://127.0.0.1:0")
    options = options_parser().parse_args(list(command[2:]))
    assign = built_in_assignors(dict(options.assignor))["incremental"]
    coordinator = Coordinator()
    coordinator.configure("A A-0 A-1 A-2 A-3")
    join = replace(JOIN, assignors=(Assignor("incremental"),))
    for member_id in ("W1", "W2"):
        coordinator.join(member_id, join)
        if member_id == "W1":
            coordinator.settle()
    snapshot = snapshot_of(coordinator.group, "incremental", 1_000)
    made = assign(snapshot)
    assert (len(made.members["W2"]), made.again_at_ms) == (1, 3_000)
