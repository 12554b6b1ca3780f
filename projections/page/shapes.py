"""The shape of a connector on a page: one letter for each task, and the worst of them all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ...events.group import Group
from ...events.model import ErrorClass, Resource, RunState
from ..views import ResourceStatus, resource_status
from .streaks import Streaks
from .troubles import RESTING, trouble_of

BAD, WAIT, OFF, FINE = "bad", "wait", "off", "ok"
"""Failed; waits, is unassigned, restarts or has a remark; paused or stopped; all is well."""
RUNS, FAILED, WAITS, RESTS, MOVES, UNASSIGNED = "k", "f", "w", "p", "m", "u"
"""The letters of tasks."""
WORDS: Final[Mapping[RunState, str]] = {
    RunState.PAUSED: "paused",
    RunState.STOPPED: "stopped",
}
NO_STREAKS: Final = Streaks(())
FAILED_WORD: Final = RunState.FAILED.value


@dataclass(frozen=True, slots=True)
class ConnectorShape:
    """The state of a connector and its tasks at one moment."""

    connector: str
    statuses: Mapping[Resource, ResourceStatus]
    """Of the connector and of each of its tasks, in order."""
    cells: str
    """One letter for each task."""
    owners: tuple[str, ...]
    """The member that each task is granted to; empty: none."""
    shape: str
    """The worst of the connector and its tasks: `BAD`, `WAIT`, `OFF` or `FINE`."""
    reason: str
    """The reason of the worst one in a line; empty if all is well."""
    since_ms: int
    """Since when it is in trouble; if it is in none, since when it is in this shape."""
    troubles: Counter[str]
    """How many of the connector and its tasks have which trouble."""
    began_ms: Mapping[Resource, int]
    """Since when each of these has been in trouble, as far as the log tells."""


def shape_of(
    group: Group, name: str, hold: str = "", streaks: Streaks = NO_STREAKS
) -> ConnectorShape:
    """Return the shape of a connector; `hold` is why no task can commit, empty if all can."""
    statuses = {each: _status_of(group, each, hold) for each in _resources_of(group, name)}
    wrong = {
        each: trouble
        for each, status in statuses.items()
        if (trouble := trouble_of(status.state.value, status.why))
    }
    began_ms = {each: at for each in wrong if (at := _began_ms(group, each, streaks)) is not None}
    shape = _shape_of(group, name, Counter(wrong.values()))
    worst = [each for each, trouble in wrong.items() if shape == WAIT or trouble == FAILED_WORD]
    tasks = [each for each in statuses if each.is_task]
    return ConnectorShape(
        name,
        statuses,
        "".join(_letter(group, each, statuses[each]) for each in tasks),
        tuple(group.owner.get(each, "") for each in tasks),
        shape,
        _reason(group, name, shape, [statuses[each].why for each in worst]),
        min(began_ms.values(), default=_steady_ms(group, name, statuses)),
        Counter(wrong.values()),
        began_ms,
    )


def _began_ms(group: Group, resource: Resource, streaks: Streaks) -> int | None:
    """Return since when a resource has been in trouble; None: not known."""
    status = group.statuses.get(resource)
    told = status.time_ms if status else None
    began_ms = streaks.began_ms(resource)
    return told if began_ms is None else began_ms


def _steady_ms(group: Group, name: str, resources: Iterable[Resource]) -> int:
    """Return when something of a connector changed last."""
    times = [status.time_ms for each in resources if (status := group.statuses.get(each))]
    wanted = group.target_states.get(name)
    return max(group.connectors[name].time_ms, wanted.time_ms if wanted else 0, *times)


def _resources_of(group: Group, name: str) -> Iterator[Resource]:
    yield Resource(name)
    yield from (Resource(name, number) for number in group.task_numbers(name))


def _status_of(group: Group, resource: Resource, hold: str) -> ResourceStatus:
    status = resource_status(group, resource)
    if hold and resource.is_task and status.state is RunState.RUNNING and not status.why:
        return ResourceStatus(status.state, status.worker, hold, status.restarts)
    return status


def _shape_of(group: Group, name: str, troubles: Counter[str]) -> str:
    if troubles[FAILED_WORD]:
        return BAD
    if troubles.total():
        return WAIT
    return FINE if group.target_state(name) is RunState.RUNNING else OFF


def _letter(group: Group, task: Resource, status: ResourceStatus) -> str:
    match status.state:
        case RunState.FAILED:
            return FAILED
        case RunState.UNASSIGNED:
            return _letter_of_unassigned(group, task, status)
        case _:
            pass
    holder = group.member(group.owner.get(task, ""))
    if holder is not None and task in holder.current.pending:
        return MOVES
    if status.state.value in RESTING:
        return RESTS
    return WAITS if trouble_of(status.state.value, status.why) else RUNS


def _letter_of_unassigned(group: Group, task: Resource, status: ResourceStatus) -> str:
    if task in group.owner:
        return WAITS if status.why else MOVES
    if task in group.target.unplaceable:
        return UNASSIGNED
    if status.why:
        return WAITS
    return MOVES if task in group.target_owner else UNASSIGNED


def _reason(group: Group, name: str, shape: str, reasons: list[str]) -> str:
    if shape == OFF:
        wanted = group.target_states[name]
        return WORDS[wanted.state] + (f" by {wanted.actor}" if wanted.actor else "")
    if shape == FINE:
        return ""
    return first_line(next(filter(None, reasons), ""))


def first_line(reason: str) -> str:
    """Return the first line of a reason."""
    return reason.partition("\n")[0]


def error_class(reason: str) -> str | None:
    """Return who has to fix an error: config, input, outside or bug; None: it has no error."""
    found = ErrorClass.of(reason)
    return found.value if found else None
