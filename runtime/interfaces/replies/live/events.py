"""The format of what happened in a group, one event after the other."""

import logging

from msgspec import Struct

from .....projections.watch.lines import EventLine, short

NORMAL, WARNING = "Normal", "Warning"


class EventInfo(Struct, frozen=True):
    """One thing that happened, as the node's log has it in a line."""

    time_ms: int
    """When it happened, since 1970."""
    type: str
    """Normal or Warning."""
    text: str
    """The event, in a sentence."""
    connector: str | None
    """The connector that it is about, also if it is about one of its tasks."""
    task: int | None
    """The number of the task that it is about."""
    worker: str
    """The name of the worker where it happened, empty if it is about none."""
    epoch: int | None
    """The epoch that brought it, or in which the work was granted."""


class EventList(Struct, frozen=True):
    """The events of a group, in the order of its log."""

    group_id: str
    """The group."""
    start: int
    """The offset in the log from which on events are listed."""
    next: int
    """The offset behind the last entry that was read."""
    events: list[EventInfo]
    """The events, the latest one last."""


def describe_event(line: EventLine) -> EventInfo:
    """Return the event of a line."""
    resource = line.resource
    return EventInfo(
        line.time_ms,
        NORMAL if line.level < logging.WARNING else WARNING,
        line.text,
        resource.connector if resource else None,
        resource.task if resource is not None and resource.is_task else None,
        short(line.worker),
        line.epoch,
    )
