"""Batches that count and are not published yet: what waits for them, and who does not do it."""

from collections.abc import Sequence
from typing import Final

from ....events.commits import Commit
from ....events.group import Group
from ....events.model import RunState
from ...pipeline.batches.naming import describe_unpublished

FORGETS: Final = (
    "it waits until its source has removed what it keeps outside, such as a replication slot, which"
    " a worker does as soon as it can; what keeps that from being done is in logs/actors.log. To"
    " leave it where it is, delete the connector once more with ?forget=false"
)


def deletion_waits(group: Group, name: str, unpublished: Sequence[Commit]) -> str:
    """Return why the deletion of a connector is not finished, such as its batches; "" if it is."""
    if not unpublished:
        config = group.connectors.get(name)
        return FORGETS if config is not None and config.to_forget else ""
    return (
        f"it waits until what counts already is published in {_roots(unpublished)} "
        f"({describe_unpublished(unpublished)}); what keeps that from being done is in "
        "logs/actors.log. To give these rows up, delete the connector once more with ?publish=false"
    )


def publication_warning(group: Group, name: str, unpublished: Sequence[Commit]) -> str:
    """Return a warning about the batches that no running task publishes; "" if there are none."""
    numbers = group.task_numbers(name)
    if group.target_state(name) is RunState.RUNNING:
        unpublished = [each for each in unpublished if each.commit_id.task not in numbers]
    if not unpublished:
        return ""
    is_suspended = all(each.commit_id.task in numbers for each in unpublished)
    return (
        f"not published in {_roots(unpublished)} is {describe_unpublished(unpublished)}, which "
        "counts already. No task that runs does it: "
        + ("resume the connector" if is_suspended else _IS_RETRIED)
    )


_IS_RETRIED: Final = (
    "a worker tries again and again, and what keeps it from that is in logs/actors.log"
)


def _roots(unpublished: Sequence[Commit]) -> str:
    return ", ".join(sorted({each.manifest.root for each in unpublished}))
