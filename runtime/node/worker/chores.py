"""Chores: what is left to do for tasks that nobody holds, by what the log says (DATA_PLANE §6).

What was staged for a task that is gone is known by the config that it had last, and so only to who
saw that. All else is in the log as long as it is to be done.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from ....events.connectors import TargetState
from ....events.group import Group
from ....events.model import Resource, Resources, TaskConfig, Token
from ....events.placement import work_in

ANY_GENERATION = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Chore:
    """A task that nobody holds, and what is left to do for it: to publish, then to sweep.

    `connector_config` and `config` lead to its sink. No commit under `stale` or an older token
    is accepted any more; None leaves the sweeping to the task's next owner. `forgets` tells when
    the config of a connector was set that is being deleted, so that its source is to forget what it
    keeps; `stop` that it is STOPPED, so that its source may have something to give up.
    """

    resource: Resource
    connector_config: Mapping[str, str]
    config: Mapping[str, str]
    stale: Token | None = None
    forgets: int | None = None
    stop: TargetState | None = None


@dataclass(frozen=True, slots=True)
class _Split:
    connector_config: Mapping[str, str]
    tasks: tuple[TaskConfig, ...]

    def chore(self, task: Resource, stale: Token | None = None) -> Chore:
        """Return a chore; a task that is gone is known by a sibling's config."""
        config = self.tasks[min(task.task, len(self.tasks) - 1)].config
        return Chore(task, self.connector_config, config, stale)


class Estate:
    """The connectors as they were last seen, so that a deleted one's sink is still known."""

    def __init__(self) -> None:
        self._splits: dict[str, _Split] = {}
        """How each connector splits its work, by name."""
        self._gone: dict[Resource, _Split] = {}
        """The tasks to be swept once nobody holds them, each with the last split that it was in."""
        self.to_forget: Mapping[Resource, int] = {}
        """The tasks whose source is to forget what it keeps, each with the time of its config."""
        self.forgot: Set[tuple[Resource, int]] = frozenset()
        """Those whose source did."""
        self.stops: Mapping[Resource, TargetState] = {}
        """The tasks of the connectors that are STOPPED, each with that stop."""
        self.released: Set[tuple[Resource, TargetState]] = frozenset()
        """Those of which the source gave up what it need not keep."""

    def follow(self, group: Group) -> None:
        """Take note of the tasks that are not among their connector's any more."""
        for name, split in self._splits.items():
            now = group.task_configs.get(name)
            for number in range(len(now.tasks) if now else 0, len(split.tasks)):
                self._gone[Resource(name, number)] = split
        self._splits = {
            name: _Split(work_in(group.connectors[name].config), split.tasks)
            for name, split in group.task_configs.items()
            if split.tasks and name in group.connectors
        }
        self.stops = {
            Resource(name, number): group.target_states[name]
            for name, split in self._splits.items()
            if group.is_stopped(name)
            for number in range(len(split.tasks))
        }
        self.released &= self.stops.items()
        self.to_forget = {
            Resource(name, number): group.connectors[name].time_ms
            for name, split in self._splits.items()
            if group.connectors[name].to_forget
            for number in range(len(split.tasks))
        }
        self.forgot &= self.to_forget.items()

    def chores(self, group: Group, unpublished: Resources) -> Iterator[Chore]:
        """Yield what is to be done as the log stands; a task is to be swept only once."""
        swept = {task: self._gone.pop(task) for task in [*self._gone] if _is_over(group, task)}
        stale = Token(group.assigned_epoch, ANY_GENERATION)
        for task, last in swept.items():
            yield last.chore(task, stale)
        for task in unpublished - swept.keys() - group.owner.keys():
            if split := self._splits.get(task.connector):
                yield split.chore(task)
        for task, stop in self.stops.items() - self.released:
            yield replace(self._splits[task.connector].chore(task), stop=stop)
        for task, forgets in self.to_forget.items() - self.forgot:
            if _is_over(group, task):
                yield replace(self._splits[task.connector].chore(task), forgets=forgets)

    def forgotten(self) -> Mapping[str, int]:
        """Return the connectors of which every source forgot, with the times of their configs."""
        left = {task.connector for task, _ in self.to_forget.items() - self.forgot}
        all_of_them = {task.connector: at_ms for task, at_ms in self.to_forget.items()}
        return {name: at_ms for name, at_ms in all_of_them.items() if name not in left}


def _is_over(group: Group, task: Resource) -> bool:
    """Tell whether nobody holds a task, nor will, unless a target is computed anew."""
    is_wanted = task in group.configured or task in group.target_owner
    return not is_wanted and task not in group.owner
