"""The resources of a group whose members say what is to run: workers with their own configs.

The configs of Kafka Connect's workers are a topic of their own. A worker of the connect protocol
names what is to run, and how far it has read, with its heartbeats (`ReadConfigs`). A classic one
has no field for that; the assignment that it computes as a leader says it (see
`translation/outside.py`). The group follows whoever has read further than the one before
(PROTOCOL §19).
"""

from ....events.group import Group
from ....events.model import CONNECTOR, Resources, Why
from ....events.records import ConnectorsTasksMetadata
from ...messages.members import ReadConfigs
from ..state.validate import LARGEST_NUMBER, LONGEST_CONNECTOR, flaw_in_name

MOST_RESOURCES = 100_000
"""How many connectors and tasks one group runs at most."""


def flaw_in_configs(read: ReadConfigs) -> str:
    """Return what is wrong with what a member has read; "" if nothing."""
    if len(read.configured) > MOST_RESOURCES:
        return f"Configured names more than {MOST_RESOURCES} connectors and tasks"
    if any(not CONNECTOR <= each.task <= LARGEST_NUMBER for each in read.configured):
        return f"Configured has a task number outside 0 to {LARGEST_NUMBER}: tasks count from 0"
    for name in {each.connector for each in read.configured}:
        if found := flaw_in_name(name, "a connector's name in Configured", LONGEST_CONNECTOR):
            return found
    return ""


def newer_configs(group: Group, read: ReadConfigs) -> ReadConfigs | None:
    """Return configs that were read further than the group knows, None for others."""
    return read if read.offset > group.config_offset else None


def configured_by(read: ReadConfigs) -> ConnectorsTasksMetadata:
    """Return the record of what is to run."""
    return ConnectorsTasksMetadata(read.configured, config_offset=read.offset)


def change_of(group: Group, configured: Resources) -> tuple[Why, str] | None:
    """Return the cause of the epoch bump for what is to run now, None if nothing has changed."""
    new, gone = configured - group.configured, group.configured - configured
    if not new and not gone:
        return None
    added = sorted({each.connector for each in new if not each.is_task})
    deleted = sorted({each.connector for each in gone if not each.is_task})
    if added:
        return Why.CONNECTOR_ADDED, _name(added)
    if deleted:
        return Why.CONNECTOR_DELETED, _name(deleted)
    return Why.TASKS_CHANGED, _name(sorted({each.connector for each in new | gone}))


def _name(connectors: list[str]) -> str:
    first, *others = connectors
    return f"{first} and {len(others)} more" if others else first
