"""What is read of connectors, in Connect's shapes."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Annotated, TypeVar

from fastapi import Query
from msgspec.structs import replace

from .....events.group import Group
from .....events.model import Resource
from .....events.records import ConnectorConfig
from .....projections import views
from ....config.secrets import shown
from ....pipeline.connectors.naming import describe_unpublished
from ...replies import connectors as replies
from ...replies.connectors import (
    ConnectorInfo,
    ConnectorProgressInfo,
    ConnectorStateInfo,
    ConnectorTaskId,
    ExpandedConnector,
    TaskInfo,
    TaskState,
)
from ..backend.configs import warnings_of
from ..backend.errors import not_found
from ..backend.logs import FollowedGroup
from ..backend.schema import Routes
from ..backend.service import Served, Service

routes = Routes("connectors")
MISSING = (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
Warned = TypeVar("Warned", ConnectorInfo, ConnectorStateInfo)


@routes.add("GET /connectors", errors=(HTTPStatus.SERVICE_UNAVAILABLE,))
def list_connectors(
    service: Served,
    expand: Annotated[list[str], Query()] = [],  # noqa: B006  # never changed
) -> list[str] | dict[str, ExpandedConnector]:
    """List the connectors; `expand` with status, info and progress tells more of each."""
    with service.logs.reading(service.group_id) as logs:
        group = logs.group
        names = views.connector_names(group)
        if not expand:
            return names
        return {name: _expand(service, logs, name, expand) for name in names}


@routes.add("GET /connectors/{connector}", errors=MISSING)
def get_connector(service: Served, connector: str) -> ConnectorInfo:
    """Tell a connector's config and tasks."""
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector)
        return describe_connector(service, logs.group, connector)


@routes.add("GET /connectors/{connector}/config", errors=MISSING)
def get_config(service: Served, connector: str) -> dict[str, str]:
    """Tell a connector's config; secret values are not shown."""
    with service.logs.reading(service.group_id) as logs:
        return shown(require_connector(logs, connector).config)


@routes.add("GET /connectors/{connector}/status", errors=MISSING)
def get_status(service: Served, connector: str) -> ConnectorStateInfo:
    """Tell what a connector and its tasks do, and where."""
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector)
        return _describe_state(service, logs.group, connector)


@routes.add("GET /connectors/{connector}/progress", errors=MISSING)
def get_progress(service: Served, connector: str) -> ConnectorProgressInfo:
    """Tell how far each task has come: rows, batches, last commit, and what is left to read."""
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector)
        return _describe_progress(logs, connector)


@routes.add("GET /connectors/{connector}/tasks", errors=MISSING)
def list_tasks(service: Served, connector: str) -> list[TaskInfo]:
    """List a connector's tasks with their configs; secret values are not shown."""
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector)
        split = logs.group.task_configs.get(connector)
        return [
            TaskInfo(ConnectorTaskId(connector, number), shown(task.config))
            for number, task in enumerate(split.tasks if split else ())
        ]


@routes.add("GET /connectors/{connector}/tasks/{task}/status", errors=MISSING)
def get_task_status(service: Served, connector: str, task: int) -> TaskState:
    """Tell what one task does, and where."""
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector)
        if task not in logs.group.task_numbers(connector):
            raise not_found(f"there is no task {Resource(connector, task)}")
        return replies.task_status(logs.group, connector, task, _held_up(service))


def require_connector(logs: FollowedGroup, name: str) -> ConnectorConfig:
    """Return a connector; raises `ApiError` if there is none, or no longer."""
    found = logs.group.connectors.get(name)
    if found is None:
        raise not_found(f"there is no connector {name}")
    if found.deleting:
        waits = deletion_waits(logs, name) or "its last batches are brought to an end"
        raise not_found(f"connector {name} is being deleted: {waits}")
    return found


def deletion_waits(logs: FollowedGroup, name: str) -> str:
    """Say which batches keep a connector from being deleted, and where they belong; or nothing."""
    left = logs.unpublished(name)
    if not left:
        return ""
    roots = ", ".join(sorted({each.manifest.root for each in left}))
    return (
        f"it waits until what counts already is published in {roots} "
        f"({describe_unpublished(left)}); what keeps that from being done is in logs/actors.log"
    )


def describe_connector(
    service: Service, group: Group, name: str, found: Iterable[str] = ()
) -> ConnectorInfo:
    """Return Connect's `ConnectorInfo` of an existing connector, without its secrets.

    `found` are warnings that its config alone does not give rise to.
    """
    connector = group.connectors[name]
    tasks = [ConnectorTaskId(name, number) for number in group.task_numbers(name)]
    kind = service.kind_of(connector.config)
    described = ConnectorInfo(name, shown(connector.config), tasks, kind)
    return _with_warnings(service, connector, described, found)


def _describe_state(service: Service, group: Group, name: str) -> ConnectorStateInfo:
    connector = group.connectors[name]
    kind = service.kind_of(connector.config)
    described = replies.connector_status(group, name, kind, _held_up(service))
    return _with_warnings(service, connector, described)


def _held_up(service: Service) -> str:
    """Return why no task can commit, also where there is no room left to write that down."""
    room = service.logs.room()
    return f"waiting for space: {room.why}" if room.is_low else ""


def _with_warnings(
    service: Service, connector: ConnectorConfig, described: Warned, found: Iterable[str] = ()
) -> Warned:
    """Add what is strange about a connector, if anything is: the reply is Connect's otherwise."""
    of_config: tuple[str, ...] = warnings_of(service.plugins, connector.config)
    warnings = tuple(dict.fromkeys((*_inherited(connector), *of_config, *found)))
    return replace(described, warnings=warnings) if warnings else described


def _inherited(connector: ConnectorConfig) -> Iterator[str]:
    """Yield a warning if the connector goes on where an earlier one of its name has stopped."""
    if count := connector.offsets_before:
        yield (
            f"{count} offsets of an earlier connector {connector.connector} count for this one: "
            "what that one has read (for SparkPipeline: files, by folder and path) is not read "
            "again; to have it read again, create the connector under a name that is new"
        )


def _expand(
    service: Service, logs: FollowedGroup, name: str, expand: list[str]
) -> ExpandedConnector:
    group = logs.group
    return ExpandedConnector(
        _describe_state(service, group, name) if "status" in expand else None,
        describe_connector(service, group, name) if "info" in expand else None,
        _describe_progress(logs, name) if "progress" in expand else None,
    )


def _describe_progress(logs: FollowedGroup, name: str) -> ConnectorProgressInfo:
    return replies.connector_progress(logs.group, name, logs.task_progress(name))
