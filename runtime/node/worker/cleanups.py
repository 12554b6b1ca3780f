"""The cleanups of tasks without an owner, derived from the log (DATA_PLANE §6).

The staged files of a removed task can be found only with its last config, so only by a worker that
saw this config. All other cleanups follow from the current state of the log.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from ....events.group import Group
from ....events.model import Resource, Resources, TaskConfig, Token
from ....events.placement import work_in
from ....events.records import TargetState

ANY_GENERATION = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The cleanup of one task without an owner: publish its commits, sweep its staged files.

    `connector_config` and `config` define its sink. Tokens up to `stale` are fenced, so what was
    staged under them can be swept; None: the next owner sweeps. `forgets` is set for a connector
    that is being deleted: the time of its config; its source deletes its external state (such as a
    replication slot). `stop` is set for a STOPPED connector: its source may release resources.
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

    def cleanup(self, task: Resource, stale: Token | None = None) -> Cleanup:
        """Return its cleanup; a task number beyond the split gets the config of the last task."""
        config = self.tasks[min(task.task, len(self.tasks) - 1)].config
        return Cleanup(task, self.connector_config, config, stale)


class OrphanedTasks:
    """The last known configs of all connectors, including deleted ones whose sink needs cleanup."""

    def __init__(self) -> None:
        self._splits: dict[str, _Split] = {}
        """The task configs of each connector, by name."""
        self._gone: dict[Resource, _Split] = {}
        """Removed tasks, to be swept once they have no owner; each with its last split."""
        self.to_forget: Mapping[Resource, int] = {}
        """The tasks whose source has to delete its external state, with the time of its config."""
        self.forgot: Set[tuple[Resource, int]] = frozenset()
        """Those of `to_forget` that are done."""
        self.stops: Mapping[Resource, TargetState] = {}
        """The tasks of STOPPED connectors, each with that target state."""
        self.released: Set[tuple[Resource, TargetState]] = frozenset()
        """Those of `stops` whose source has released its resources."""

    def follow(self, group: Group) -> None:
        """Update from the group: find removed tasks, and deleted or stopped connectors."""
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

    def cleanups(self, group: Group, unpublished: Resources) -> Iterator[Cleanup]:
        """Yield the cleanups that are due in this state of the group; each sweep only once."""
        swept = {task: self._gone.pop(task) for task in [*self._gone] if _is_over(group, task)}
        stale = Token(group.assigned_epoch, ANY_GENERATION)
        for task, last in swept.items():
            yield last.cleanup(task, stale)
        for task in unpublished - swept.keys() - group.owner.keys():
            if split := self._splits.get(task.connector):
                yield split.cleanup(task)
        for task, stop in self.stops.items() - self.released:
            yield replace(self._splits[task.connector].cleanup(task), stop=stop)
        for task, forgets in self.to_forget.items() - self.forgot:
            if _is_over(group, task):
                yield replace(self._splits[task.connector].cleanup(task), forgets=forgets)

    def forgotten(self) -> Mapping[str, int]:
        """Return the connectors whose sources have all deleted their state, with config times."""
        left = {task.connector for task, _ in self.to_forget.items() - self.forgot}
        all_of_them = {task.connector: at_ms for task, at_ms in self.to_forget.items()}
        return {name: at_ms for name, at_ms in all_of_them.items() if name not in left}


def _is_over(group: Group, task: Resource) -> bool:
    """Return whether a task has no owner and is not wanted by the config or the target."""
    is_wanted = task in group.configured or task in group.target_owner
    return not is_wanted and task not in group.owner
