"""The effect of each kind of fault on a simulated cluster.

`BEFALL` has one function for each kind. It gets the world and the fault, and decides by the fault's
numbers whom of those who are there by then it befalls. Faults of hosts do nothing where there is
only one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ...actors.messages.commands import GroupCommand
from ...actors.messages.orders import (
    AlterOffsets,
    ConfigureGroup,
    Cordon,
    DeleteConnector,
    DeleteGroup,
    Expect,
    PutConnector,
    Rebalance,
    RemoveMember,
    Restart,
    SetPlacement,
    SetTargetState,
    Uncordon,
)
from ...events.model import Resource, RunState
from .engine import partition
from .environment.assignor import Blunder
from .environment.kinds import Fault
from .environment.network import Line, MessageFault, Way
from .group.durable_state import GROUP_ID
from .group.group_process import Border
from .hosts.host import SimulatedHost
from .hosts.wires import STORE
from .invariants.group import ROW
from .invariants.running import put_at_once
from .schedule import ScheduledFault
from .worker import SimulatedWorker
from .world import World

CONNECTORS_MORE: Final = 2
"""So many more connectors may come than there were to begin with."""
ATTEMPTS: Final = 8
"""How often at most somebody asks for other offsets while a connector is being stopped."""
Settings = Sequence[tuple[str, Sequence[str]]]
"""What may be set, each with its values."""
FEW: Final = 5
"""Up to here a fault's `much` asks for one other offset, beyond for none."""


def schedule_faults(world: World) -> None:
    """Schedule all faults of the world's schedule."""
    for fault in world.schedule.faults:
        world.clock.after(fault.at_ms, _strike, world, fault)


def _strike(world: World, fault: ScheduledFault) -> None:
    world.story.tell("[{}] {}", fault.number, fault.kind.value)
    BEFALL[fault.kind](world, fault)


def _alive(world: World, fault: ScheduledFault) -> SimulatedWorker | None:
    """Return one of the live workers."""
    alive = list(world.workers())
    return alive[fault.who % len(alive)] if alive else None


def _line(world: World, fault: ScheduledFault) -> Line:
    worker = _alive(world, fault)
    node = worker.node if worker else world.nodes[0]
    return node.number, Way.TO_GROUP if fault.who // 16 % 2 else Way.TO_WORKER


def _spoil_messages(how: MessageFault, world: World, fault: ScheduledFault) -> None:
    messages = RUNS[how][fault.much]
    world.network.strike(_line(world, fault), how, fault.span_ms, messages)


def _repeat(world: World, fault: ScheduledFault) -> None:
    """Repeat old messages now, or to the group's next process before any others."""
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
    if worker := _alive(world, fault):
        world.story.tell("{} dies", worker.name)
        worker.die()
        if fault.much:
            worker.node.comes_back(fault.span_ms)


def _freeze(world: World, fault: ScheduledFault) -> None:
    if worker := _alive(world, fault):
        world.story.tell("{} freezes for {} ms", worker.name, fault.span_ms)
        worker.freeze(fault.span_ms, ticks_first=fault.much % 2 == 0)


def _leave(world: World, fault: ScheduledFault) -> None:
    if worker := _alive(world, fault):
        world.story.tell("{} leaves", worker.name)
        worker.leave(temporary=fault.who // 16 % 2 == 0)
        if fault.much:
            worker.node.comes_back(fault.span_ms)


def _step_away(world: World, fault: ScheduledFault) -> None:
    static = [worker for worker in world.workers() if worker.node.instance_id is not None]
    if static:
        worker = static[fault.who % len(static)]
        world.story.tell("{} leaves for a while", worker.name)
        worker.leave(temporary=True)
        worker.node.comes_back(fault.span_ms)


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
    if worker := _alive(world, fault):
        worker.engine.hangs = True


def _kill_writing(world: World, fault: ScheduledFault) -> None:
    world.process.doom(list(Border)[fault.much % len(Border)], fault.span_ms)


def _bad_assignor(world: World, fault: ScheduledFault) -> None:
    for node in world.nodes:
        node.assignor.spoil(Blunder(fault.much % len(Blunder)))


def _slow_assignor(world: World, fault: ScheduledFault) -> None:
    for node in world.nodes:
        node.assignor.slow(fault.span_ms)


def _reason(world: World, fault: ScheduledFault) -> None:
    if worker := _alive(world, fault):
        worker.node.assignor.call_for_rebalance()


def _connector(world: World, fault: ScheduledFault) -> str:
    return f"c{fault.who % (world.schedule.size.connectors + CONNECTORS_MORE)}"


def _put(world: World, fault: ScheduledFault) -> None:
    config = {"v": str(fault.much)}
    names = [_connector(world, fault._replace(who=fault.who + number)) for number in range(2)]
    both = put_at_once(GROUP_ID, names, config, fault.number)
    world.command(PutConnector(GROUP_ID, names[0], config) if fault.who // 16 % 2 else both)


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


def _place(worker: str, fault: ScheduledFault) -> GroupCommand:
    resource = Resource(f"c{fault.who % 2}", fault.who // 2 % 3 - 1)
    pins = ((), (worker,), None)[fault.much % 3]
    return SetPlacement(GROUP_ID, resource, weight=1 + fault.much, pins=pins)


def _configure(settings: Settings, world: World, fault: ScheduledFault) -> None:
    key, values = settings[fault.much % len(settings)]
    world.command(ConfigureGroup(GROUP_ID, {key: values[fault.who % len(values)]}))
    back = ConfigureGroup(GROUP_ID, {key: None})
    world.clock.after(fault.span_ms, world.command, back)


def _set_state(state: RunState, world: World, fault: ScheduledFault) -> None:
    world.command(SetTargetState(GROUP_ID, _connector(world, fault), state))


def _restart(world: World, fault: ScheduledFault) -> None:
    task = fault.who // 16 % 4 - 1
    resource = Resource(_connector(world, fault), task)
    include_tasks, only_failed = fault.much % 2 > 0, fault.much // 2 % 2 > 0
    world.command(Restart(GROUP_ID, resource, include_tasks, only_failed))


def _fail(world: World, fault: ScheduledFault) -> None:
    if worker := _alive(world, fault):
        worker.fail(fault.much)


def _alter(world: World, fault: ScheduledFault) -> None:
    """Set offsets as soon as the connector is stopped, if it stops in time."""
    name = _connector(world, fault)
    task = Resource(name, fault.who // 16 % 3)
    row = 1 + fault.who % 100
    offsets = None if fault.much > FEW else [(partition(task), {ROW: row} if fault.much else None)]
    how = "altered" if offsets else "reset"
    _set_state(RunState.STOPPED, world, fault)
    for number in range(1, ATTEMPTS):
        alter = AlterOffsets(GROUP_ID, name, how, offsets)
        world.clock.after(fault.span_ms * number // ATTEMPTS, world.command, alter)
    world.clock.after(fault.span_ms, _set_state, RunState.RUNNING, world, fault)


def _roll(world: World, fault: ScheduledFault) -> None:
    if worker := _alive(world, fault):
        worker.node.roll(fault.span_ms, to_classic=not worker.is_classic)


def _host(world: World, fault: ScheduledFault) -> SimulatedHost | None:
    return None if world.hosts is None else world.hosts.aim(fault.who)


def _crash_host(world: World, fault: ScheduledFault, *, loses_disk: bool) -> None:
    host = _host(world, fault)
    if host is not None and host.is_up:
        for node in world.nodes_at(host):
            if node.live is not None:
                node.live.die(is_seen=False)
                node.comes_back(fault.span_ms)
        host.crash(loses_disk=loses_disk)
        world.clock.after(fault.span_ms, host.boot)


def _freeze_host(world: World, fault: ScheduledFault) -> None:
    if host := _host(world, fault):
        host.freeze(fault.span_ms)
        for node in world.nodes_at(host):
            if node.live is not None:
                node.live.freeze(fault.span_ms, ticks_first=fault.much % 2 == 0)


def _cut_host(world: World, fault: ScheduledFault, *, stores: bool) -> None:
    if world.hosts is not None and (host := _host(world, fault)):
        world.hosts.cut(host, fault.much, fault.span_ms, stores=stores)


def _spoil_wire(world: World, fault: ScheduledFault, *, source: bool, stores: bool) -> None:
    """Delay what a host sends next, or lose what it would hear, where there is no length."""
    if world.hosts is not None and (host := _host(world, fault)):
        other = STORE if stores else world.hosts.hosts[fault.much % len(world.hosts.hosts)].name
        wire = (host.name, other) if source else (other, host.name)
        world.hosts.wires.spoil(wire, fault.span_ms or None)


def _move(world: World, fault: ScheduledFault) -> None:
    if world.hosts is not None:
        world.hosts.move(fault.who)


SETTINGS: Final[Settings] = (
    ("session.timeout.ms", ("12000", "16000")),
    ("session.timeout.ms", ("20000",)),
    ("heartbeat.interval.ms", ("1000", "2000")),
    ("scheduled.rebalance.max.delay.ms", ("0", "5000", "30000")),
    ("assignment.interval.ms", ("2000", "10000")),
    ("member.request.rate", ("1", "5")),
    ("group.max.size", ("2", "100")),
)

MIGRATION: Final[Settings] = (("group.migration.policy", ("disabled", "upgrade", "downgrade")),)

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
    Fault.KILL_GROUP: lambda world, fault: world.process.die(fault.span_ms),
    Fault.KILL_WRITING: _kill_writing,
    Fault.FREEZE_GROUP: lambda world, by: world.process.freeze(
        by.span_ms, ticks_first=not by.much % 2
    ),
    Fault.BAD_ASSIGNOR: _bad_assignor,
    Fault.SLOW_ASSIGNOR: _slow_assignor,
    Fault.REASON: _reason,
    Fault.PUT: _put,
    Fault.DELETE: lambda world, by: world.command(DeleteConnector(GROUP_ID, _connector(world, by))),
    Fault.SPLIT: _split,
    Fault.EXODUS: _exodus,
    Fault.CLOCK: _jump,
    Fault.CORDON: partial(_order, lambda at, by: Cordon(GROUP_ID, at, drain=by.much % 2 == 0)),
    Fault.UNCORDON: partial(_order, lambda at, _: Uncordon(GROUP_ID, at)),
    Fault.EXPECT: partial(_order, lambda at, by: Expect(GROUP_ID, at, by.span_ms)),
    Fault.PLACE: partial(_order, _place),
    Fault.REBALANCE: partial(_order, lambda _, __: Rebalance(GROUP_ID)),
    Fault.REMOVE: partial(_order, lambda at, by: RemoveMember(GROUP_ID, at, force=by.much > 0)),
    Fault.CONFIGURE: partial(_configure, SETTINGS),
    Fault.PAUSE: partial(_set_state, RunState.PAUSED),
    Fault.STOP: partial(_set_state, RunState.STOPPED),
    Fault.RESUME: partial(_set_state, RunState.RUNNING),
    Fault.RESTART: _restart,
    Fault.FAIL: _fail,
    Fault.ALTER: _alter,
    Fault.ROLL: _roll,
    Fault.CONVERT: lambda world, by: world.roll_all(by.span_ms, to_classic=by.who % 2 > 0),
    Fault.MIGRATION: partial(_configure, MIGRATION),
    Fault.CRASH_HOST: partial(_crash_host, loses_disk=False),
    Fault.LOSE_DISK: partial(_crash_host, loses_disk=True),
    Fault.FREEZE_HOST: _freeze_host,
    Fault.CUT_STORE: partial(_cut_host, stores=True),
    Fault.CUT_HOSTS: partial(_cut_host, stores=False),
    Fault.LATE_WRITE: partial(_spoil_wire, source=True, stores=True),
    Fault.LOSE_WORD: partial(_spoil_wire, source=False, stores=True),
    Fault.LATE_ANSWER: partial(_spoil_wire, source=True, stores=False),
    Fault.MOVE: _move,
}
