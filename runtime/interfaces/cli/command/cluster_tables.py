"""A cluster at a glance, its groups and its assignors, as tables."""

from collections import Counter

from msgspec import Struct

from ...replies.groups import GroupSummary
from ...replies.node import AssignorList, Health, ProcessDescription, WorkerList
from .connector_tables import Expanded, TaskLine, connectors, tasks
from .member_tables import workers
from .printing import FactList, Section, Table


class ClusterStatus(Struct, frozen=True):
    """A cluster at a glance."""

    url: str
    version: str
    cluster_id: str
    health: Health
    groups: list[GroupSummary]
    workers: WorkerList
    connectors: Expanded
    tasks: list[TaskLine]


def status(found: ClusterStatus) -> list[Section]:
    """Return the sections of a cluster at a glance."""
    states = Counter(each.state for each in found.tasks)
    facts = (
        ("Cluster", found.url),
        ("Version", found.version),
        ("Health", found.health.status),
        ("Detail", found.health.message),
        ("Tasks", ", ".join(f"{count} {state}" for state, count in sorted(states.items()))),
    )
    return [
        FactList(facts),
        *groups(found.groups),
        *workers(found.workers),
        *_troubles(found),
        *connectors(found.connectors),
        *tasks(found.tasks),
        *config_warnings(found.connectors),
    ]


def groups(found: list[GroupSummary]) -> list[Section]:
    """Return the table of `/groups`."""
    columns = ("GROUP", "STATE", "EPOCH", "ASSIGNMENT", "MEMBERS", "CONNECTORS", "ASSIGNED")
    rows = [
        (
            each.group_id,
            each.state,
            str(each.group_epoch),
            str(each.assignment_epoch),
            str(each.members),
            str(each.connectors),
            f"{each.assigned}/{each.configured}",
        )
        for each in found
    ]
    warned = [(each.group_id, each.warning) for each in found if each.warning]
    warnings = [Table(("GROUP", "WARNING"), warned, title="Warnings")] if warned else []
    return [Table(columns, rows, "no groups"), *warnings]


def assignors(found: AssignorList) -> list[Section]:
    """Return the tables of `/assignors`: which there are, and the process that runs them."""
    rows = [(each.name, each.origin) for each in found.assignors]
    processes = [_process_row(each) for each in found.processes]
    return [
        Table(("NAME", "ORIGIN"), rows, "no assignors"),
        Table(("PROCESS", "STATE", "RESTARTS", "DETAIL"), processes, "no process is known"),
    ]


def config_warnings(found: Expanded) -> list[Section]:
    """Return what is strange about the configs of connectors; nothing if nothing is."""
    rows = [
        (name, warning)
        for name, entry in sorted(found.items())
        for warning in (entry.status.warnings if entry.status else ())
    ]
    return [Table(("CONNECTOR", "WARNING"), rows, title="Warnings")] if rows else []


def _process_row(each: ProcessDescription) -> tuple[str, ...]:
    pid = "" if each.pid is None else str(each.pid)
    return pid, each.state, str(each.restarts), each.detail


def _troubles(found: ClusterStatus) -> list[Section]:
    """Return what keeps groups and workers from going on; nothing if nothing does."""
    rows = [
        *((f"group {each.group_id}", each.assignor_error) for each in found.groups),
        *(
            (f"worker {each.name}", each.process.detail)
            for each in found.workers.workers
            if each.process
        ),
    ]
    rows = [each for each in rows if each[1]]
    return [Table(("TROUBLE", "REASON"), rows, title="Troubles")] if rows else []
