"""Orders of people, and of the supervisor for them, to a group.

Its connectors, its settings, its workers, and where its work may run. REST and the command line
send them to the group's actor, which answers with a `CommandReply`; `principal` is who asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...events.commits import Document
from ...events.model import Resource, RunState


@dataclass(frozen=True, slots=True)
class PutConnector:
    """Create a connector, or change its config; secret values come sealed.

    With `create_only` an existing connector is left as it is (ALREADY_EXISTS), and so is one whose
    config is not what this one `replaces`. A new one begins in its `initial_state`: RUNNING, PAUSED
    or STOPPED.
    """

    group_id: str
    connector: str
    config: Mapping[str, str]
    create_only: bool = False
    principal: str | None = None
    initial_state: RunState = RunState.RUNNING
    replaces: Mapping[str, str] | None = None
    """The config that the sender has changed; None: any, or none."""


@dataclass(frozen=True, slots=True)
class PutConnectors:
    """Create connectors, or change their configs: all of them in one epoch, or none.

    None is changed if any is refused. Secret values come sealed.
    """

    group_id: str
    configs: Mapping[str, Mapping[str, str]]
    """By connector."""
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class SetTargetState:
    """Set a connector RUNNING, PAUSED (its tasks keep their workers) or STOPPED (it has none)."""

    group_id: str
    connector: str
    state: RunState
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart a connector, or one task, where it is.

    Of a connector the tasks start anew as well if they are included; of all these only what has
    FAILED, if that is asked for.
    """

    group_id: str
    resource: Resource
    include_tasks: bool = False
    only_failed: bool = False
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteConnector:
    """Delete a connector; its offsets are kept, as in Kafka Connect.

    With `forgets` it is gone only once its source has removed what it keeps outside, and with
    `publishes` only once all that counts is published. Without, one that is being deleted waits for
    that no longer: batches that are not published are given up.
    """

    group_id: str
    connector: str
    principal: str | None = None
    forgets: bool = False
    publishes: bool = True


MUST_BE_STOPPED: Final = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done"
    " for the specified connector by issuing a 'PUT' request to the '/connectors/{}/stop' endpoint"
)
"""Connect's words."""


@dataclass(frozen=True, slots=True)
class AlterOffsets:
    """Set offsets of a stopped connector, or of any if they are only notes of what it uses.

    `offsets` are pairs of partition and offset, None takes that one away; of a partition that
    is there twice the last offset counts. None instead of all of them: every offset goes.
    """

    group_id: str
    connector: str
    how: str
    """What people did, for the log: `altered`, `reset`, or `sought to` a place."""
    offsets: Sequence[tuple[Document, Document | None]] | None = None
    stopped_ms: int | None = None
    """Only if the connector has been stopped since then, wall clock; None: whenever that was."""
    principal: str | None = None
    are_notes: bool = False
    """Whether no task begins at these offsets: then the connector may run."""


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete an empty group; only its history is kept."""

    group_id: str
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigureGroup:
    """Change settings of a group; None resets one to the node's.

    With `replaces_all` those that are not named are reset as well; with `validate_only` nothing is
    changed.
    """

    group_id: str
    configs: Mapping[str, str | None]
    principal: str | None = None
    replaces_all: bool = False
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class Cordon:
    """Assign a worker no new work; with `drain` revoke its present work as well.

    A worker is named by member id, instance id, url or client id.
    """

    group_id: str
    worker: str
    drain: bool = False
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Allow new work for a worker again."""

    group_id: str
    worker: str
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Expect:
    """Keep a worker's work for it for so many milliseconds if it is lost or leaves."""

    group_id: str
    worker: str
    within_ms: int
    """0 ends the wait."""
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class SetPlacement:
    """Set the weight of a connector or a task, and the workers on which it may run.

    None leaves a value as it is; weight 1 and no pins are how everything starts.
    """

    group_id: str
    resource: Resource
    weight: int | None = None
    """The weight relative to other resources."""
    pins: tuple[str, ...] | None = None
    """The names of the workers on which it may run; empty: any."""
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Compute a new target of the group."""

    group_id: str
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Remove a member: once it has revoked its work, or by force.

    By force it is not answered any more, and is removed when it must have fenced itself.
    """

    group_id: str
    worker: str
    force: bool = False
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class MoveOwner:
    """Give the group up, so that another node owns it: the named one, or any."""

    group_id: str
    to: str = ""
    principal: str | None = None
    epoch: int = 0
    """The owner epoch that is to end: a later owner keeps the group. 0: whichever it is."""


@dataclass(frozen=True, slots=True)
class EndMember:
    """The supervisor reports that a member's process has ended, and its engine with it.

    It ended at `ended_ms`, wall clock.
    """

    group_id: str
    member_id: str
    incarnation: str
    ended_ms: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseSeats:
    """The supervisor of a starting node names its static workers: its other seats end."""

    group_id: str
    node: str
    """The id of the node, as its workers' seats tell it."""
    instance_ids: frozenset[str]
    place: str = ""
    """What the urls of its workers begin with: seats of earlier versions do not tell their node."""


ConnectorOrder = (
    PutConnector | PutConnectors | DeleteConnector | SetTargetState | Restart | AlterOffsets
)
"""What is ordered of connectors."""

OperatorCommand = Cordon | Uncordon | Expect | SetPlacement | Rebalance | RemoveMember

FROM_PEOPLE = ConnectorOrder | ConfigureGroup | DeleteGroup | OperatorCommand | MoveOwner
"""The commands that are refused while the disk has little room: people can repeat them."""
