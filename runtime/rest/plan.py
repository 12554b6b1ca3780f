"""`/groups/{g}/plan`: what would come of changes, computed here and written nowhere.

The group's log is all that is read, and no actor is asked: a plan can be had while the group
rebalances, and `settled` is then false. A connector's config is examined as if it were sent.
"""

import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ...actors.errors import Error
from ...actors.group.computing.outlook import foresee
from ...actors.planning.changes import Change, PutConnector
from ...actors.planning.rehearsal import CannotPlan
from ...events.group import Group
from ...projections.downtimes import Measured
from ..connectors.common_keys import COMMON, TASKS_MAX
from ..planning.make import make_plan
from ..planning.plan import Plan
from . import proposal
from .bodies import RequiresJson
from .configs import check_name, named, prepare
from .errors import ApiError
from .replies import known
from .service import Served, Service

router = APIRouter(tags=["groups"])

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
    hand-overs, of the connector's own if it had any; null if none was measured.
    """
    known(service, group)
    with service.logs.reading(group) as logs:
        copied, measured = foresee(logs.group, ()), logs.downtimes()
    return JSONResponse(_planned(service, copied, measured, body).to_json())


def _planned(service: Service, group: Group, measured: Measured, body: proposal.Proposal) -> Plan:
    puts = [_put(service, group, each) for each in body.connectors]
    changes = [*body.workers(), *body.deleted(), *puts, *body.scaled()]
    if not changes:
        members = ", ".join(each for each in proposal.Proposal.model_fields if each != "worker")
        raise ApiError(HTTPStatus.BAD_REQUEST, f"nothing is to be changed: give any of {members}")
    try:
        return make_plan(group, changes, service.assignors, measured, time.time_ns() // 1_000_000)
    except CannotPlan as refused:
        status = _STATUS.get(refused.error, HTTPStatus.CONFLICT)
        raise ApiError(status, str(refused)) from None


def _put(service: Service, group: Group, given: proposal.PlannedConnector) -> Change:
    """Return a change whose config was examined, and sealed, as for the real one."""
    name = given.name.strip()
    check_name(name)
    before = group.connectors.get(name)
    stored: Mapping[str, str] = before.config if before else {}
    config = prepare(service.plugins, service.vault, named(name, given.config), stored)
    return PutConnector(name, config, _tasks(name, config))


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
