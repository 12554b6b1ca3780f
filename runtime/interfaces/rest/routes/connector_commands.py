"""What is ordered of connectors: create, change, delete, in Connect's shapes and codes.

Nothing here is refused because of a rebalance. A config is examined before it is sent, and a
command that had to be repeated is answered for by what the log says of its first sending.
"""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool

from .....actors.messages.commands import CommandReply
from .....actors.messages.errors import Error
from .....actors.messages.orders import DeleteConnector, PutConnector
from .....events.log.errors import NoLogError
from .....events.records import ConnectorConfig
from ...replies.connectors import ConnectorInfo
from ...replies.node import Message
from ..backend.configs import Prepared, check_name, named, prepare
from ..backend.connection import Outcome
from ..backend.errors import ApiError, not_found
from ..backend.schema import Config, ConfigBody, HttpAnswer, Key, Routes
from ..backend.service import ORDER_ERRORS, Principal, Served, Service, refuse, require_written
from .connectors import deletion_waits, describe_connector, require_connector

routes = Routes("connectors")
CONFLICTS = (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE)
PUBLISH_SECONDS: Final = 1.0
"""How long a deletion waits for a batch that may be about to be published."""


class NewConnector(BaseModel):
    """Connect's `CreateConnectorRequest`."""

    model_config = ConfigDict(extra="forbid")

    name: Key = ""
    config: Config
    initial_state: str | None = None


@routes.add("POST /connectors", status=HTTPStatus.CREATED, takes_json=True, errors=CONFLICTS)
async def create_connector(
    service: Served, principal: Principal, connector: NewConnector
) -> HttpAnswer[ConnectorInfo]:
    """Create a connector."""
    if connector.initial_state not in {None, "RUNNING"}:
        raise ApiError(HTTPStatus.BAD_REQUEST, "initial_state can only be RUNNING in this version")
    name = connector.name.strip()
    check_name(name)
    before = await run_in_threadpool(_find, service, name)
    if before is not None:
        raise ApiError(
            HTTPStatus.CONFLICT, await run_in_threadpool(_name_conflict, service, before)
        )
    config, warnings = await run_in_threadpool(_prepare, service, name, connector.config, before)
    outcome = await _put(service, principal, name, config, create_only=True)
    mine = outcome.repeated and outcome.reply.error is Error.ALREADY_EXISTS
    if mine:
        after = await run_in_threadpool(_find, service, name)
        mine = after is not None and after.config == config and not after.deleting
    if not mine:
        refuse(outcome.reply)
    return await _answer_with(service, name, outcome.reply, HTTPStatus.CREATED, warnings)


@routes.add(
    "PUT /connectors/{connector}/config",
    also={HTTPStatus.CREATED: ConnectorInfo},
    takes_json=True,
    errors=CONFLICTS,
)
async def put_config(
    service: Served, principal: Principal, connector: str, config: ConfigBody
) -> HttpAnswer[ConnectorInfo]:
    """Create a connector (201), or give one a new config (200)."""
    check_name(connector)
    before = await run_in_threadpool(_find, service, connector)
    if before is not None and before.deleting:
        raise ApiError(
            HTTPStatus.CONFLICT, await run_in_threadpool(_name_conflict, service, before)
        )
    sealed, warnings = await run_in_threadpool(_prepare, service, connector, config, before)
    outcome = await _put(service, principal, connector, sealed, create_only=False)
    refuse(outcome.reply)
    created = outcome.reply.created or (outcome.repeated and before is None)
    status = HTTPStatus.CREATED if created else HTTPStatus.OK
    return await _answer_with(service, connector, outcome.reply, status, warnings)


@routes.add(
    "DELETE /connectors/{connector}",
    status=HTTPStatus.NO_CONTENT,
    also={HTTPStatus.ACCEPTED: Message},
    errors=ORDER_ERRORS,
)
async def delete_connector(
    service: Served, principal: Principal, connector: str
) -> HttpAnswer[Message] | None:
    """Delete a connector; its last batches are brought to an end, its offsets stay.

    The answer is 202 and says what it waits for if one of them cannot be published.
    """
    before = await run_in_threadpool(_find, service, connector)
    if before is None or before.deleting:
        raise not_found(await run_in_threadpool(_no_connector, service, connector, before))
    command = DeleteConnector(service.group_id, connector, principal)
    outcome = await service.commands.carry_out(command)
    if not (outcome.repeated and outcome.reply.error is Error.UNKNOWN_CONNECTOR):
        refuse(outcome.reply)
    waits = await run_in_threadpool(_reason_kept, service, connector)
    if waits:
        await asyncio.sleep(PUBLISH_SECONDS)
        waits = await run_in_threadpool(_reason_kept, service, connector)
    if waits:
        message = f"connector {connector} is being deleted{waits}"
        return HttpAnswer(Message(message), HTTPStatus.ACCEPTED)
    return None


async def _put(
    service: Service, principal: str, name: str, config: Mapping[str, str], *, create_only: bool
) -> Outcome:
    command = PutConnector(
        service.group_id, name, config, create_only=create_only, principal=principal
    )
    return await service.commands.carry_out(command)


def _find(service: Service, name: str) -> ConnectorConfig | None:
    """Return what the log says of a connector; a group without a log has none."""
    try:
        with service.logs.reading(service.group_id) as logs:
            return logs.group.connectors.get(name)
    except NoLogError:
        return None


def _prepare(
    service: Service, name: str, config: Mapping[str, str], before: ConnectorConfig | None
) -> Prepared:
    stored = dict(before.config) if before else dict[str, str]()
    config = named(name, config)
    return prepare(service.plugins, service.vault, config, stored, service.outside)


async def _answer_with(
    service: Service,
    name: str,
    reply: CommandReply,
    status: HTTPStatus,
    warnings: tuple[str, ...],
) -> HttpAnswer[ConnectorInfo]:
    """Answer with the connector as the log has it, which is at least as far as the command."""

    def read() -> ConnectorInfo:
        with service.logs.reading(service.group_id) as logs:
            require_written(logs.group, reply)
            require_connector(logs, name)
            return describe_connector(service, logs.group, name, warnings)

    is_new = status is HTTPStatus.CREATED
    headers = {"Location": f"/connectors/{quote(name, safe='')}"} if is_new else dict[str, str]()
    return HttpAnswer(await run_in_threadpool(read), status, headers)


def _name_conflict(service: Service, found: ConnectorConfig) -> str:
    name = found.connector
    if not found.deleting:
        return f"Connector {name} already exists"
    why = _reason_kept(service, name)
    return f"connector {name} is being deleted: create it once it is gone{why}"


def _no_connector(service: Service, name: str, found: ConnectorConfig | None) -> str:
    if found is None:
        return f"there is no connector {name}"
    return f"connector {name} is being deleted{_reason_kept(service, name)}"


def _reason_kept(service: Service, name: str) -> str:
    """Return what keeps a connector from being gone, as the end of a sentence."""
    with service.logs.reading(service.group_id) as logs:
        waits = deletion_waits(logs, name)
    return f"; {waits}" if waits else ""
