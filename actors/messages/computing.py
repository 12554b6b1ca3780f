"""Prepare and Install: the snapshot of which an assignment is computed, and the assignment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...events.model import AssignorData, Grants, Resource, Resources
from .errors import Error


@dataclass(frozen=True, slots=True)
class Prepare:
    """The chosen member asks for the snapshot."""

    group_id: str
    member_id: str
    member_epoch: int


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member as an assignor sees it.

    `version`, `reason` and `metadata` are what its assignor of the same name said of it last.
    """

    member_id: str
    member_epoch: int
    """Below 0 while a static member is away, and its seat waits for it."""
    instance_id: str | None
    url: str
    rack: str | None
    version: int
    reason: int
    metadata: bytes
    owned: Resources
    """What it is assigned now."""
    target: Resources
    """What the last target gives it; another member may still have to release it."""
    joined_epoch: int = 0
    cordoned: bool = False
    """It keeps what it has, and must be given nothing more."""
    draining: bool = False
    """It must have nothing."""
    worker: str = ""
    """Its name in operators' orders and pins."""
    topics: frozenset[str] | None = None
    """The topics of which a consumer may be given partitions; None: it is no consumer."""


@dataclass(frozen=True, slots=True)
class LossView:
    """A lost member's work, which may be parked until the deadline, wall clock."""

    member_id: str
    instance_id: str | None
    url: str
    """The url of the lost worker."""
    resources: Resources
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a connector's work: all of the tags, any of the zones."""

    tags: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()
    any_work: bool = False
    """Whether it needs a worker that takes work without tags; said where one does not."""


NO_NEEDS = Needs()
ANY_WORK = Needs(any_work=True)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The group as an assignor sees it: the whole input of an assignment."""

    group_epoch: int
    """The epoch that the result answers."""
    assignment_epoch: int
    """The epoch of the present target."""
    assignor: str
    assignor_metadata: bytes
    """The `metadata` of the assignment before, if this assignor made that as well."""
    configured: Resources
    """All connectors and tasks; each is to be placed."""
    members: Mapping[str, MemberView]
    losses: tuple[LossView, ...]
    """The lost members whose work may be parked."""
    parked: Grants
    """The parked resources, each with its deadline, wall clock."""
    fired: Resources
    """What was parked until a deadline that has passed: it cannot be parked again."""
    now_ms: int
    """Wall clock."""
    weights: Mapping[Resource, int] = field(default_factory=dict[Resource, int])
    """What resources weigh that do not weigh 1."""
    pins: Mapping[Resource, tuple[str, ...]] = field(
        default_factory=dict[Resource, tuple[str, ...]]
    )
    """The workers that are allowed for a resource; any where it is not named."""
    needs: Mapping[str, Needs] = field(default_factory=dict[str, Needs])
    """What connectors and their tasks need, by connector, where that is anything."""
    connectors: Resources | None = None
    """The connectors in `configured`, where the maker of this knew them apart from the tasks."""
    snapshot_id: str = field(default="", compare=False)
    """Which one it is of all that any process of the coordinator ever hands out."""

    def is_named(self, group_epoch: int, snapshot_id: str) -> bool:
        """Return whether a result names this snapshot as its input.

        A sender that does not know of ids names the group epoch alone.
        """
        return group_epoch == self.group_epoch and snapshot_id in {"", self.snapshot_id}


@dataclass(frozen=True, slots=True)
class PrepareReply:
    """The group answers `Prepare`: the snapshot to compute from, or an error."""

    error: Error
    message: str = ""
    snapshot: Snapshot | None = None
    """None if there is an error."""


SHORTEST_WAIT_MS = 1_000
"""How far ahead of the snapshot the rest of the moves is at least: each round is an epoch."""
LONGEST_WAIT_MS = 86_400_000
"""How far ahead it is at most: a day."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignor's result for a snapshot."""

    members: Mapping[str, Resources]
    """What each is to have, by member id; a member that is not named is to have nothing."""
    parked: Grants = field(default_factory=dict[Resource, int])
    """Work left out on purpose, each with its deadline, wall clock."""
    unplaceable: Mapping[Resource, str] = field(default_factory=dict[Resource, str])
    """Work that no member can take, each with the reason."""
    version: int = 0
    """How `metadata` is written; any number, for the assignor's own use."""
    metadata: bytes = b""
    """What it says to all `on_assignment`, and to itself with the next snapshot; 64 KiB at most."""
    again_at_ms: int = 0
    """When the rest of the moves is to be made, wall clock; 0: this is all of them."""
    data: Mapping[str, AssignorData] = field(default_factory=dict[str, AssignorData])
    """What it says to single members instead of that, by member id; 1 MiB in all at most."""


@dataclass(frozen=True, slots=True)
class Install:
    """The chosen member sends the group its computed assignment, or an error.

    `snapshot_id` is that of the snapshot which it computed from. A client whose protocol has no
    such field leaves it empty: then the group epoch alone tells the snapshot.
    """

    group_id: str
    member_id: str
    member_epoch: int
    group_epoch: int
    assignment: Assignment | None
    error: str = ""
    """Why there is no assignment; empty if there is one."""
    snapshot_id: str = ""
    error_code: int = 0
    """The number of that error, where the member's assignor gave one."""


@dataclass(frozen=True, slots=True)
class EndComputation:
    """The host of a group has computed the target of that number, or failed."""

    number: int
    assignment: Assignment | None = None
    error: str = ""
    """Why it failed; empty if it did not."""


@dataclass(frozen=True, slots=True)
class InstallReply:
    """The group answers `Install`: whether the assignment is its target now."""

    error: Error
    message: str = ""
