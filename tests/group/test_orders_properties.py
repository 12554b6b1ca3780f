"""Orders, settings and deletions in any order, among members that come and go.

After every command the witness holds the group against itself, its past and the fold of its
log; at the end the log is compacted and trimmed, and leads to the same group.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from fairlead.actors.assignors.demands import demand_of
from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.actors.messages.commands import Command, ExpireSession, ReleaseParked
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteGroup,
    Expect,
    PutConnector,
    PutConnectors,
    Rebalance,
    RemoveMember,
    SetPlacement,
    Uncordon,
)
from fairlead.events.model import GroupState
from fairlead_tests.decider import JOIN, Decider, resource

WORKERS = ("w1", "w2", "w3")
NAMES = (*WORKERS, "http://w1", "nobody")
STEPS = 60


def next_command(random: Random, decider: Decider, step: int) -> Command:
    worker, name = random.choice(WORKERS), random.choice(NAMES)
    seated = sorted(decider.group.members) or [f"{worker}-{step}"]
    member = random.choice(seated)
    text = random.choice(("A", "A-0", "B", "C"))
    choices: tuple[Callable[[], Command], ...] = (
        lambda: replace(JOIN, member_id=f"{worker}-{step}", url=f"http://{worker}"),
        lambda: replace(JOIN, member_id=f"{worker}-{step}", url=f"http://{worker}", rack="a"),
        lambda: Heartbeat("connect", member, -1, "1"),
        lambda: ExpireSession(member),
        lambda: Cordon("connect", name, drain=random.random() < 0.5),
        lambda: Uncordon("connect", name),
        lambda: Expect("connect", name, random.choice((0, 500, 5_000))),
        lambda: SetPlacement("connect", resource(text), random.choice((None, 1, 5)), (name,)),
        lambda: SetPlacement("connect", resource(text), 1, ()),
        lambda: Rebalance("connect"),
        lambda: RemoveMember("connect", name, force=random.random() < 0.7),
        lambda: ConfigureGroup("connect", {"group.max.size": random.choice((None, "2", "9"))}),
        lambda: ConfigureGroup(
            "connect", {"scheduled.rebalance.max.delay.ms": random.choice((None, "0", "1000"))}
        ),
        lambda: DeleteGroup("connect"),
        lambda: PutConnector("connect", text[0], {"n": str(step)}),
        lambda: PutConnectors(
            "connect", {text[0]: {"n": str(step)}, "D": {"placement.zones": "a"}}
        ),
        lambda: PutConnector("connect", text[0], {"placement.workers": f"w1,{name}"}),
        lambda: PutConnector("connect", text[0], {"placement.zones": "a", "placement.weight": "3"}),
        ReleaseParked,
    )
    return random.choice(choices)()


def beats(random: Random, decider: Decider) -> None:
    """Let some members beat and acknowledge, and compute if asked to."""
    for member_id in sorted(decider.group.members):
        if random.random() < 0.5 and member_id in decider.group.members:
            current = decider.current(member_id)
            owned = tuple(sorted(current.assigned)) if current.member_epoch > 0 else ()
            full = replace(JOIN, member_id=member_id, member_epoch=current.member_epoch)
            reply = decider.carry_out(replace(full, owned=owned)).reply
            assert isinstance(reply, HeartbeatReply)
            if reply.error is Error.COMPUTE_ASSIGNMENT:
                decider.compute()


@pytest.mark.parametrize("seed", range(20))
def test_orders_in_any_order_keep_what_must_be_kept(seed: int) -> None:
    play(seed)


@pytest.mark.soak
def test_many_orders_keep_what_must_be_kept() -> None:
    for seed in range(20, 1_000):
        play(seed)


def play(seed: int) -> None:
    """Have members come and go among orders, and hold what is left at the end."""
    random = Random(seed)
    decider = Decider()
    decider.carry_out(PutConnector("connect", "A", {}))
    for step in range(STEPS):
        decider.now_ms += random.choice((0, 1, 400, 3_000))
        decider.carry_out(next_command(random, decider, step))
        beats(random, decider)
        if random.random() < 0.05:
            decider.restart()
    decider.witness.compacted(decider.group)
    removed = {each.removing for each in decider.group.worker_orders.values()} - {""}
    for member_id in sorted(removed):
        decider.carry_out(ExpireSession(member_id))
    assert not any(each.removing for each in decider.group.worker_orders.values())
    decider.settle()
    shown = snapshot_of(decider.group, "balanced", decider.now_ms)
    for member_id, view in shown.members.items():
        held = decider.current(member_id).assigned
        assert all(demand_of(shown, each).is_met(view) for each in held)
    at_rest = GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD
    assert decider.group.state in at_rest
