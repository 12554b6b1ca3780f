"""The routes that compare configs with those that connectors have: to tell it, or to apply them.

Several configs are applied by one command: all of them, or none if one is refused, and the epoch
rises once at most.
"""

import asyncio
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta, Struct
from starlette.concurrency import run_in_threadpool

from ......actors.messages.orders import PutConnectors
from ......actors.settings import trimmed
from ......events.group import Group
from ......events.records import ConnectorConfig
from .....config.secrets import hide_secrets
from .....security.rights import Right
from ....replies.connectors import ConfigChange, ConfigDiff
from ...commands.service import (
    CallerAccess,
    PrincipalName,
    RequireNames,
    Served,
    Service,
    carry_out,
)
from ...server.errors import ApiError
from ...server.parameters import GivenConfigBody
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes
from ...validation.configs import SealedConfig
from .config_changes import (
    CONFLICTS,
    NamedConfig,
    deletion_deadline,
    find_settled,
    name_conflict,
    prepare_config,
)
from .descriptions import find_connector

routes = Routes("connectors")
CONNECTORS_MAX: Final = 1_000
"""The maximum number of connectors in one request."""
EXAMINED_AT_ONCE: Final = 4
"""How many configs of a request are examined at the same time."""


class ConfigsToApply(Struct, frozen=True, forbid_unknown_fields=True):
    """Connectors to create or change; those that are not named here stay as they are."""

    connectors: Annotated[list[NamedConfig], Meta(min_length=1, max_length=CONNECTORS_MAX)]
    dry_run: bool = False
    """Whether to tell the changes only."""


@routes.add("PUT /connectors/{connector}/config/diff", RouteRights(Right.VIEW, Reach.NEW_CONNECTOR))
def diff_config(
    service: Served, access: CallerAccess, connector: str, config: GivenConfigBody
) -> ConfigDiff:
    """Validate a config as a PUT of it does, and return what that would change.

    Secrets are not shown. They are compared, and where the config leads to is looked at, for those
    with the right to administer alone; to others a secret that is given is a change.
    """
    before = find_connector(service, connector)
    is_there = before is not None and not before.deleting
    limited = service.limited_to(access, [connector])
    return _compared(limited, connector, config, before if is_there else None)[0]


@routes.add("POST /apply", RouteRights(Right.ADMINISTER, Reach.BODY), errors=CONFLICTS)
async def apply_configs(
    service: Served, principal: PrincipalName, require: RequireNames, body: ConfigsToApply
) -> list[ConfigDiff]:
    """Create connectors and change configs: all of them in one epoch, or none if one is refused.

    A config replaces that of its connector: keys that it does not have are removed. The answer
    tells what has changed in each connector, or would change.
    """
    proposed = {trimmed(each.name): each.config for each in body.connectors}
    if len(proposed) < len(body.connectors):
        told = "a connector is given twice: nothing was changed, give each of them once"
        raise ApiError(HTTPStatus.BAD_REQUEST, told)
    require(proposed)
    results = await _examine(service, proposed)
    if not body.dry_run:
        configs = {name: prepared.config for name, (_, prepared) in results.items()}
        await carry_out(service, PutConnectors(service.group_id, configs, principal), _nothing)
    return [diff for diff, _ in results.values()]


async def _examine(
    service: Service, proposed: Mapping[str, Mapping[str, str | None]]
) -> dict[str, tuple[ConfigDiff, SealedConfig]]:
    """Compare configs with the present ones; raises `ApiError` with all that is wrong."""
    results = await examine_configs(service, proposed)
    refused = {name: each for name, each in results.items() if isinstance(each, ApiError)}
    if refused:
        raise _refusal(refused, len(proposed))
    return {name: each for name, each in results.items() if not isinstance(each, ApiError)}


async def examine_configs(
    service: Service, proposed: Mapping[str, Mapping[str, str | None]]
) -> dict[str, tuple[ConfigDiff, SealedConfig] | ApiError]:
    """Compare configs with the present ones; return why one cannot be applied in its place."""
    free, until = asyncio.Semaphore(EXAMINED_AT_ONCE), deletion_deadline()

    async def examine(
        name: str, config: Mapping[str, str | None]
    ) -> tuple[ConfigDiff, SealedConfig] | ApiError:
        async with free:
            before = await find_settled(service, name, until)
            if before is not None and before.deleting:
                return await run_in_threadpool(name_conflict, service, before)
            try:
                return await run_in_threadpool(_compared, service, name, config, before)
            except ApiError as refused:
                return refused

    outcomes = await asyncio.gather(*(examine(*each) for each in proposed.items()))
    return dict(zip(proposed, outcomes, strict=True))


def _refusal(refused: Mapping[str, ApiError], count: int) -> ApiError:
    """Return the error of several connectors, of which some are refused."""
    statuses = {each.status for each in refused.values()}
    status = statuses.pop() if len(statuses) == 1 else HTTPStatus.BAD_REQUEST
    if count == 1:
        return ApiError(status, *(each.message for each in refused.values()))
    lines = [f"nothing was changed: of {count} connectors, {len(refused)} cannot be applied"]
    lines += (f"connector {name}: {each.message}" for name, each in refused.items())
    return ApiError(status, "\n".join(lines))


def _compared(
    service: Service,
    name: str,
    config: Mapping[str, str | None],
    before: ConnectorConfig | None,
) -> tuple[ConfigDiff, SealedConfig]:
    """Return what a config would change in a connector, and how it is logged."""
    prepared = prepare_config(service, name, config, before)
    changes = list(_changes(before.config if before else {}, prepared.config))
    return ConfigDiff(name, before is None, changes, prepared.warnings), prepared


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[ConfigChange]:
    shown_old, shown_new = hide_secrets(old), hide_secrets(new)
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield ConfigChange(key, shown_old.get(key), shown_new.get(key))


def _nothing(_: Group) -> None:
    return None
