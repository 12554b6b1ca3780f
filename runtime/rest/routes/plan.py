"""`/groups/{g}/plan`: what would come of changes, computed here and written nowhere.

The group's log is all that is read, and no actor is asked: a plan can be had while the group
rebalances, and `settled` is then false. A connector's config is examined as if it were sent.
Assignors of others compute in a process that lives for the plan.
"""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ....actors.group.computing.preview import evolve_copy
from ....actors.messages.assignors import Metadata, Worker
from ....actors.messages.computing import Assignment, Snapshot
from ....actors.messages.errors import Error
from ....events.group import Group
from ....projections.moves import Measured
from ...connectors.common_keys import COMMON, TASKS_MAX
from ...planning.changes import Change, ConnectorPut
from ...planning.compare import make_plan
from ...planning.dry_run import DryRunAssignor, PlanError
from ...planning.report import Plan
from ...planning.sandbox import all_assignors
from ..backend.commands import known
from ..backend.configs import check_name, named, prepare, warnings_of
from ..backend.service import Served, Service
from ..http.bodies import RequiresJson
from ..http.errors import ApiError
from . import proposal

router = APIRouter(tags=["groups"])

PLAN_SECONDS: Final = 20
"""How long a plan may take: who asks for one gives up in the end."""
WAIT_SECONDS: Final = 30
"""How long a plan waits for its turn."""

_STATUS: Final = {
    Error.UNKNOWN_MEMBER_ID: HTTPStatus.NOT_FOUND,
    Error.UNKNOWN_CONNECTOR: HTTPStatus.NOT_FOUND,
    Error.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    Error.INVALID_CONFIG: HTTPStatus.BAD_REQUEST,
}
"""What a change is refused with that makes no sense; others do, but not as the group is."""


@router.post("/groups/{group}/plan", dependencies=[RequiresJson])
def plan(service: Served, group: str, body: proposal.Proposal) -> JSONResponse:
    """Tell what would move, start, stop and stay if these changes were made now.

    The end state is that of a group that is left alone meanwhile. A downtime is that of past
    hand-overs, of the connector's own if it had any; null if none was measured. `warnings` are
    of configs that would be taken as they are: keys that nobody reads.
    """
    known(service, group)
    with _one_at_a_time(service):
        with service.logs.apart(group) as logs:
            measured = logs.downtimes()
        with service.logs.reading(group) as logs:
            copied = evolve_copy(logs.group, ())
        changes = _changes(service, copied, body)
        planned = _planned(service, copied, measured, changes)
    return JSONResponse({**planned.to_json(), "warnings": [*_warnings(service, changes)]})


@contextmanager
def _one_at_a_time(service: Service) -> Generator[None]:
    if not service.planning.acquire(timeout=WAIT_SECONDS):
        busy = "other plans are being made: try again in a moment"
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
    try:
        yield
    finally:
        service.planning.release()


def _planned(service: Service, group: Group, measured: Measured, changes: Sequence[Change]) -> Plan:
    late_at, now_ms = time.monotonic() + PLAN_SECONDS, time.time_ns() // 1_000_000
    try:
        with all_assignors(service.assignors, service.assignor_log, late_at) as assignors:
            in_time = {name: _InTime(each, late_at) for name, each in assignors.items()}
            return make_plan(group, changes, in_time, measured, now_ms)
    except PlanError as refused:
        status = _STATUS.get(refused.error, HTTPStatus.CONFLICT)
        raise ApiError(status, str(refused)) from None


def _changes(service: Service, group: Group, body: proposal.Proposal) -> Sequence[Change]:
    """Return what is proposed, in its order; raises `ApiError` if that is nothing, or too much."""
    puts = _puts(service, group, body.connectors)
    if sum(each.tasks for each in puts) + sum(body.scale.values()) > proposal.TASKS_MAX:
        most = f"a plan is made for at most {proposal.TASKS_MAX} tasks"
        raise ApiError(HTTPStatus.BAD_REQUEST, f"{most}: plan for fewer connectors at once")
    changes = [*body.workers(service.traits), *body.deleted(), *puts, *body.scaled()]
    if not changes:
        members = ", ".join(each for each in proposal.Proposal.model_fields if each != "worker")
        raise ApiError(HTTPStatus.BAD_REQUEST, f"nothing is to be changed: give any of {members}")
    if body.worker.model_fields_set and not body.add_workers:
        nobody = "worker says what added workers are able to, and add_workers adds none"
        raise ApiError(HTTPStatus.BAD_REQUEST, nobody)
    return changes


def _warnings(service: Service, changes: Sequence[Change]) -> Iterator[str]:
    for each in changes:
        if isinstance(each, ConnectorPut):
            for warning in warnings_of(service.plugins, each.config):
                yield f"{each.connector}: {warning}"


@dataclass(frozen=True, slots=True)
class _InTime:
    """An assignor that gives up on a plan that takes too long."""

    assignor: DryRunAssignor
    late_at: float

    def metadata(self, worker: Worker) -> Metadata:
        self._look_at_the_clock()
        return self.assignor.metadata(worker)

    def assign(self, group: Snapshot) -> Assignment:
        self._look_at_the_clock()
        return self.assignor.assign(group)

    def _look_at_the_clock(self) -> None:
        if time.monotonic() > self.late_at:
            late = f"the plan takes longer than {PLAN_SECONDS} s: plan for fewer changes at once"
            raise PlanError(Error.INVALID_ASSIGNMENT, late)


def _puts(
    service: Service, group: Group, given: Sequence[proposal.PlannedConnector]
) -> Sequence[ConnectorPut]:
    """Return a change for each connector; of several, an error says which one it is about."""
    puts: list[ConnectorPut] = []
    for each in given:
        try:
            puts.append(_put(service, group, each))
        except ApiError as refused:
            if len(given) == 1:
                raise
            told = f"connector {each.name.strip()}: {refused.message}"
            raise ApiError(refused.status, told) from None
    return puts


def _put(service: Service, group: Group, given: proposal.PlannedConnector) -> ConnectorPut:
    """Return a change whose config was examined, and sealed, as for the real one."""
    name = given.name.strip()
    check_name(name)
    before = group.connectors.get(name)
    stored: Mapping[str, str] = before.config if before else {}
    config = prepare(service.plugins, service.vault, named(name, given.config), stored).config
    return ConnectorPut(name, config, _tasks(name, config))


def _tasks(name: str, config: Mapping[str, str]) -> int:
    """Return into how many tasks a connector may split; only it knows whether it will."""
    (definition,) = (each for each in COMMON.definitions if each.name == TASKS_MAX)
    try:
        tasks = definition.parse(config.get(TASKS_MAX))
    except ValueError:  # it may be a reference, which only a worker can follow
        tasks = None
    if not isinstance(tasks, int) or tasks > proposal.TASKS_MAX:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            f"{name}: a plan needs {TASKS_MAX} as a number, and at most {proposal.TASKS_MAX}",
        )
    return tasks
