"""The GET routes of one connector, in Connect's format.

Answers are made for each request, of the log as it is now.
"""

from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

from msgspec import Meta
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool

from ......events.commits import Commit
from ......events.group import Group
from ......events.log.errors import NoLogError
from ......events.model import Resource, RunState
from ......events.records import ConnectorConfig
from ......projections import views
from .....config.secrets import hide_secrets
from .....pipeline.batches.naming import describe_unpublished
from .....pipeline.plugins.options import PluginSpec
from .....security.rights import Right
from ....replies.building import connectors as replies
from ....replies.building.connectors import connector_progress
from ....replies.connectors import (
    ActiveTopics,
    ConnectorInfo,
    ConnectorStateInfo,
    ConnectorTaskId,
    TaskInfo,
    TaskState,
)
from ....replies.progress import ConnectorProgressInfo
from ...commands.service import PrincipalName, Served, Service, forget_topics
from ...reading.logs import FollowedGroup
from ...server.errors import ApiError, not_found
from ...server.parameters import Extended
from ...server.routing import Routes
from ...validation.configs import ConfigRemarks, remarks_on
from ...validation.promises import weaker, with_answer

routes = Routes("connectors")
MISSING = (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
LARGEST_TASK = (1 << 31) - 1
_FORGETS: Final = (
    "it waits until its source has removed what it keeps outside, such as a replication slot, which"
    " a worker does as soon as it can; what keeps that from being done is in logs/actors.log. To"
    " leave it where it is, delete the connector once more with ?forget=false"
)
_NOT_TRACKED: Final = "Topic tracking is disabled."
_IS_RETRIED: Final = (
    "a worker tries again and again, and what keeps it from that is in logs/actors.log"
)


TaskNumber = Annotated[int, Meta(ge=-LARGEST_TASK - 1, le=LARGEST_TASK)]
"""The number of a task in a path: an int32, as in Connect; for other values the path is unknown."""
Warned = TypeVar("Warned", ConnectorInfo, ConnectorStateInfo)


@routes.add("GET /connectors/{connector}", Right.VIEW, errors=MISSING)
def get_connector(
    service: Served,
    connector: str,
    extended: Extended = False,  # noqa: FBT002
) -> ConnectorInfo:
    """Return a connector's config and tasks."""
    with service.logs.reading(service.group_id) as logs:
        found = require_connector(logs, connector)
        described = describe_connector(service, logs.group, connector)
        if not extended:
            return described
        warnings = publication_warnings(logs, connector)
        return with_warnings(service, logs.group, found, described, warnings)


@routes.add("GET /connectors/{connector}/config", Right.VIEW, errors=MISSING)
def get_config(service: Served, connector: str) -> dict[str, str]:
    """Return a connector's config; secret values are not shown."""
    with service.logs.reading(service.group_id) as logs:
        return hide_secrets(require_connector(logs, connector).config)


@routes.add("GET /connectors/{connector}/status", Right.VIEW, errors=MISSING)
def get_status(
    service: Served,
    connector: str,
    extended: Extended = False,  # noqa: FBT002
) -> ConnectorStateInfo:
    """Return the status of a connector and its tasks; if `extended`, with reasons."""
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector, f"No status found for connector {connector}")
        return describe_state(service, logs, connector, extended=extended)


@routes.add("GET /connectors/{connector}/progress", Right.VIEW, errors=MISSING)
def get_progress(service: Served, connector: str) -> ConnectorProgressInfo:
    """Return the progress of each task: rows, batches, last commit, and lag."""
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector)
        return describe_progress(logs, connector)


@routes.add("GET /connectors/{connector}/tasks", Right.VIEW, errors=MISSING)
def list_tasks(service: Served, connector: str) -> list[TaskInfo]:
    """List a connector's tasks with their configs; secret values are not shown."""
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector)
        return [
            TaskInfo(ConnectorTaskId(connector, number), hide_secrets(split.tasks[number].config))
            for number in logs.group.task_numbers(connector)
            for split in (logs.group.task_configs[connector],)
        ]


@routes.add("GET /connectors/{connector}/tasks/{task}/status", Right.VIEW, errors=MISSING)
def get_task_status(
    service: Served,
    connector: str,
    task: TaskNumber,
    extended: Extended = False,  # noqa: FBT002
) -> TaskState:
    """Return the status of one task; if `extended`, with the reason."""
    unknown = f"No status found for task {connector}-{task}"
    with service.logs.reading(service.group_id) as logs:
        found = require_connector(logs, connector, unknown)
        if task not in logs.group.task_numbers(connector):
            raise not_found(unknown)
        made_by = service.made_by(found.config)
        if not extended:
            return replies.plain_task(logs.group, Resource(connector, task), made_by)
        return replies.task_status(logs.group, connector, task, made_by, explain_hold(service))


@routes.add(
    "GET /connectors/{connector}/topics", Right.VIEW, errors=(HTTPStatus.FORBIDDEN, *MISSING)
)
def get_topics(service: Served, connector: str) -> dict[str, ActiveTopics]:
    """Return the topics that a connector has used, from its offsets; none for an unknown one."""
    if not _tracking(service).tracks_topics:
        raise ApiError(HTTPStatus.FORBIDDEN, _NOT_TRACKED)
    with service.logs.reading(service.group_id) as logs:
        is_known = connector in views.connector_names(logs.group)
        return {connector: ActiveTopics(logs.topics(connector) if is_known else [])}


@routes.add(
    "PUT /connectors/{connector}/topics/reset",
    Right.OPERATE,
    status=HTTPStatus.ACCEPTED,
    errors=(HTTPStatus.FORBIDDEN, *MISSING),
)
async def reset_topics(service: Served, principal: PrincipalName, connector: str) -> None:
    """Forget the topics that a connector of Kafka Connect's class has used.

    Those of fairlead's own classes are derived from the offsets, and are not forgotten.
    """
    if not _tracking(service).tracks_topics:
        raise ApiError(HTTPStatus.FORBIDDEN, _NOT_TRACKED)

    def find() -> ConnectorConfig:
        with service.logs.reading(service.group_id) as logs:
            stored = require_connector(logs, connector)
        if not (_tracking(service).may_reset_topics and service.is_of_connect(stored.config)):
            raise ApiError(HTTPStatus.FORBIDDEN, "Topic tracking reset is disabled.")
        return stored

    stored = await run_in_threadpool(find)
    await forget_topics(service, connector, stored.config, principal)


def _tracking(service: Service) -> PluginSpec:
    return service.connect_plugins.spec if service.connect_plugins else PluginSpec()


def require_connector(logs: FollowedGroup, name: str, unknown: str = "") -> ConnectorConfig:
    """Return a connector; raises `ApiError` if it is unknown or deleted.

    `unknown` is the error message of Connect's own route, if it has a special one.
    """
    found = logs.group.connectors.get(name)
    if found is not None and not found.deleting:
        return found
    told = unknown or f"Connector {name} not found"
    waits = deletion_waits(logs, name) if found else ""
    raise not_found(f"{told}: it is being deleted; {waits}" if waits else told)


def find_connector(service: Service, name: str) -> ConnectorConfig | None:
    """Return a connector from the log, None if there is none or no log."""
    try:
        with service.logs.reading(service.group_id) as logs:
            return logs.group.connectors.get(name)
    except NoLogError:
        return None


def deletion_waits(logs: FollowedGroup, name: str) -> str:
    """Return why the deletion of a connector is not finished, such as its batches; "" if it is."""
    unpublished = logs.unpublished(name)
    if not unpublished:
        config = logs.group.connectors.get(name)
        return _FORGETS if config is not None and config.to_forget else ""
    return (
        f"it waits until what counts already is published in {_roots(unpublished)} "
        f"({describe_unpublished(unpublished)}); what keeps that from being done is in "
        "logs/actors.log. To give these rows up, delete the connector once more with ?publish=false"
    )


def reason_kept(service: Service, name: str) -> str:
    """Return why the deletion of a connector is not finished, as the end of a sentence."""
    with service.logs.reading(service.group_id) as logs:
        waits = deletion_waits(logs, name)
    return f"; {waits}" if waits else ""


def publication_warnings(logs: FollowedGroup, name: str) -> tuple[str, ...]:
    """Return a warning if no running task publishes some batches of a connector."""
    unpublished, numbers = logs.unpublished(name), logs.group.task_numbers(name)
    if logs.group.target_state(name) is RunState.RUNNING:
        unpublished = [each for each in unpublished if each.commit_id.task not in numbers]
    if not unpublished:
        return ()
    is_suspended = all(each.commit_id.task in numbers for each in unpublished)
    return (
        f"not published in {_roots(unpublished)} is {describe_unpublished(unpublished)}, which "
        "counts already. No task that runs does it: "
        + ("resume the connector" if is_suspended else _IS_RETRIED),
    )


def _roots(unpublished: Sequence[Commit]) -> str:
    return ", ".join(sorted({each.manifest.root for each in unpublished}))


def describe_connector(service: Service, group: Group, name: str) -> ConnectorInfo:
    """Return Connect's `ConnectorInfo` of a connector, without its secrets."""
    connector = group.connectors[name]
    tasks = [ConnectorTaskId(name, number) for number in group.task_numbers(name)]
    kind = service.made_by(connector.config).kind
    return ConnectorInfo(name, hide_secrets(connector.config), tasks, kind)


def describe_state(
    service: Service, logs: FollowedGroup, name: str, *, extended: bool
) -> ConnectorStateInfo:
    """Return Connect's `ConnectorStateInfo`; if extended, with fairlead's own fields."""
    connector = logs.group.connectors[name]
    made_by = service.made_by(connector.config)
    if not extended:
        return replies.plain_status(logs.group, name, made_by)
    described = replies.connector_status(logs.group, name, made_by, explain_hold(service))
    warnings = publication_warnings(logs, name)
    return with_warnings(service, logs.group, connector, described, warnings)


def explain_hold(service: Service) -> str:
    """Return why no task can commit, even if the log has no space for the reason."""
    room = service.logs.room()
    return f"waiting for space: {room.why}" if room.is_low else ""


def with_warnings(
    service: Service,
    group: Group,
    connector: ConnectorConfig,
    described: Warned,
    further: Iterable[str] = (),
) -> Warned:
    """Return a reply with the warnings and the delivery guarantee of its connector.

    `further` are warnings that do not come from the config alone.
    """
    config = with_answer(service.kept_answers, group, connector)
    remarks: ConfigRemarks = remarks_on(service.plugins, config)
    is_foreign = service.is_of_connect(connector.config)  # its offsets are in Kafka
    inherited: list[str] = [] if is_foreign else [*_inherited(connector)]
    warnings = tuple(dict.fromkeys((*inherited, *remarks.warnings, *further)))
    delivery = weaker(remarks.delivery, _remarks_of_tasks(group, connector.connector))
    return replace(described, warnings=warnings, delivery=delivery)


def _remarks_of_tasks(group: Group, name: str) -> list[str]:
    """Return the remarks of the tasks at work of a connector."""
    found = (views.resource_status(group, Resource(name, n)) for n in group.task_numbers(name))
    return [each.why for each in found if each.state is RunState.RUNNING]


def _inherited(connector: ConnectorConfig) -> Iterator[str]:
    """Yield a warning if the connector continues with the offsets of a deleted one of its name."""
    if count := connector.offsets_before:
        yield (
            f"{count} offsets of an earlier connector {connector.connector} count for this one: "
            "what that one has read (for SparkPipeline: files, by folder and path) is not read "
            "again; to have it read again, stop the connector and reset its offsets"
        )


def describe_progress(logs: FollowedGroup, name: str) -> ConnectorProgressInfo:
    """Return the progress of the tasks of a connector; raises `LogError`, `CodecError`."""
    return connector_progress(logs.group, name, logs.task_progress(name))
