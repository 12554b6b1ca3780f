"""The route that retries the dead letters of a connector, by a second connector.

The second one is an ordinary connector, called as the first one with `-retry` behind: it is
changed, stopped and deleted as any other. Another request gives it the config that follows from the
first one's present config. Its offsets stay, so each letter is retried once.
"""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta
from starlette.concurrency import run_in_threadpool

from ......actors.messages.orders import PutConnector, SetTargetState
from ......actors.settings import HIDDEN
from ......events.model import RunState
from ......events.records import ConnectorConfig
from .....config.secrets import hide_secrets, is_sealed
from .....pipeline.spi.keys.letters import CONNECTOR, LETTER_TOPIC, LETTERS
from .....security.rights import Right
from ....replies.connectors import DeadLetterRetry
from ...commands.service import PrincipalName, RequireNames, Served, Service, refuse
from ...server.errors import ApiError
from ...server.parameters import flag
from ...server.routing import HttpAnswer, Routes
from ...validation.configs import SealedConfig
from .config_changes import CONFLICTS, find_settled, name_conflict, prepare_config
from .descriptions import require_connector

routes = Routes("connectors")
SUFFIX: Final = "-retry"


@routes.add(
    "POST /connectors/{connector}/dead-letters/retry",
    Right.ADMINISTER,
    also={HTTPStatus.CREATED: DeadLetterRetry},
    errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, *CONFLICTS),
)
async def retry_dead_letters(
    service: Served,
    principal: PrincipalName,
    require: RequireNames,
    connector: str,
    dry_run: Annotated[  # noqa: FBT002
        bool, flag(default=False), Meta(description="Whether the config is only shown.")
    ] = False,
) -> HttpAnswer[DeadLetterRetry]:
    """Create the connector that retries the dead letters of this one (201), or change it (200).

    One that is paused or stopped goes on. It reads each letter of the folder or the topic once,
    also those that come later, and has the transforms and the sink of this one. What is refused
    again goes to a folder or a topic of its own. The caller needs the right to both connectors,
    since the new one has the secrets of this one.
    """
    name = f"{connector}{SUFFIX}"
    require([connector, name])
    sealed = await run_in_threadpool(_prepare, service, connector, name)
    before = await find_settled(service, name)
    if before is not None:
        _require_retry(service, before, connector)
    if not dry_run:
        order = PutConnector(
            service.group_id,
            name,
            sealed.config,
            create_only=before is None,
            principal=principal,
            replaces=before.config if before else None,
        )
        refuse((await service.commands.carry_out(order)).reply)
        if before is not None:
            goes_on = SetTargetState(service.group_id, name, RunState.RUNNING, principal)
            refuse((await service.commands.carry_out(goes_on)).reply)
    is_new = before is None
    status = HTTPStatus.CREATED if is_new and not dry_run else HTTPStatus.OK
    shown = hide_secrets(sealed.config)
    return HttpAnswer(DeadLetterRetry(connector, name, is_new, shown, sealed.warnings), status)


def _prepare(service: Service, connector: str, name: str) -> SealedConfig:
    """Return the config of the second connector, validated and sealed; raises `ApiError`."""
    with service.logs.reading(service.group_id) as logs:
        stored = require_connector(logs, connector)
        split = logs.group.task_configs.get(connector)
        task_config: Mapping[str, str] = split.tasks[0].config if split and split.tasks else {}
    retrying = service.letters_of(stored).retry_config(stored.config, task_config, name)
    vault = service.vault
    kept = {
        key: vault.seal(name, vault.unseal(connector, value)) if is_sealed(value) else value
        for key, value in retrying.items()
    }
    config = {key: HIDDEN if is_sealed(value) else value for key, value in kept.items()}
    return prepare_config(service, name, config, replace(stored, connector=name, config=kept))


def _require_retry(service: Service, present: ConnectorConfig, connector: str) -> None:
    """Raise `ApiError` if the connector of this name is another one's, or is being deleted."""
    if present.deleting:
        raise name_conflict(service, present)
    config = present.config
    is_retry = config.get("source.type") in {LETTERS, LETTER_TOPIC}
    if not is_retry or config.get(CONNECTOR) != connector:
        raise ApiError(
            HTTPStatus.CONFLICT,
            f"connector {present.connector} exists already, and does not retry the dead letters of "
            f"{connector}: nothing was changed; delete it, or make a connector with "
            f"source.type={LETTERS} by hand",
        )
