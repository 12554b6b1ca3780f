"""The routes of the configs that a connector has had: their list, and the way back to one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus

from msgspec import Struct

from ......actors.messages.orders import PutConnector
from ......actors.settings import HIDDEN
from ......projections.revisions import ConfigRevision
from .....config.secrets import hide_secrets, is_sealed
from .....security.rights import Right
from ....replies.connectors import ConfigRevisionInfo, ConnectorInfo, RevisionList
from ...commands.service import PrincipalName, Served, Service
from ...server.errors import ApiError, not_found
from ...server.routing import HttpAnswer, Routes
from .config_changes import CONFLICTS, find_settled, put_checked
from .descriptions import MISSING

routes = Routes("connectors")


class RollbackBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The config that a connector gets again."""

    revision: int | None = None
    """The revision to go back to; null: the one before the present one."""


@routes.add("GET /connectors/{connector}/revisions", Right.VIEW, errors=MISSING)
async def list_revisions(service: Served, connector: str) -> RevisionList:
    """List the configs that a connector has had since it was created, the present one last.

    Secret values are not shown. The log has them for as long as it is not trimmed.
    """
    revisions = await _read(service, connector)
    befores = [None, *revisions]
    return RevisionList(
        connector,
        [
            ConfigRevisionInfo(
                each.number,
                each.time_ms,
                each.actor,
                _changed_keys(before, each),
                hide_secrets(each.config),
            )
            for before, each in zip(befores, revisions, strict=False)
        ],
    )


@routes.add(
    "POST /connectors/{connector}/rollback",
    Right.ADMINISTER,
    errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, *CONFLICTS),
)
async def roll_back(
    service: Served, principal: PrincipalName, connector: str, rollback: RollbackBody
) -> HttpAnswer[ConnectorInfo]:
    """Give a connector a config again that it has had, with its secrets.

    The config is validated anew. It becomes a new revision; offsets stay as they are.
    """
    revisions = await _read(service, connector)
    target = _choose(connector, revisions, rollback.revision)
    before = await find_settled(service, connector)
    if before is None or before.deleting:
        raise not_found(f"Connector {connector} not found")
    order = PutConnector(
        service.group_id, connector, {}, principal=principal, replaces=before.config
    )
    kept = replace(before, config=target.config)  # whose secrets are opened
    config = {key: HIDDEN if is_sealed(each) else each for key, each in target.config.items()}
    return await put_checked(service, order, config, kept, extended=True)


async def _read(service: Service, connector: str) -> list[ConfigRevision]:
    def read() -> list[ConfigRevision]:
        with service.logs.apart(service.group_id) as logs:
            revisions = logs.revisions(connector)
        if not revisions:
            raise not_found(f"Connector {connector} not found")
        return revisions

    return await service.explaining.run(read)


def _choose(
    connector: str, revisions: Sequence[ConfigRevision], revision: int | None
) -> ConfigRevision:
    """Return the revision to go back to; raises `ApiError`."""
    if revision is None and len(revisions) == 1:
        told = f"connector {connector} has had no other config that the log tells of"
        raise ApiError(HTTPStatus.BAD_REQUEST, told)
    if revision is None:
        return revisions[-2]
    for each in revisions:
        if each.number == revision:
            return each
    there = ", ".join(str(each.number) for each in revisions)
    raise not_found(f"connector {connector} has no revision {revision}; there is: {there}")


def _changed_keys(before: ConfigRevision | None, after: ConfigRevision) -> list[str]:
    former: Mapping[str, str] = before.config if before else {}
    keys = former.keys() | after.config.keys()
    return sorted(key for key in keys if former.get(key) != after.config.get(key))
