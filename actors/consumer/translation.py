"""The bytes of classic consumers, as conversions and mixed groups use them."""

from collections.abc import Sequence

from ...events.group import Group
from ...events.kafka.consumers import ConsumerSubscription, SubscribedTopics
from ...events.model import ClassicMember, ClassicProtocol
from ...events.records import Record, Tombstone
from ..classic.bytes.consumer import (
    PartitionAssignment,
    decode_assignment,
    encode_assignment,
    is_of_sticky,
)
from ..classic.bytes.primitives import UnreadableError
from ..classic.embedded import CONSUMER, read_subscription
from ..group.state.soft_state import SoftState
from ..group.translation.protocol import (
    AssignmentContent,
    HeldResources,
    NotYetError,
    OfferedMetadata,
)
from .topics import topic_records


class ConsumerTranslation:
    """The `Translation` of consumers: subscriptions, and owned partitions."""

    protocol_type = CONSUMER
    is_of_clients = True

    def read(self, offered: ClassicProtocol) -> OfferedMetadata:
        """Return a consumer's metadata; an eager one owns nothing. Raises UnreadableError."""
        told = read_subscription(offered.metadata)
        return OfferedMetadata(frozenset(told.owned), rack=told.rack or None, version=told.version)

    def stops_first(self, protocol: str) -> bool:
        """Return False: an eager consumer names nothing as owned when it joins."""
        del protocol
        return False

    def held_resources(
        self, protocol: str, member: ClassicMember, generation: int
    ) -> HeldResources:
        """Return a consumer's assignment; raises UnreadableError.

        User data of its assignor would be lost, so such a member is not converted. The partitions
        of a sticky assignor are no such data: librdkafka's leader sends back those it was sent.
        """
        del protocol
        if not member.assignment:
            return HeldResources({}, {})
        told = decode_assignment(member.assignment)
        if told.user_data and not is_of_sticky(told.user_data):
            raise UnreadableError("its assignor tells it more than its partitions")
        return HeldResources(dict.fromkeys(told.partitions, generation), {})

    def resources_while_waiting(self, member: ClassicMember, generation: int) -> HeldResources:
        """Return what a waiting consumer holds: what it named as owned when it joined.

        An eager one names nothing, and has stopped everything. Raises UnreadableError.
        """
        owned = read_subscription(member.protocols[0].metadata).owned
        return HeldResources(
            {**dict.fromkeys(owned, generation), **member.assigned}, member.pending
        )

    def assignment(self, protocol: str, content: AssignmentContent) -> bytes:
        """Return the bytes of an assignment, which is always complete; raises UnwritableError."""
        del protocol
        told = PartitionAssignment(sorted(content.granted), version=content.version)
        return encode_assignment(told)

    def follow(
        self,
        group: Group,
        soft: SoftState,
        offers: Sequence[tuple[str, ClassicProtocol]],
        gone: str = "",
    ) -> Sequence[Record]:
        """Return the records of new subscriptions, and of the topics that change by them."""
        if soft.topics is None and group.topics is None:
            raise NotYetError("which topics there are is not known yet: ask again")
        ended = [gone] if gone in group.subscriptions else []
        said = [ConsumerSubscription(each, _topics_of(offered)) for each, offered in offers]
        new = [each for each in said if group.subscriptions.get(each.member_id) != each]
        if not new and not ended:
            return ()
        graves = (Tombstone(ConsumerSubscription, (each,)) for each in ended)
        return [*graves, *new, *topic_records(group, soft, new, ended)]

    def bury(self, group: Group) -> Sequence[Record]:
        """Return tombstones of the subscriptions and topics of a group that becomes classic."""
        if group.topics is None:
            return ()
        ended = (Tombstone(ConsumerSubscription, (each,)) for each in sorted(group.subscriptions))
        return [*ended, Tombstone(SubscribedTopics, ())]


def _topics_of(offered: ClassicProtocol) -> tuple[str, ...]:
    return tuple(sorted({*read_subscription(offered.metadata).topics}))


CONSUMER_TRANSLATION = ConsumerTranslation()
