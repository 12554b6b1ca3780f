"""How each kind of trouble befalls a world."""

from collections.abc import Callable
from functools import partial
from typing import Final

from ...actors.messages.commands import GroupCommand
from ...actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteGroup,
    Expect,
    Rebalance,
    RemoveMember,
    Uncordon,
)
from ...actors.messages.orders import Place as Put
from ...actors.messages.work import DeleteConnector, PutConnector
from ...events.model import Resource
from .assignor import Blunder
from .group_process import Border
from .log import GROUP_ID
from .network import Fault, Line, Way
from .plan import Kind, Trouble
from .world import Place, World

CONNECTORS_MORE: Final = 2
"""So many more connectors may come than there were to begin with."""


def schedule(world: World) -> None:
    """Have all troubles of the world's plan come when their time has come."""
    for trouble in world.plan.troubles:
        world.clock.after(trouble.at_ms, _strike, world, trouble)


def calm(world: World) -> None:
    """End all troubles, and call off those that were still to come."""
    world.story.tell("from now on nothing goes wrong any more")
    world.is_calm = True
    world.network.calm()
    world.process.spare()
    for place in world.places:
        place.assignor.heal()


def _strike(world: World, trouble: Trouble) -> None:
    world.story.tell("[{}] {}", trouble.number, trouble.kind.value)
    BEFALL[trouble.kind](world, trouble)


def _inhabited(world: World, trouble: Trouble) -> Place | None:
    """Return a place where somebody lives."""
    inhabited = [place for place in world.places if place.live is not None]
    return inhabited[trouble.who % len(inhabited)] if inhabited else None


def _line(world: World, trouble: Trouble) -> Line:
    place = _inhabited(world, trouble) or world.places[0]
    return place.number, Way.TO_GROUP if trouble.who // 16 % 2 else Way.TO_WORKER


def _spoil_messages(fault: Fault, world: World, trouble: Trouble) -> None:
    messages = RUNS[fault][trouble.much]
    world.network.strike(_line(world, trouble), fault, trouble.span_ms, messages)


def _repeat(world: World, trouble: Trouble) -> None:
    """Repeat old messages now, or to the group's next process before anybody else speaks."""
    line, messages = _line(world, trouble), RUNS[Fault.DOUBLE][trouble.much]
    repeat = partial(world.network.repeat, line, messages)
    if trouble.who // 32 % 2:
        world.echoes.append(repeat)
    else:
        repeat(trouble.span_ms)


def _cut(world: World, trouble: Trouble) -> None:
    number, way = _line(world, trouble)
    for each in (way,) if trouble.much % 2 else Way:
        world.network.cut((number, each), trouble.span_ms)


def _crash(world: World, trouble: Trouble) -> None:
    place = _inhabited(world, trouble)
    if place is not None and place.live is not None:
        world.story.tell("{} dies", place.live.name)
        place.live.die()
        if trouble.much:
            place.comes_back(trouble.span_ms)


def _freeze(world: World, trouble: Trouble) -> None:
    place = _inhabited(world, trouble)
    if place is not None and place.live is not None:
        world.story.tell("{} freezes for {} ms", place.live.name, trouble.span_ms)
        place.live.freeze(trouble.span_ms, ticks_first=trouble.much % 2 == 0)


def _leave(world: World, trouble: Trouble) -> None:
    place = _inhabited(world, trouble)
    if place is not None and place.live is not None:
        world.story.tell("{} leaves", place.live.name)
        place.live.leave(temporary=trouble.who // 16 % 2 == 0)
        if trouble.much:
            place.comes_back(trouble.span_ms)


def _step_away(world: World, trouble: Trouble) -> None:
    static = [place for place in world.places if place.live and place.instance_id is not None]
    if static:
        place = static[trouble.who % len(static)]
        if place.live is not None:
            world.story.tell("{} leaves for a while", place.live.name)
            place.live.leave(temporary=True)
            place.comes_back(trouble.span_ms)


def _exodus(world: World, trouble: Trouble) -> None:
    for worker in list(world.workers()):
        worker.leave()
        worker.place.comes_back(trouble.span_ms)
    for number in range(4):
        world.clock.after(trouble.span_ms * number // 4, world.command, DeleteGroup(GROUP_ID))
    for number in range(world.plan.size.connectors):
        put = PutConnector(GROUP_ID, f"c{number}", {"v": "0"})
        world.clock.after(trouble.span_ms, world.command, put)


def _join(world: World, trouble: Trouble) -> None:
    empty = [place for place in world.places if place.live is None]
    if empty:
        empty[trouble.who % len(empty)].comes()


def _hang(world: World, trouble: Trouble) -> None:
    place = _inhabited(world, trouble)
    if place is not None and place.live is not None:
        place.live.engine.hangs = True


def _kill_group(world: World, trouble: Trouble) -> None:
    world.process.die(trouble.span_ms)


def _kill_writing(world: World, trouble: Trouble) -> None:
    world.process.doom(list(Border)[trouble.much % len(Border)], trouble.span_ms)


def _freeze_group(world: World, trouble: Trouble) -> None:
    world.process.freeze(trouble.span_ms, ticks_first=trouble.much % 2 == 0)


def _bad_assignor(world: World, trouble: Trouble) -> None:
    for place in world.places:
        place.assignor.spoil(Blunder(trouble.much % len(Blunder)))


def _slow_assignor(world: World, trouble: Trouble) -> None:
    for place in world.places:
        place.assignor.slow(trouble.span_ms)


def _reason(world: World, trouble: Trouble) -> None:
    place = _inhabited(world, trouble)
    if place is not None and place.live is not None:
        place.live.call_for_rebalance()


def _connector(world: World, trouble: Trouble) -> str:
    return f"c{trouble.who % (world.plan.size.connectors + CONNECTORS_MORE)}"


def _put(world: World, trouble: Trouble) -> None:
    config = {"v": str(trouble.much)}
    world.command(PutConnector(GROUP_ID, _connector(world, trouble), config))


def _delete(world: World, trouble: Trouble) -> None:
    world.command(DeleteConnector(GROUP_ID, _connector(world, trouble)))


def _split(world: World, trouble: Trouble) -> None:
    for worker in world.workers():
        if (trouble.who + worker.place.number) % 2:
            worker.split(trouble.much, trouble.who)


def _jump(world: World, trouble: Trouble) -> None:
    ahead = 1 if trouble.much % 2 else -1
    world.clock.set_wall(world.clock.skew_ms + ahead * trouble.span_ms)
    world.story.tell("the wall clock is {} ms off", world.clock.skew_ms)


def _order(make: Callable[[str, Trouble], GroupCommand], world: World, trouble: Trouble) -> None:
    place = world.places[trouble.who % len(world.places)]
    world.command(make(place.instance_id or place.url, trouble))


def _cordon(worker: str, trouble: Trouble) -> GroupCommand:
    return Cordon(GROUP_ID, worker, drain=trouble.much % 2 == 0)


def _uncordon(worker: str, _: Trouble) -> GroupCommand:
    return Uncordon(GROUP_ID, worker)


def _expect(worker: str, trouble: Trouble) -> GroupCommand:
    return Expect(GROUP_ID, worker, trouble.span_ms)


def _remove(worker: str, trouble: Trouble) -> GroupCommand:
    return RemoveMember(GROUP_ID, worker, force=trouble.much > 0)


def _place(worker: str, trouble: Trouble) -> GroupCommand:
    resource = Resource(f"c{trouble.who % 2}", trouble.who // 2 % 3 - 1)
    pins = ((), (worker,), None)[trouble.much % 3]
    return Put(GROUP_ID, resource, weight=1 + trouble.much, pins=pins)


def _rebalance(_: str, __: Trouble) -> GroupCommand:
    return Rebalance(GROUP_ID)


def _configure(world: World, trouble: Trouble) -> None:
    key, values = SETTINGS[trouble.much % len(SETTINGS)]
    world.command(ConfigureGroup(GROUP_ID, {key: values[trouble.who % len(values)]}))
    back = ConfigureGroup(GROUP_ID, {key: None})
    world.clock.after(trouble.span_ms, world.command, back)


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
    Fault.LOSE: (1, 1, 1, 1, 2, 2, 3, 4),
    Fault.DOUBLE: (1, 1, 2, 3, 5, 10, 20, 40),
    Fault.DELAY: (1, 1, 1, 2, 3, 5, 10, 20),
}
"""How many messages in a row go wrong; what is lost for long is a cut."""

BEFALL: Final[dict[Kind, Callable[[World, Trouble], None]]] = {
    Kind.LOSE: partial(_spoil_messages, Fault.LOSE),
    Kind.DOUBLE: partial(_spoil_messages, Fault.DOUBLE),
    Kind.DELAY: partial(_spoil_messages, Fault.DELAY),
    Kind.REPEAT: _repeat,
    Kind.CUT: _cut,
    Kind.CRASH: _crash,
    Kind.FREEZE: _freeze,
    Kind.LEAVE: _leave,
    Kind.STEP_AWAY: _step_away,
    Kind.JOIN: _join,
    Kind.HANG: _hang,
    Kind.KILL_GROUP: _kill_group,
    Kind.KILL_WRITING: _kill_writing,
    Kind.FREEZE_GROUP: _freeze_group,
    Kind.BAD_ASSIGNOR: _bad_assignor,
    Kind.SLOW_ASSIGNOR: _slow_assignor,
    Kind.REASON: _reason,
    Kind.PUT: _put,
    Kind.DELETE: _delete,
    Kind.SPLIT: _split,
    Kind.EXODUS: _exodus,
    Kind.CLOCK: _jump,
    Kind.CORDON: partial(_order, _cordon),
    Kind.UNCORDON: partial(_order, _uncordon),
    Kind.EXPECT: partial(_order, _expect),
    Kind.PLACE: partial(_order, _place),
    Kind.REBALANCE: partial(_order, _rebalance),
    Kind.REMOVE: partial(_order, _remove),
    Kind.CONFIGURE: _configure,
}
