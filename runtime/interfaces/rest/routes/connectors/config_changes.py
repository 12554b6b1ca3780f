"""The routes that create and change connectors, in Connect's format and codes.

No request is refused because of a rebalance; creating a connector waits for the end of a deletion
of the same name. A config is validated before it is sent. The response to a repeated command is
that of its first execution, from the log.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import quote

from msgspec import Meta, Struct, structs
from starlette.concurrency import run_in_threadpool

from ......actors.messages.commands import CommandReply
from ......actors.messages.errors import Error
from ......actors.messages.orders import PutConnector
from ......actors.settings import trimmed
from ......events.log.errors import NoLogError
from ......events.model import RunState
from ......events.records import ConnectorConfig
from .....config.secrets import hide_secrets
from .....pipeline.spi.keys.common import NAME
from .....security.rights import Right
from ....replies.connectors import ConnectorInfo, ConnectorTaskId, InitialState
from ...commands.service import (
    PrincipalName,
    RequireNames,
    Served,
    Service,
    refuse,
    require_written,
)
from ...server.errors import ApiError, not_found
from ...server.parameters import Changes, ChangesBody, Extended, GivenConfigBody, text_of
from ...server.permissions import Reach, RouteRights
from ...server.routing import HttpAnswer, Routes
from ...server.values import CONVERT
from ...validation.configs import SealedConfig, check_name, invalid, with_name
from .descriptions import (
    describe_connector,
    find_connector,
    reason_kept,
    require_connector,
    with_warnings,
)

routes = Routes("connectors")
CONFLICTS = (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE)
LOOK_SECONDS: Final = 0.05
PATCH_SECONDS: Final = 30.0
"""How long a patch is repeated if somebody else changes the same config."""
DELETION_SECONDS: Final = 10.0
"""How long creating a connector waits for the end of a deletion of the same name."""


def _name_of(value: object) -> object:
    return "" if value is None else text_of(value)


def _state_of(value: object) -> object:
    """Parse an initial state, in any case; None is RUNNING."""
    told = InitialState.RUNNING if value is None else value
    if not isinstance(told, str) or told.upper() not in set(InitialState):
        raise ValueError(f"must be one of {', '.join(InitialState)}")
    return told.upper()


Name = Annotated[str, Meta(extra={CONVERT: _name_of})]


class NamedConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A connector's name and config."""

    config: Changes
    name: Name = ""


class NewConnector(NamedConfig, frozen=True, forbid_unknown_fields=True):
    """Connect's `CreateConnectorRequest`."""

    initial_state: Annotated[InitialState, Meta(extra={CONVERT: _state_of})] = InitialState.RUNNING


@routes.add(
    "POST /connectors",
    RouteRights(Right.ADMINISTER, Reach.BODY),
    status=HTTPStatus.CREATED,
    errors=CONFLICTS,
)
async def create_connector(
    service: Served,
    principal: PrincipalName,
    require: RequireNames,
    connector: NewConnector,
    extended: Extended = False,  # noqa: FBT002
) -> HttpAnswer[ConnectorInfo]:
    """Create a connector, RUNNING or in another `initial_state`."""
    name = trimmed(connector.name)
    require([name])
    prepared = await run_in_threadpool(prepare_config, service, name, connector.config, None)
    before = await find_settled(service, name)
    if before is not None:
        raise await run_in_threadpool(name_conflict, service, before)
    command = PutConnector(
        service.group_id,
        name,
        prepared.config,
        create_only=True,
        principal=principal,
        initial_state=RunState(connector.initial_state),
    )
    outcome = await service.commands.carry_out(command)
    mine = outcome.repeated and outcome.reply.error is Error.ALREADY_EXISTS
    if mine:
        after = await run_in_threadpool(find_connector, service, name)
        mine = after is not None and after.config == prepared.config and not after.deleting
    if not mine:
        refuse(outcome.reply)
    found = prepared.warnings if extended else None
    return await _answer_with(service, name, outcome.reply, HTTPStatus.CREATED, found)


@routes.add(
    "PUT /connectors/{connector}/config",
    RouteRights(Right.ADMINISTER, Reach.NEW_CONNECTOR),
    also={HTTPStatus.CREATED: ConnectorInfo},
    errors=CONFLICTS,
)
async def put_config(
    service: Served,
    principal: PrincipalName,
    connector: str,
    config: GivenConfigBody,
    extended: Extended = False,  # noqa: FBT002
) -> HttpAnswer[ConnectorInfo]:
    """Create a connector (201), or replace its config (200)."""
    before = await find_settled(service, connector)
    if before is not None and before.deleting:
        raise await run_in_threadpool(name_conflict, service, before)
    order = PutConnector(service.group_id, connector, {}, principal=principal)
    return await put_checked(service, order, config, before, extended=extended)


@routes.add(
    "PATCH /connectors/{connector}/config",
    Right.ADMINISTER,
    errors=(HTTPStatus.NOT_FOUND, *CONFLICTS),
)
async def patch_config(
    service: Served,
    principal: PrincipalName,
    connector: str,
    changes: ChangesBody | None = None,
    extended: Extended = False,  # noqa: FBT002
) -> HttpAnswer[ConnectorInfo]:
    """Change keys of a config, and remove those that are null (KIP-477)."""
    until = time.monotonic() + PATCH_SECONDS
    while True:
        before = await run_in_threadpool(find_connector, service, connector)
        if before is None or before.deleting:
            raise not_found(f"Connector {connector} not found")
        if changes is None:  # Connect looks for the connector before it looks for a body
            raise ApiError(HTTPStatus.BAD_REQUEST, "the request is malformed: body: Field required")
        config = _patched(before.config, changes)
        order = PutConnector(
            service.group_id, connector, {}, principal=principal, replaces=before.config
        )
        try:
            return await put_checked(service, order, config, before, extended=extended)
        except ApiError as refused:  # of changes at the same time each builds on those before it
            if refused.status is not HTTPStatus.CONFLICT or time.monotonic() > until:
                raise


def _patched(
    config: Mapping[str, str], changes: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    """Return a config with changes, of which null removes a key; raises `ApiError`."""
    changed = {**hide_secrets(config), **changes}
    patched = {key: value for key, value in changed.items() if changes.get(key, "") is not None}
    if NAME not in patched:
        raise invalid([f'Missing required configuration "{NAME}" which has no default value.'])
    if not patched[NAME]:
        raise invalid([f"Invalid value  for configuration {NAME}: String may not be empty"])
    return patched


async def put_checked(
    service: Service,
    order: PutConnector,
    config: Mapping[str, str | None],
    before: ConnectorConfig | None,
    *,
    extended: bool,
) -> HttpAnswer[ConnectorInfo]:
    """Validate a config, and carry out an order with it; `before` is the present one."""
    name = order.connector
    prepared = await run_in_threadpool(prepare_config, service, name, config, before)
    tasks = await run_in_threadpool(_tasks, service, name)
    outcome = await service.commands.carry_out(replace(order, config=prepared.config))
    refuse(outcome.reply)
    created = outcome.reply.created or (outcome.repeated and before is None)
    status = HTTPStatus.CREATED if created else HTTPStatus.OK
    found = prepared.warnings if extended else None
    return await _answer_with(service, name, outcome.reply, status, found, tasks)


def deletion_deadline() -> float:
    """Return until when a request waits for the end of deletions, on the monotonic clock."""
    return time.monotonic() + DELETION_SECONDS


async def find_settled(
    service: Service, name: str, until: float | None = None
) -> ConnectorConfig | None:
    """Return a connector from the log, after waiting for the end of a deletion in progress.

    At `until` on the monotonic clock it is returned as it is; None: in `DELETION_SECONDS`.
    """
    found = await run_in_threadpool(find_connector, service, name)
    until = deletion_deadline() if until is None else until
    while found is not None and found.deleting and time.monotonic() < until:
        await asyncio.sleep(LOOK_SECONDS)
        found = await run_in_threadpool(find_connector, service, name)
    return found


def _tasks(service: Service, name: str) -> list[ConnectorTaskId]:
    try:
        with service.logs.reading(service.group_id) as logs:
            numbers = logs.group.task_numbers(name)
    except NoLogError:
        return []
    return [ConnectorTaskId(name, number) for number in numbers]


def prepare_config(
    service: Service, name: str, config: Mapping[str, str | None], before: ConnectorConfig | None
) -> SealedConfig:
    """Validate a config, and seal its secrets; those of the config `before` may be kept.

    Raises `ApiError`.
    """
    check_name(name)
    stored = dict(before.config) if before else dict[str, str]()
    return service.seal(with_name(name, config), stored, service.outside)


async def _answer_with(
    service: Service,
    name: str,
    reply: CommandReply,
    status: HTTPStatus,
    warnings: tuple[str, ...] | None,
    tasks: list[ConnectorTaskId] | None = None,
) -> HttpAnswer[ConnectorInfo]:
    """Answer with the connector from the log, which includes the command.

    If `warnings` is None, the response has no warnings. `tasks` are those before the command, as in
    Connect, even if the new task configs are known already.
    """

    def read() -> ConnectorInfo:
        with service.logs.reading(service.group_id) as logs:
            require_written(logs.group, reply)
            stored = require_connector(logs, name)
            described = describe_connector(service, logs.group, name)
            if tasks is not None:
                described = structs.replace(described, tasks=tasks)
            if warnings is None:
                return described
            return with_warnings(service, logs.group, stored, described, warnings)

    is_new = status is HTTPStatus.CREATED
    headers = {"Location": f"/connectors/{quote(name, safe='')}"} if is_new else dict[str, str]()
    return HttpAnswer(await run_in_threadpool(read), status, headers)


def name_conflict(service: Service, found: ConnectorConfig) -> ApiError:
    """Return the error for a name that is taken, or not free yet."""
    name, told = found.connector, f"Connector {found.connector} already exists"
    if found.deleting:
        why = reason_kept(service, name)
        told = f"connector {name} is being deleted: create it once it is gone{why}"
    return ApiError(HTTPStatus.CONFLICT, told)
