"""The example in ASSIGNORS.md does what it says."""

import re
from dataclasses import replace
from pathlib import Path

from local_assignors.conftest import Installs

from fairlead.actors.messages.assignors import Worker
from fairlead.actors.messages.computing import Assignment, MemberView, Snapshot
from fairlead.events.model import NOTHING, Resource
from fairlead.runtime.node.assignors.host import AssignorHost

PAGE = Path(__file__).parents[2] / "actors" / "assignors" / "ASSIGNORS.md"
WORK = frozenset({Resource("a"), Resource("a", 0)})


def member(name: str) -> MemberView:
    """A member without any work."""
    return MemberView(
        name, 1, None, f"here/{name}", None, 0, 0, b"", NOTHING, NOTHING, worker=f"here/{name}"
    )


def test_the_smallest_assignor_gives_everything_to_its_favourite(installed: Installs) -> None:
    (source,) = re.findall(r"```python\n(.*?class AllOnOne.*?)```", PAGE.read_text(), re.DOTALL)
    installed(source, "all-on-one = shop_rules:AllOnOne")
    host = AssignorHost(("all-on-one",), {"favourite": "w2"})
    members = {name: member(name) for name in ("w1", "w2")}
    snapshot = Snapshot(1, 0, "all-on-one", b"", WORK, members, (), {}, NOTHING, 0)
    assert host.describe_assignors("w1", Worker("w1"), 1).errors == ()
    made = host.assign("w1", snapshot).assignment
    assert made is not None
    assert made == Assignment({"w2": WORK})

    pinned = replace(snapshot, pins={Resource("a", 0): ("here/w1",)})
    made = host.assign("w1", pinned).assignment
    assert made is not None
    assert made == Assignment(
        {"w2": frozenset({Resource("a")})},
        unplaceable={Resource("a", 0): "pinned to here/w1: not here/w2"},
    )

    drained = {name: replace(each, draining=name == "w2") for name, each in members.items()}
    made = host.assign("w1", replace(snapshot, members=drained)).assignment
    assert made == Assignment({"w1": WORK})
    drained = {name: replace(each, draining=True) for name, each in members.items()}
    made = host.assign("w1", replace(snapshot, members=drained)).assignment
    assert made == Assignment({}, unplaceable=dict.fromkeys(WORK, "nobody takes work"))
