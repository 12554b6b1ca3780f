"""The coordinator's soft state beside a group, and what a decision is.

Soft state may be lost at any moment without harm to the group. After a restart the computation in
flight is forgotten, and a member is chosen again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....events.commits import (
    CommitId,
    ConsumerOffset,
    Document,
    Offset,
    OffsetRecord,
    PendingOffset,
    TaskProgress,
)
from ....events.group import Group
from ....events.model import Cause, Why
from ....events.records import GroupMetadata, OffsetsAltered, Record, Tombstone, Topic
from ...assignors.built_in.catalogue import SERVER_ASSIGNORS, Computes
from ...messages.commands import CommandReply, Reply
from ...messages.computing import Snapshot
from ...messages.errors import Error
from ...messages.members import NO_COORDINATOR_EPOCH
from .own_settings import OF_NODE, OwnSettings
from .settings import DEFAULT_SETTINGS, GroupSettings


@dataclass(frozen=True, slots=True)
class Computation:
    """The one computation in flight: which member was chosen, and how far it is.

    `number` is unique; the shell times it. `announced_epoch` is the group epoch of the last
    COMPUTE_ASSIGNMENT to the member; `snapshot` is what Prepare has sent, None before that.
    """

    member_id: str
    assignor: str
    number: int
    timeout_ms: int
    announced_epoch: int = -1
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """The initial rebalance delay of a group that was empty (KIP-134); the shell times it."""

    newcomers: int
    """How many members have joined: each restarts the delay."""
    longest_ms: int
    """How long it may last in all: the rebalance timeout of the first member."""


@dataclass(frozen=True, slots=True)
class DecisionFacts:
    """Read-only lookups for the rules in state outside of the control log.

    The defaults are those of a group without an offset log, whose process is new.
    """

    offset: Callable[[str, Document], Document | None] = lambda _, __: None
    """How far a source partition of a connector was read."""
    offsets: Callable[[str], Sequence[Offset]] = lambda _: ()
    """How far each source partition of a connector was read."""
    count_offsets: Callable[[str], int] = lambda _: 0
    """How many source partitions of a connector have an offset."""
    all_progress: Callable[[str], Sequence[TaskProgress]] = lambda _: ()
    """What each task of a connector committed so far."""
    alteration: Callable[[str], OffsetsAltered | None] = lambda _: None
    """How people set a connector's offsets last, by the offset log."""
    has_unpublished: Callable[[str], bool] = lambda _: False
    """Whether any committed batch of a connector is not published yet."""
    unpublished: Callable[[str], Sequence[CommitId]] = lambda _: ()
    """The committed batches of a connector that are not published yet."""
    has_acknowledged: Callable[[str], bool] = lambda _: True
    """Whether a member, by its id, has ever owned anything; else it has nothing to lose."""
    client_offsets: Callable[[], Sequence[ConsumerOffset | PendingOffset]] = lambda: ()
    """How far each partition of a topic was read, also in transactions that have not ended."""


NO_FACTS = DecisionFacts()


@dataclass(frozen=True, slots=True)
class SoftState:
    """The coordinator's soft state beside one group."""

    settings: GroupSettings = DEFAULT_SETTINGS
    """The group's current settings: its node's, changed by its own."""
    node: GroupSettings | None = None
    """The node's settings; None: the group changes none of them."""
    computation: Computation | None = None
    """The one in flight; None: there is none."""
    last_chosen: str = ""
    """The member id that was chosen to compute last; it stays chosen while it qualifies."""
    timed_out: frozenset[str] = frozenset()
    """The member ids that took too long to compute for this group epoch."""
    begun: int = 0
    """How many computations have begun, those of the coordinator included."""
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """The number that answers carry; see `members/request_filter.py`."""
    is_in_interval: bool = False
    """Whether the last one began less than the assignment interval ago."""
    initial_delay: InitialDelay | None = None
    """The initial rebalance delay, while it lasts."""
    facts: DecisionFacts = NO_FACTS
    """What else the rules may look up; the same while the process lives."""
    server_assignors: Mapping[str, Computes] = field(default_factory=lambda: SERVER_ASSIGNORS)
    """The server assignors, by name; likewise."""
    own: OwnSettings = OF_NODE
    """The settings that the group may have of its own; likewise."""
    offloads: bool = False
    """Whether the host runs server assignors beside its loop, and tells the result later."""
    topics: Mapping[str, Topic] | None = None
    """The topics of the cluster, by name; None: this process does not know them yet."""

    def without_computation(self) -> "SoftState":
        """Return the soft state with no computation in flight."""
        return self if self.computation is None else replace(self, computation=None)


DONE = CommandReply(Error.NONE)


@dataclass(frozen=True, slots=True)
class Decision:
    """The records to write, all or none, the reply once they are durable, and the soft state.

    `news` is for heartbeats: without news the answer may be held (long poll).
    """

    soft: SoftState
    records: tuple[Record, ...] = ()
    reply: Reply = DONE
    news: bool = True
    offset_records: tuple[OffsetRecord | OffsetsAltered | Tombstone, ...] = ()
    """What goes to the offset log, before the others are written."""


Rule = Callable[[Group, SoftState], Decision]
"""Decides something about a group and the soft state beside it."""


def accept(
    group: Group, soft: SoftState, records: Sequence[Record], *, created: bool = False
) -> Decision:
    """Return the decision to write these records, if any, and a reply with the log's end."""
    end = group.end + len(records)
    reply = CommandReply(Error.NONE, log_offset=end, created=created)
    return Decision(soft, tuple(records), reply)


def refuse(soft: SoftState, error: Error, message: str) -> Decision:
    """Return a decision without changes, and with an error as the answer."""
    return Decision(soft, reply=CommandReply(error, message))


def bump(
    group: Group, why: Why, subject: str, now_ms: int, principal: str | None = None
) -> GroupMetadata:
    """Return the record that raises the group epoch by one, with its cause."""
    return GroupMetadata(group.group_epoch + 1, Cause(why, subject), now_ms, principal)
