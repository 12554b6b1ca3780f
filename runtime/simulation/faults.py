"""How each kind of fault befalls a world."""

from collections.abc import Callable
from functools import partial
from typing import Final

from ...actors.messages.commands import GroupCommand
from ...actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteConnector,
    DeleteGroup,
    Expect,
    Place,
    PutConnector,
    Rebalance,
    RemoveMember,
    Uncordon,
)
from ...events.model import Resource
from .durable_state import GROUP_ID
from .environment import Line, MessageFault, Way
from .group_process import Border
from .node import Blunder, Node
from .schedule import Fault, ScheduledFault
from .world import World

CONNECTORS_MORE: Final = 2
"""So many more connectors may come than there were to begin with."""


def schedule_faults(world: World) -> None:
    """Have all faults of the world's schedule come when their time has come."""
    for fault in world.schedule.faults:
        world.clock.after(fault.at_ms, _strike, world, fault)


def calm(world: World) -> None:
    """End all faults, and call off those that were still to come."""
    world.story.tell("from now on nothing goes wrong any more")
    world.is_calm = True
    world.network.calm()
    world.process.spare()
    for node in world.nodes:
        node.assignor.heal()


def _strike(world: World, fault: ScheduledFault) -> None:
    world.story.tell("[{}] {}", fault.number, fault.kind.value)
    BEFALL[fault.kind](world, fault)


def _inhabited(world: World, fault: ScheduledFault) -> Node | None:
    """Return a node where somebody lives."""
    inhabited = [node for node in world.nodes if node.live is not None]
    return inhabited[fault.who % len(inhabited)] if inhabited else None


def _line(world: World, fault: ScheduledFault) -> Line:
    node = _inhabited(world, fault) or world.nodes[0]
    return node.number, Way.TO_GROUP if fault.who // 16 % 2 else Way.TO_WORKER


def _spoil_messages(how: MessageFault, world: World, fault: ScheduledFault) -> None:
    messages = RUNS[how][fault.much]
    world.network.strike(_line(world, fault), how, fault.span_ms, messages)


def _repeat(world: World, fault: ScheduledFault) -> None:
    """Repeat old messages now, or to the group's next process before anybody else speaks."""
    line, messages = _line(world, fault), RUNS[MessageFault.DOUBLE][fault.much]
    repeat = partial(world.network.repeat, line, messages)
    if fault.who // 32 % 2:
        world.echoes.append(repeat)
    else:
        repeat(fault.span_ms)


def _cut(world: World, fault: ScheduledFault) -> None:
    number, way = _line(world, fault)
    for each in (way,) if fault.much % 2 else Way:
        world.network.cut((number, each), fault.span_ms)


def _crash(world: World, fault: ScheduledFault) -> None:
    node = _inhabited(world, fault)
    if node is not None and node.live is not None:
        world.story.tell("{} dies", node.live.name)
        node.live.die()
        if fault.much:
            node.comes_back(fault.span_ms)


def _freeze(world: World, fault: ScheduledFault) -> None:
    node = _inhabited(world, fault)
    if node is not None and node.live is not None:
        world.story.tell("{} freezes for {} ms", node.live.name, fault.span_ms)
        node.live.freeze(fault.span_ms, ticks_first=fault.much % 2 == 0)


def _leave(world: World, fault: ScheduledFault) -> None:
    node = _inhabited(world, fault)
    if node is not None and node.live is not None:
        world.story.tell("{} leaves", node.live.name)
        node.live.leave(temporary=fault.who // 16 % 2 == 0)
        if fault.much:
            node.comes_back(fault.span_ms)


def _step_away(world: World, fault: ScheduledFault) -> None:
    static = [node for node in world.nodes if node.live and node.instance_id is not None]
    if static:
        node = static[fault.who % len(static)]
        if node.live is not None:
            world.story.tell("{} leaves for a while", node.live.name)
            node.live.leave(temporary=True)
            node.comes_back(fault.span_ms)


def _exodus(world: World, fault: ScheduledFault) -> None:
    for worker in list(world.workers()):
        worker.leave()
        worker.node.comes_back(fault.span_ms)
    for number in range(4):
        world.clock.after(fault.span_ms * number // 4, world.command, DeleteGroup(GROUP_ID))
    for number in range(world.schedule.size.connectors):
        put = PutConnector(GROUP_ID, f"c{number}", {"v": "0"})
        world.clock.after(fault.span_ms, world.command, put)


def _join(world: World, fault: ScheduledFault) -> None:
    empty = [node for node in world.nodes if node.live is None]
    if empty:
        empty[fault.who % len(empty)].comes()


def _hang(world: World, fault: ScheduledFault) -> None:
    node = _inhabited(world, fault)
    if node is not None and node.live is not None:
        node.live.engine.hangs = True


def _kill_group(world: World, fault: ScheduledFault) -> None:
    world.process.die(fault.span_ms)


def _kill_writing(world: World, fault: ScheduledFault) -> None:
    world.process.doom(list(Border)[fault.much % len(Border)], fault.span_ms)


def _freeze_group(world: World, fault: ScheduledFault) -> None:
    world.process.freeze(fault.span_ms, ticks_first=fault.much % 2 == 0)


def _bad_assignor(world: World, fault: ScheduledFault) -> None:
    for node in world.nodes:
        node.assignor.spoil(Blunder(fault.much % len(Blunder)))


def _slow_assignor(world: World, fault: ScheduledFault) -> None:
    for node in world.nodes:
        node.assignor.slow(fault.span_ms)


def _reason(world: World, fault: ScheduledFault) -> None:
    node = _inhabited(world, fault)
    if node is not None:
        node.assignor.call_for_rebalance()


def _connector(world: World, fault: ScheduledFault) -> str:
    return f"c{fault.who % (world.schedule.size.connectors + CONNECTORS_MORE)}"


def _put(world: World, fault: ScheduledFault) -> None:
    config = {"v": str(fault.much)}
    world.command(PutConnector(GROUP_ID, _connector(world, fault), config))


def _delete(world: World, fault: ScheduledFault) -> None:
    world.command(DeleteConnector(GROUP_ID, _connector(world, fault)))


def _split(world: World, fault: ScheduledFault) -> None:
    for worker in world.workers():
        if (fault.who + worker.node.number) % 2:
            worker.split(fault.much, fault.who)


def _jump(world: World, fault: ScheduledFault) -> None:
    ahead = 1 if fault.much % 2 else -1
    world.clock.set_wall(world.clock.skew_ms + ahead * fault.span_ms)
    world.story.tell("the wall clock is {} ms off", world.clock.skew_ms)


def _order(
    make: Callable[[str, ScheduledFault], GroupCommand], world: World, fault: ScheduledFault
) -> None:
    node = world.nodes[fault.who % len(world.nodes)]
    world.command(make(node.instance_id or node.url, fault))


def _cordon(worker: str, fault: ScheduledFault) -> GroupCommand:
    return Cordon(GROUP_ID, worker, drain=fault.much % 2 == 0)


def _uncordon(worker: str, _: ScheduledFault) -> GroupCommand:
    return Uncordon(GROUP_ID, worker)


def _expect(worker: str, fault: ScheduledFault) -> GroupCommand:
    return Expect(GROUP_ID, worker, fault.span_ms)


def _remove(worker: str, fault: ScheduledFault) -> GroupCommand:
    return RemoveMember(GROUP_ID, worker, force=fault.much > 0)


def _place(worker: str, fault: ScheduledFault) -> GroupCommand:
    resource = Resource(f"c{fault.who % 2}", fault.who // 2 % 3 - 1)
    pins = ((), (worker,), None)[fault.much % 3]
    return Place(GROUP_ID, resource, weight=1 + fault.much, pins=pins)


def _rebalance(_: str, __: ScheduledFault) -> GroupCommand:
    return Rebalance(GROUP_ID)


def _configure(world: World, fault: ScheduledFault) -> None:
    key, values = SETTINGS[fault.much % len(SETTINGS)]
    world.command(ConfigureGroup(GROUP_ID, {key: values[fault.who % len(values)]}))
    back = ConfigureGroup(GROUP_ID, {key: None})
    world.clock.after(fault.span_ms, world.command, back)


SETTINGS: Final = (
    ("session.timeout.ms", ("12000", "16000")),
    ("session.timeout.ms", ("20000",)),
    ("heartbeat.interval.ms", ("1000", "2000")),
    ("scheduled.rebalance.max.delay.ms", ("0", "5000", "30000")),
    ("assignment.interval.ms", ("2000", "10000")),
    ("member.request.rate", ("1", "5")),
    ("group.max.size", ("2", "100")),
)

RUNS: Final = {
    MessageFault.LOSE: (1, 1, 1, 1, 2, 2, 3, 4),
    MessageFault.DOUBLE: (1, 1, 2, 3, 5, 10, 20, 40),
    MessageFault.DELAY: (1, 1, 1, 2, 3, 5, 10, 20),
}
"""How many messages in a row go wrong; what is lost for long is a cut."""

BEFALL: Final[dict[Fault, Callable[[World, ScheduledFault], None]]] = {
    Fault.LOSE: partial(_spoil_messages, MessageFault.LOSE),
    Fault.DOUBLE: partial(_spoil_messages, MessageFault.DOUBLE),
    Fault.DELAY: partial(_spoil_messages, MessageFault.DELAY),
    Fault.REPEAT: _repeat,
    Fault.CUT: _cut,
    Fault.CRASH: _crash,
    Fault.FREEZE: _freeze,
    Fault.LEAVE: _leave,
    Fault.STEP_AWAY: _step_away,
    Fault.JOIN: _join,
    Fault.HANG: _hang,
    Fault.KILL_GROUP: _kill_group,
    Fault.KILL_WRITING: _kill_writing,
    Fault.FREEZE_GROUP: _freeze_group,
    Fault.BAD_ASSIGNOR: _bad_assignor,
    Fault.SLOW_ASSIGNOR: _slow_assignor,
    Fault.REASON: _reason,
    Fault.PUT: _put,
    Fault.DELETE: _delete,
    Fault.SPLIT: _split,
    Fault.EXODUS: _exodus,
    Fault.CLOCK: _jump,
    Fault.CORDON: partial(_order, _cordon),
    Fault.UNCORDON: partial(_order, _uncordon),
    Fault.EXPECT: partial(_order, _expect),
    Fault.PLACE: partial(_order, _place),
    Fault.REBALANCE: partial(_order, _rebalance),
    Fault.REMOVE: partial(_order, _remove),
    Fault.CONFIGURE: _configure,
}
