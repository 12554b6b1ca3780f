"""The route `/groups/{g}/plan`: a dry run of changes, computed here without any write.

It reads only the group's log, and asks no actor. So a plan is possible during a rebalance; then
`settled` is false. A connector's config is validated as for a real change. The body has the
proposed changes; `runtime.planning` computes the plan.
"""

import asyncio
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta, Struct, field
from msgspec.structs import fields, replace
from starlette.concurrency import run_in_threadpool

from ......actors.messages.errors import Error
from ......events.evolve import evolve_copy
from ......events.group import Group
from ......events.placement import LARGEST_CAPACITY, Abilities, flaw_in_labels
from .....cluster.spec import WorkerTraits
from .....pipeline.spi.keys.common import COMMON
from .....pipeline.spi.keys.common import TASKS_MAX as TASKS_KEY
from .....planning.changes import (
    Change,
    ConnectorDeleted,
    ConnectorScaled,
    ConnectorsPut,
    PlannedConfig,
    WorkerDrained,
    WorkerRemoved,
    WorkersJoined,
)
from .....planning.compare import make_plan
from .....planning.dry_run import PlanError
from .....planning.report import ExpectedDowntimes, Plan
from .....planning.sandbox import all_assignors
from .....security.rights import Right
from ...commands.service import CallerAccess, Served, Service, require_group
from ...server.errors import ApiError
from ...server.parameters import Config, Key, whole
from ...server.routing import Routes
from ...server.values import CONVERT
from ...validation.configs import check_name, remarks_on, with_name

routes = Routes("groups")

PLAN_SECONDS: Final = 20
"""The time limit of a plan, so that its client does not time out."""
WAIT_SECONDS: Final = 30
"""How long a plan waits for the end of another one."""
HISTORY_SECONDS: Final = 5
"""How long a plan waits for past downtimes: the first request reads the whole log."""

UNREAD: Final = (
    "the group's history is still being read: what past moves took is not known yet, ask again"
)
_STATUS: Final = {
    Error.UNKNOWN_MEMBER_ID: HTTPStatus.NOT_FOUND,
    Error.UNKNOWN_CONNECTOR: HTTPStatus.NOT_FOUND,
    Error.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    Error.INVALID_CONFIG: HTTPStatus.BAD_REQUEST,
}
"""Errors of invalid changes; with other errors, the group does not allow the change at present."""


WORKERS_MAX = 100
"""The maximum number of workers that a plan adds: each one is a separate epoch."""
TASKS_MAX = 100_000
"""The maximum number of tasks of a connector in a plan; a cluster has no such limit."""

NAMES_MAX = 100
"""The maximum number of workers, or connectors, in one field of a plan."""

Tasks = Annotated[int, Meta(ge=1, le=TASKS_MAX)]

Names = Annotated[list[Key], Meta(max_length=NAMES_MAX)]


def _label(text: object) -> object:
    """Refuse a text that can be no tag and no zone."""
    if isinstance(whole(text), str) and (flaw := flaw_in_labels([str(text)])):
        raise ValueError(flaw)
    return text


Label = Annotated[str, Meta(extra={CONVERT: _label})]


class NewWorker(Struct, frozen=True, forbid_unknown_fields=True):
    """The capacity and tags of an added worker; null: this node's settings."""

    zone: Label | None = None
    tags: list[Label] | None = None
    capacity: Annotated[int, Meta(ge=1, le=LARGEST_CAPACITY)] | None = None


class PlannedConnector(Struct, frozen=True, forbid_unknown_fields=True):
    """A connector to create or change."""

    name: Key
    config: Config


class Proposal(Struct, frozen=True, forbid_unknown_fields=True):
    """At least one change; they are applied in the order of these fields."""

    add_workers: Annotated[int, Meta(ge=0, le=WORKERS_MAX)] = 0
    """The number of workers that join."""
    worker: NewWorker = field(default_factory=NewWorker)
    """The capacity and tags of each of these."""
    drain: Names = []
    """Workers that give up their work, and stay."""
    remove_workers: Names = []
    """Workers that leave gracefully."""
    delete: Names = []
    """Connectors that are deleted."""
    connectors: Annotated[list[PlannedConnector], Meta(max_length=NAMES_MAX)] = []
    """Connectors that are created or changed; their configs are validated."""
    scale: Annotated[dict[Key, Tasks], Meta(max_length=NAMES_MAX)] = {}
    """Connectors, each with another `tasks.max`."""

    def workers(self, node: WorkerTraits) -> list[Change]:
        """Return the changes of workers; added ones are of this node."""
        changes: list[Change] = []
        if self.add_workers:
            worker, usual = self.worker, node.abilities
            tags = usual.tags if worker.tags is None else frozenset(worker.tags)
            able = Abilities(worker.capacity or usual.capacity, tags)
            changes.append(WorkersJoined(self.add_workers, worker.zone or node.zone, able))
        changes += map(WorkerDrained, self.drain)
        changes += map(WorkerRemoved, self.remove_workers)
        return changes

    def deleted(self) -> list[Change]:
        """Return the connectors to delete."""
        return [ConnectorDeleted(name) for name in self.delete]

    def scaled(self) -> list[Change]:
        """Return the new numbers of tasks of connectors."""
        return [ConnectorScaled(name, tasks) for name, tasks in self.scale.items()]


@routes.add(
    "POST /groups/{group}/plan",
    Right.VIEW,
    errors=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def plan(service: Served, access: CallerAccess, group: str, body: Proposal) -> Plan:
    """Return what would move, start, stop and stay if these changes were made now.

    The end state assumes no other changes meanwhile. A downtime is estimated from past handovers,
    of the same connector if it had any; null if none was measured, or if the history is still being
    read. `warnings` mention that, and unused keys of configs.
    """
    await run_in_threadpool(require_group, service, group)
    expected = await _expected_downtimes(service, group)
    limited = service.limited_to(access, [each.name for each in body.connectors])
    return await run_in_threadpool(_plan, limited, group, body, expected)


async def _expected_downtimes(service: Service, group_id: str) -> ExpectedDowntimes | None:
    """Return past downtimes, None while the group's history is being read."""

    def read() -> ExpectedDowntimes:
        with service.logs.reading_epochs(group_id) as epochs:
            return ExpectedDowntimes.of(epochs.handovers())

    try:
        return await asyncio.wait_for(service.explaining.run(read), HISTORY_SECONDS)
    except TimeoutError:
        return None


def _plan(
    service: Service, group_id: str, body: Proposal, expected: ExpectedDowntimes | None
) -> Plan:
    with _one_at_a_time(service):
        with service.logs.reading(group_id) as logs:
            copied = evolve_copy(logs.group, ())
        changes = _changes(service, copied, body)
        planned = _make(service, copied, expected or ExpectedDowntimes(), changes)
    unread = [UNREAD] if expected is None else []
    return replace(planned, warnings=[*_warnings(service, changes), *unread])


@contextmanager
def _one_at_a_time(service: Service) -> Generator[None]:
    if not service.planning.acquire(timeout=WAIT_SECONDS):
        busy = "other plans are being made: try again in a moment"
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
    try:
        yield
    finally:
        service.planning.release()


def _make(
    service: Service, group: Group, expected: ExpectedDowntimes, changes: Sequence[Change]
) -> Plan:
    now_ms = time.time_ns() // 1_000_000
    try:
        with all_assignors(service.assignors, service.assignor_log, PLAN_SECONDS) as assignors:
            return make_plan(group, changes, assignors, expected, now_ms)
    except PlanError as refused:
        status = _STATUS.get(refused.error, HTTPStatus.CONFLICT)
        raise ApiError(status, str(refused)) from None


def _changes(service: Service, group: Group, body: Proposal) -> Sequence[Change]:
    """Return the proposed changes in order; raises `ApiError` if there are none or too many."""
    puts = _puts(service, group, body.connectors)
    if sum(each.tasks for each in puts) + sum(body.scale.values()) > TASKS_MAX:
        most = f"a plan is made for at most {TASKS_MAX} tasks"
        raise ApiError(HTTPStatus.BAD_REQUEST, f"{most}: plan for fewer connectors at once")
    put = [ConnectorsPut(tuple(puts))] if puts else []
    changes = [*body.workers(service.traits), *body.deleted(), *put, *body.scaled()]
    if not changes:
        members = ", ".join(each.name for each in fields(Proposal) if each.name != "worker")
        raise ApiError(HTTPStatus.BAD_REQUEST, f"nothing is to be changed: give any of {members}")
    if body.worker != NewWorker() and not body.add_workers:
        nobody = "worker says what added workers are able to, and add_workers adds none"
        raise ApiError(HTTPStatus.BAD_REQUEST, nobody)
    return changes


def _warnings(service: Service, changes: Sequence[Change]) -> Iterator[str]:
    for each in changes:
        for put in each.connectors if isinstance(each, ConnectorsPut) else ():
            config = service.kept_answers.added_to(put.config)
            for warning in remarks_on(service.plugins, config).warnings:
                yield f"{put.connector}: {warning}"


def _puts(
    service: Service, group: Group, connectors: Sequence[PlannedConnector]
) -> Sequence[PlannedConfig]:
    """Return the config of each connector; with several, an error names its connector."""
    puts: list[PlannedConfig] = []
    for each in connectors:
        try:
            puts.append(_put(service, group, each))
        except ApiError as refused:
            if len(connectors) == 1:
                raise
            text = f"connector {each.name.strip()}: {refused.message}"
            raise ApiError(refused.status, text) from None
    return puts


def _put(service: Service, group: Group, connector: PlannedConnector) -> PlannedConfig:
    """Return a config that was validated and sealed as for a real change."""
    name = connector.name.strip()
    check_name(name)
    before = group.connectors.get(name)
    stored: Mapping[str, str] = before.config if before else {}
    config = service.seal(with_name(name, connector.config), stored).config
    return PlannedConfig(name, config, _tasks(name, config))


def _tasks(name: str, config: Mapping[str, str]) -> int:
    """Return the maximum number of tasks of a connector; it may use fewer."""
    (definition,) = (each for each in COMMON.definitions if each.name == TASKS_KEY)
    try:
        tasks = definition.parse(config.get(TASKS_KEY))
    except ValueError:  # it may be a reference, which only a worker can resolve
        tasks = None
    if not isinstance(tasks, int) or tasks > TASKS_MAX:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            f"{name}: a plan needs {TASKS_KEY} as a number, and at most {TASKS_MAX}",
        )
    return tasks
