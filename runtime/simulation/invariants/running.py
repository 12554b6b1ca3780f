"""Checks which workers run what, and the target states of connectors (invariants 1 and 8).

At most one worker that is awake runs a resource. An order for a connector stays in force over every
death of the group's process once it was answered. An order without an answer may have been carried
out or not.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ....actors.messages.commands import GroupCommand, Reply
from ....actors.messages.errors import SUCCESS
from ....actors.messages.orders import DeleteConnector, PutConnector, PutConnectors, SetTargetState
from ....events.group import Group
from ....events.model import Resource, RunState, Token
from ....events.records import ConnectorConfig, Record, TargetState, Tombstone
from ..environment.clock import Story, Violation

TOGETHER: Final = "together"
"""A key of configs: by which command several connectors were put at once."""


def put_at_once(
    group_id: str, names: Iterable[str], config: Mapping[str, str], number: int
) -> PutConnectors:
    """Return the command that puts several connectors at once, under a number of its own."""
    together = {**config, TOGETHER: str(number)}
    return PutConnectors(group_id, {name: together for name in names})  # noqa: C420  # none changes it


class RunningWorker(Protocol):
    """A worker that runs resources; while frozen it does nothing visible."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def is_awake(self) -> bool:
        """Whether it is not frozen."""
        ...


class Exclusivity:
    """The workers that run each resource: at most one of them may be awake."""

    def __init__(self, story: Story) -> None:
        self.moves = 0
        """How often a resource began to run at another worker than before."""
        self._story = story
        self._running: dict[Resource, list[RunningWorker]] = {}
        self._last: dict[Resource, str] = {}
        """Which worker ran each resource last."""
        self._disowned: set[str] = set()
        """Workers that live and were reported to have ended: others may be given what they run."""
        self._under: dict[tuple[Resource, Token], str] = {}
        """Which worker runs, or ran, a resource under a token."""

    def claim(self, runner: RunningWorker, resource: Resource, token: Token) -> None:
        """Record the token that a resource runs under; raises `Violation`.

        No two processes may have the same one: nothing could tell their work apart.
        """
        other = self._under.setdefault((resource, token), runner.name)
        if other != runner.name:
            raise Violation(f"7: {runner.name} runs {resource} under {token}, as {other} did")

    def begin(self, runner: RunningWorker, resource: Resource) -> None:
        """Record that a worker starts a resource; raises `Violation`."""
        self._story.tell("{} starts {}", runner.name, resource)
        self._running.setdefault(resource, []).append(runner)
        if self._last.get(resource, runner.name) != runner.name:
            self.moves += 1
        self._last[resource] = runner.name
        self.look(resource)

    def end(self, runner: RunningWorker, resource: Resource) -> None:
        """Record that a worker has stopped a resource."""
        self._story.tell("{} has stopped {}", runner.name, resource)
        self._running[resource].remove(runner)

    def disown(self, name: str) -> None:
        """Ignore what this worker runs until it runs nothing."""
        self._disowned.add(name)

    def own(self, name: str) -> None:
        """Check again what this worker runs."""
        self._disowned.discard(name)

    def look(self, resource: Resource) -> None:
        """Check that a resource runs once at most; raises `Violation`."""
        awake = self._awake(resource)
        if len(awake) > 1:
            raise Violation(f"1: {resource} runs at {' and at '.join(awake)}")

    def see_no_task(self, connector: str, what: str) -> None:
        """Check that no task of a connector runs, because of `what`; raises `Violation`."""
        for resource in self._running:
            if resource.connector == connector and resource.is_task:
                for name in self._awake(resource):
                    raise Violation(f"8: {connector} {what}, and {resource} runs at {name}")

    def _awake(self, resource: Resource) -> list[str]:
        runners = self._running.get(resource, ())
        return [each.name for each in runners if each.is_awake and each.name not in self._disowned]

    def running(self) -> dict[Resource, str]:
        """Return which worker runs each resource."""
        return {
            resource: runner.name
            for resource, runners in self._running.items()
            for runner in runners
        }


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """One order to a connector; of the latest orders the last one executed counts."""

    connector: str
    state: RunState
    is_sure: bool
    """Whether the connector is so once this was answered: a new config changes no old one's."""


class LifecycleInvariants:
    """Checks the orders of people against the answers and the log."""

    def __init__(self, running: Exclusivity) -> None:
        self._running = running
        self._wanted: defaultdict[str, list[Wanted]] = defaultdict(list)
        """What each connector may be: an order that was answered, if any was, and those since."""
        self._put_at_once: dict[str, frozenset[str]] = {}
        """Which connectors a command puts at once, by what their configs say of it."""
        self._configs: dict[str, Mapping[str, str]] = {}
        """The config of each connector in the log."""

    def ask(self, command: GroupCommand) -> Sequence[Wanted]:
        """Record an order before it is carried out; return the states that it wants."""
        wanted: list[Wanted] = []
        match command:
            case SetTargetState(connector=name, state=state):
                wanted = [Wanted(name, state, is_sure=True)]
            case PutConnector(connector=name) | DeleteConnector(connector=name):
                wanted = [Wanted(name, RunState.RUNNING, is_sure=False)]
            case PutConnectors(configs=configs):
                wanted = [Wanted(name, RunState.RUNNING, is_sure=False) for name in configs]
                names = frozenset(configs)
                self._put_at_once |= {each[TOGETHER]: names for each in configs.values()}
            case _:
                pass
        for each in wanted:
            self._wanted[each.connector].append(each)
        return wanted

    def take_reply(self, wanted: Iterable[Wanted], reply: Reply) -> None:
        """Record the reply: orders are executed in their order, or not at all.

        A reply may come after that to a later order: then it says nothing any more.
        """
        for each in wanted:
            orders = self._wanted[each.connector]
            if each not in orders:
                continue
            if reply.error not in SUCCESS:
                orders.remove(each)
            elif each.is_sure:
                del orders[: orders.index(each)]

    def check_orders(self, group: Group) -> None:
        """Check that no order was lost on its way through the log; raises `Violation`."""
        for name, config in group.connectors.items():
            state = group.target_state(name)
            allowed = {each.state for each in self._wanted[name]} or {RunState.RUNNING}
            if not config.deleting and state not in allowed:
                wanted = " or ".join(sorted(each.value for each in allowed))
                raise Violation(f"8: {name} is to be {state.value}, and was wanted {wanted}")

    def see(self, record: Record) -> None:
        """Check a record of the control log."""
        if isinstance(record, TargetState) and record.is_complete:
            self._running.see_no_task(record.connector, "counts as stopped")

    def see_whole(self, records: Iterable[Record]) -> None:
        """Check that one write has all connectors of a command; raises `Violation`."""
        written: defaultdict[str, set[str]] = defaultdict(set)
        for record in records:
            if isinstance(record, Tombstone) and record.kind is ConnectorConfig:
                self._configs.pop(str(record.key[0]), None)
            elif isinstance(record, ConnectorConfig):
                name, config = record.connector, record.config
                if TOGETHER in config and config != self._configs.get(name):
                    written[config[TOGETHER]].add(name)
                self._configs[name] = config
        for command, names in written.items():
            if frozenset(names) != self._put_at_once[command]:
                asked = sorted(self._put_at_once[command])
                raise Violation(f"8: of {asked}, put at once, {sorted(names)} were written alone")

    def see_altered(self, connector: str) -> None:
        """Check that a connector whose offsets are altered runs no task."""
        self._running.see_no_task(connector, "has its offsets set")


def see_tasks(group: Group) -> None:
    """Check that exactly the connectors that should run have tasks; raises `Violation`."""
    for name, config in group.connectors.items():
        state, split = group.target_state(name), group.task_configs.get(name)
        tasks = {each for each in group.configured if each.connector == name and each.is_task}
        every = {Resource(name, number) for number in range(len(split.tasks) if split else 0)}
        if config.deleting or state is RunState.STOPPED:
            every = set[Resource]()
        if tasks != every and (state is not RunState.PAUSED or tasks):
            raise Violation(f"8: {name} is {state.value} with {sorted(tasks)}, not {sorted(every)}")
