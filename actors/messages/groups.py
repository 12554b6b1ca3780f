"""Calls to groups of Kafka's clients, many of which share a process (PROTOCOL §15).

Their members speak with the listener's process, which hands on what they say by a stream to each
process of groups: all calls that came within one tick travel as one packed message, and each has a
number by which its answer is known. A packet is answered at once, with all that is known by then;
a call that has to wait, such as a JoinGroup, is answered with a later message.

A heartbeat that a client says again and again is told once, as a call that is kept: from then on
its number says it, and where the answer is the one before that number is the answer as well.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...events.model import (
    NO_DATA,
    NOTHING,
    AssignorData,
    ClassicMember,
    Grants,
    Resource,
    Resources,
)
from ...events.records import Topic
from .asks import AskReply, MemberAsk
from .classic import ClassicCall, ClassicHeartbeat, ClassicReply
from .computing import Install, InstallReply, Prepare, PrepareReply
from .consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from .errors import Error
from .members import Heartbeat, HeartbeatReply
from .offsets import OffsetCall, OffsetReply
from .orders import ConfigureGroup
from .pickling import pickled_by_values


@dataclass(frozen=True, slots=True)
class ListGroups:
    """Name all groups of the process."""

    number: int = 0


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """One group by name; `state` as Kafka spells it."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str
    """`classic`, `consumer` or `connect`, as Kafka spells types."""


@dataclass(frozen=True, slots=True)
class ListGroupsReply:
    """The process answers, in the order of names."""

    groups: tuple[ListedGroup, ...]
    error: Error = Error.NONE
    message: str = ""
    configured: tuple[str, ...] = ()
    """The ids of groups with settings of their own, also of such that are not there."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class ListTransactions:
    """Name the transactions that the process waits for."""

    number: int = 0


class WaitsFor(NamedTuple):
    """A group has offsets that are pending until a transaction of this producer ends."""

    group_id: str
    producer_id: int
    after: int
    """See `PendingOffset.after`."""


@dataclass(frozen=True, slots=True)
class ListTransactionsReply:
    """The process answers."""

    transactions: frozenset[WaitsFor] = frozenset()
    error: Error = Error.NONE
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class DescribeGroup:
    """Describe one group."""

    group_id: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class DescribeGroupReply:
    """The group answers; GROUP_ID_NOT_FOUND and the state Dead where there is none."""

    error: Error
    state: str
    protocol_type: str = ""
    protocol: str = ""
    """Empty unless the group is stable."""
    members: tuple[ClassicMember, ...] = ()
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class DescribeConsumerGroup:
    """Describe one group of consumers by KIP-848."""

    group_id: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class DescribedConsumer:
    """One of its members."""

    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    names: tuple[str, ...]
    """The topics that it subscribes to by name."""
    pattern: str
    """And by a regular expression; empty: by none."""
    assigned: Resources
    """The partitions that it has, each by the name of its topic."""
    target: Resources
    """The partitions that the target assigns to it."""
    is_classic: bool = False
    """Whether it speaks the classic protocol."""


@dataclass(frozen=True, slots=True)
class DescribeConsumerGroupReply:
    """The group answers; GROUP_ID_NOT_FOUND where there is none, or one of another type."""

    error: Error
    state: str = ""
    """Kafka's name of the group's state."""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedConsumer, ...] = ()
    topics: Mapping[str, Topic] = field(default_factory=dict[str, Topic])
    """Those of the partitions, by name."""
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class DescribeConnectGroup:
    """Describe one connect group."""

    group_id: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class DescribedWorker:
    """One of its members."""

    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    url: str
    assigned: Resources
    owned: Resources
    """What it holds: that, and what it has not given up yet."""
    target: Resources
    data: AssignorData = NO_DATA
    """What the assignor has said to it with its current assignment."""
    is_classic: bool = False
    """Whether it speaks the classic protocol."""


@dataclass(frozen=True, slots=True)
class DescribeConnectGroupReply:
    """The group answers; GROUP_ID_NOT_FOUND where there is none, or one of another type."""

    error: Error
    state: str = ""
    """Kafka's name of the group's state."""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    """That of the last target."""
    members: tuple[DescribedWorker, ...] = ()
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class RemoveGroup:
    """Forget a group that has no members."""

    group_id: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class RemoveGroupReply:
    """The group is deleted, or the error why it is not."""

    error: Error
    message: str = ""
    number: int = 0


class GroupSetting(NamedTuple):
    """A setting of a group by its name; the value is the node's unless the group has its own."""

    name: str
    value: str
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class DescribeGroupConfigs:
    """Tell the settings of a group, whether it is there or not."""

    group_id: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class DescribeGroupConfigsReply:
    """The process answers with all settings that the group may have, in the order of names."""

    error: Error
    settings: tuple[GroupSetting, ...] = ()
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class AlterGroupConfigs:
    """Change settings of a group, which need not be there yet, by a tool of Kafka's."""

    group_id: str
    configs: Mapping[str, str | None]
    """None resets a setting to the node's."""
    replaces_all: bool = False
    """Whether those that are not named are reset as well."""
    validate_only: bool = False
    principal: str | None = None
    number: int = 0

    def command(self) -> ConfigureGroup:
        """Return it as the command that people send."""
        how = self.principal, self.replaces_all, self.validate_only
        return ConfigureGroup(self.group_id, self.configs, *how)


def as_call(command: ConfigureGroup) -> AlterGroupConfigs:
    """Return a command of people for a group of a shard."""
    how = command.replaces_all, command.validate_only, command.principal
    return AlterGroupConfigs(command.group_id, command.configs, *how)


@dataclass(frozen=True, slots=True)
class AlterGroupConfigsReply:
    """All is changed, or the error why nothing is: INVALID_CONFIG names the setting."""

    error: Error
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class TellTopics:
    """The host sends all topics of the cluster, by name."""

    topics: Mapping[str, Topic]
    number: int = 0


@dataclass(frozen=True, slots=True)
class TellTopicsReply:
    """All groups of the process have the topics."""

    error: Error = Error.NONE
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class EndHold:
    """The client has sent its next request: its held heartbeat is answered now, news or not.

    Nothing is answered to this itself.
    """

    group_id: str
    held: int
    """The number of that heartbeat."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class ConnectCall:
    """A call of a workers' group's member over Kafka's wire, in the form of any worker's."""

    request: Heartbeat | Prepare | Install | MemberAsk
    number: int = 0

    @property
    def group_id(self) -> str:
        """The id of the group that it is for."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class Outlook:
    """The outlook of a member, as the group knows it now (PROTOCOL §20)."""

    parked: Grants = field(default_factory=dict[Resource, int])
    """The parked resources of the group, each with its deadline, wall clock."""
    again_at_ms: int = 0
    """When the rest of the moves is due, wall clock; 0: there is none."""
    awaited: Resources = NOTHING
    """What the target gives the member and others still hold."""
    pending: Resources = NOTHING
    """What it is to give up, and has not said yet that it did."""
    reason: str = ""
    """Why it has nothing, for people; "" if it has anything."""


@dataclass(frozen=True, slots=True)
class ConnectReply:
    """The workers' group answers; None: this stays unanswered.

    So it is where the member has asked anew, and where the client hurries or has gone and the group
    does not hold its heartbeat.
    """

    reply: HeartbeatReply | PrepareReply | InstallReply | AskReply | None
    number: int = 0
    outlook: Outlook | None = None
    """What a member whose heartbeat this answers is to expect; None: as it was told last."""


@pickled_by_values
@dataclass(frozen=True, slots=True)
class NodeCall:
    """A message of another node to the workers' group, which came over Kafka's wire.

    It is what a worker, the supervisor or REST of that node would send to a group on its own host.
    """

    group_id: str
    message: Any
    number: int = 0


@pickled_by_values
@dataclass(frozen=True, slots=True)
class NodeReply:
    """The workers' group answers another node, or the listener refuses its call.

    Both ends are those of the logs on which the answer rests: who has read so far can read all that
    it says.
    """

    reply: Any = None
    """None: this stays unanswered, or is refused."""
    number: int = 0
    control_end: int = -1
    """The end of the control log; -1: no log is meant."""
    offsets_end: int = -1
    """The end of the offset log; -1: no log is meant."""
    error: Error = Error.NONE
    """Why the call is refused; NONE if it is not."""
    message: str = ""


AdminCall = (
    DescribeGroup
    | DescribeConsumerGroup
    | DescribeConnectGroup
    | RemoveGroup
    | DescribeGroupConfigs
    | AlterGroupConfigs
)
"""What is asked about one group."""

AdminReply = (
    ListGroupsReply
    | DescribeGroupReply
    | DescribeConsumerGroupReply
    | DescribeConnectGroupReply
    | RemoveGroupReply
    | DescribeGroupConfigsReply
    | AlterGroupConfigsReply
)

HostAnswer = TellTopicsReply | ListTransactionsReply
"""What the process answers, and none of its groups."""

SharedCall = ClassicCall | ConsumerGroupHeartbeat | ConnectCall | OffsetCall | AdminCall
"""What may be asked of one of the groups that share a process."""

HostCall = SharedCall | ListGroups | ListTransactions | TellTopics | EndHold
"""What may be asked of a process with groups."""

HeartbeatCall = ClassicHeartbeat | ConsumerGroupHeartbeat
"""The heartbeats of Kafka's clients, which are repeated as they came."""

HostReply = ClassicReply | ConsumerGroupHeartbeatReply | OffsetReply | AdminReply | HostAnswer
"""What a process with groups answers."""

PackedCall = HostCall | NodeCall
"""What travels in packets: nodes send theirs to the workers' group alone."""

PackedReply = HostReply | ConnectReply | NodeReply
"""What travels back in packets: answers to Connect's members and to nodes are wrapped."""


@dataclass(frozen=True, slots=True)
class FindStream:
    """The host asks for the stream port of a process."""


@dataclass(frozen=True, slots=True)
class StreamAt:
    """The process accepts streams at this port; `epoch` tells it from earlier ones."""

    port: int
    epoch: int
    """The number of the process, which grows from one process to the next."""


@pickled_by_values
@dataclass(frozen=True, slots=True)
class GroupCalls:
    """The calls of one tick; `host` numbers the listener's process, later ones are greater."""

    host: int
    number: int
    """Which of the packets of its stream this is."""
    calls: tuple[PackedCall, ...] = ()
    kept: tuple[PackedCall, ...] = ()
    """What is asked as well, and is going to be repeated."""
    repeated: bytes = b""
    """The numbers of those kept calls that are asked once more, by `pack_numbers`."""
    dropped: bytes = b""
    """The numbers of those that are not going to be, ever."""


@pickled_by_values
@dataclass(frozen=True, slots=True)
class GroupReplies:
    """Replies, in the order in which they became ready."""

    taken: int
    """Up to which packet all is taken: what of it has no answer by now has to wait for it."""
    replies: tuple[PackedReply, ...] = ()
    same: bytes = b""
    """The numbers of the kept calls to which the answer is what it was the last time."""


def pack_numbers(numbers: Iterable[int]) -> bytes:
    """Return numbers of calls as bytes, for a process on the same machine."""
    return array("Q", numbers).tobytes()


def unpack_numbers(packed: bytes) -> Sequence[int]:
    """Return the numbers again."""
    return array("Q", packed)
