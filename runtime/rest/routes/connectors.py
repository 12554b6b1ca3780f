"""What is read of connectors, in Connect's shapes."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from ....events.group import Group
from ....events.model import Resource
from ....events.records import ConnectorConfig
from ....projections import views
from ....projections.documents import Document
from ...config.secrets import shown
from ...connectors.files.publishing import describe
from ..backend.configs import warnings_of
from ..backend.logs import GroupLogs
from ..backend.service import Served, Service
from ..http.errors import not_found

router = APIRouter(tags=["connectors"])


@router.get("/connectors")
def list_connectors(service: Served, expand: Annotated[list[str], Query()] = []) -> JSONResponse:  # noqa: B006  # never changed
    """List the connectors; `expand` with status, info and progress tells more of each."""
    with service.logs.reading(service.group_id) as logs:
        group = logs.group
        names = views.connector_names(group)
        if not expand:
            return JSONResponse(names)
        return JSONResponse({name: _expanded(service, logs, name, expand) for name in names})


@router.get("/connectors/{connector}")
def get_connector(service: Served, connector: str) -> JSONResponse:
    """Tell a connector's config and tasks."""
    with service.logs.reading(service.group_id) as logs:
        existing(logs, connector)
        return JSONResponse(info(service, logs.group, connector))


@router.get("/connectors/{connector}/config")
def get_config(service: Served, connector: str) -> JSONResponse:
    """Tell a connector's config; secret values are not shown."""
    with service.logs.reading(service.group_id) as logs:
        return JSONResponse(shown(existing(logs, connector).config))


@router.get("/connectors/{connector}/status")
def get_status(service: Served, connector: str) -> JSONResponse:
    """Tell what a connector and its tasks do, and where."""
    with service.logs.reading(service.group_id) as logs:
        existing(logs, connector)
        return JSONResponse(status(service, logs.group, connector))


@router.get("/connectors/{connector}/progress")
def get_progress(service: Served, connector: str) -> JSONResponse:
    """Tell how far each task has come: rows, batches, last commit, and what is left to read."""
    with service.logs.reading(service.group_id) as logs:
        existing(logs, connector)
        return JSONResponse(_progress(logs, connector))


@router.get("/connectors/{connector}/tasks")
def list_tasks(service: Served, connector: str) -> JSONResponse:
    """List a connector's tasks with their configs; secret values are not shown."""
    with service.logs.reading(service.group_id) as logs:
        existing(logs, connector)
        split = logs.group.task_configs.get(connector)
        tasks = [
            {"id": {"connector": connector, "task": number}, "config": shown(task.config)}
            for number, task in enumerate(split.tasks if split else ())
        ]
        return JSONResponse(tasks)


@router.get("/connectors/{connector}/tasks/{task}/status")
def get_task_status(service: Served, connector: str, task: int) -> JSONResponse:
    """Tell what one task does, and where."""
    with service.logs.reading(service.group_id) as logs:
        existing(logs, connector)
        if task not in views.task_numbers(logs.group, connector):
            raise not_found(f"there is no task {Resource(connector, task)}")
        return JSONResponse(views.task_status(logs.group, connector, task, _held_up(service)))


def existing(logs: GroupLogs, name: str) -> ConnectorConfig:
    """Return a connector; raises `ApiError` if there is none, or no longer."""
    found = logs.group.connectors.get(name)
    if found is None:
        raise not_found(f"there is no connector {name}")
    if found.deleting:
        waits = deletion_waits(logs, name) or "its last batches are brought to an end"
        raise not_found(f"connector {name} is being deleted: {waits}")
    return found


def deletion_waits(logs: GroupLogs, name: str) -> str:
    """Say which batches keep a connector from being deleted, and where they belong; or nothing."""
    left = logs.unpublished(name)
    if not left:
        return ""
    roots = ", ".join(sorted({each.manifest.root for each in left}))
    return (
        f"it waits until what counts already is published in {roots} ({describe(left)}); what "
        "keeps that from being done is in logs/actors.log"
    )


def info(service: Service, group: Group, name: str, found: Iterable[str] = ()) -> Document:
    """Return Connect's `ConnectorInfo` of an existing connector, without its secrets.

    `found` are warnings that its config alone does not give rise to.
    """
    connector = group.connectors[name]
    kind = service.kind_of(connector.config)
    told = views.connector_info(group, name, kind, shown(connector.config))
    return _with_warnings(service, connector, told, found)


def status(service: Service, group: Group, name: str) -> Document:
    """Return Connect's `ConnectorStateInfo` of an existing connector."""
    connector = group.connectors[name]
    told = views.connector_status(group, name, service.kind_of(connector.config), _held_up(service))
    return _with_warnings(service, connector, told)


def _held_up(service: Service) -> str:
    """Return why no task can commit, also where there is no room left to write that down."""
    room = service.logs.room()
    return f"waiting for space: {room.why}" if room.is_low else ""


def _with_warnings(
    service: Service, connector: ConnectorConfig, told: Document, found: Iterable[str] = ()
) -> Document:
    """Add what is strange about a connector, if anything is: the reply is Connect's otherwise."""
    of_config = warnings_of(service.plugins, connector.config)
    warnings = tuple(dict.fromkeys((*_inherited(connector), *of_config, *found)))
    return {**told, "warnings": warnings} if warnings else told


def _inherited(connector: ConnectorConfig) -> Iterator[str]:
    """Yield a warning if the connector goes on where an earlier one of its name has stopped."""
    if count := connector.offsets_before:
        yield (
            f"{count} offsets of an earlier connector {connector.connector} count for this one: "
            "what that one has read (for SparkPipeline: files, by folder and path) is not read "
            "again; to have it read again, create the connector under a name that is new"
        )


def _expanded(service: Service, logs: GroupLogs, name: str, expand: list[str]) -> Document:
    told: Document = {}
    group = logs.group
    if "status" in expand:
        told["status"] = status(service, group, name)
    if "info" in expand:
        told["info"] = info(service, group, name)
    if "progress" in expand:
        told["progress"] = _progress(logs, name)
    return told


def _progress(logs: GroupLogs, name: str) -> Document:
    return views.connector_progress(logs.group, name, logs.task_progress(name))
