"""Translates the metadata of classic consumers, for conversions and mixed groups."""

from collections.abc import Sequence

from ...events.group import Group
from ...events.model import ClassicMember, ClassicProtocol
from ...events.records import ConsumerSubscription, Record, SubscribedTopics, Tombstone
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
    Translation,
)
from .topics import topic_records


class ConsumerTranslation(Translation):
    """The `Translation` for consumers: subscriptions and owned partitions."""

    protocol_type = CONSUMER
    is_of_clients = True

    def read(self, offered: ClassicProtocol) -> OfferedMetadata:
        """Decode a consumer's metadata; an eager one owns nothing. Raises UnreadableError."""
        decoded = read_subscription(offered.metadata)
        return OfferedMetadata(
            frozenset(decoded.owned), rack=decoded.rack or None, version=decoded.version
        )

    def stops_first(self, protocol: str) -> bool:
        """Return False: an eager consumer names no owned partitions when it joins."""
        del protocol
        return False

    def held_resources(
        self, protocol: str, member: ClassicMember, generation: int
    ) -> HeldResources:
        """Decode a consumer's assignment; raises UnreadableError.

        A member with user data of its assignor is not converted, since the data would be lost. The
        user data of sticky assignors does not count: it is the partitions themselves, which the
        leader of librdkafka sends back.
        """
        del protocol
        if not member.assignment:
            return HeldResources({}, {})
        decoded = decode_assignment(member.assignment)
        if decoded.user_data and not is_of_sticky(decoded.user_data):
            raise UnreadableError("its assignor tells it more than its partitions")
        return HeldResources(dict.fromkeys(decoded.partitions, generation), {})

    def resources_while_waiting(self, member: ClassicMember, generation: int) -> HeldResources:
        """Return the partitions of a waiting consumer: those that it named as owned in its join.

        An eager one names none, since it has revoked all. Raises UnreadableError.
        """
        owned = read_subscription(member.protocols[0].metadata).owned
        return HeldResources(
            {**dict.fromkeys(owned, generation), **member.assigned}, member.pending
        )

    def assignment(self, protocol: str, content: AssignmentContent) -> bytes:
        """Encode an assignment, which is always complete; raises UnwritableError."""
        del protocol
        assignment = PartitionAssignment(sorted(content.granted), version=content.version)
        return encode_assignment(assignment)

    def follow(
        self,
        group: Group,
        soft: SoftState,
        offers: Sequence[tuple[str, ClassicProtocol]],
        gone: str = "",
    ) -> Sequence[Record]:
        """Return the records of new subscriptions, and of the subscribed topics if they change."""
        if soft.topics is None and group.topics is None:
            raise NotYetError("which topics there are is not known yet: ask again")
        ended = [gone] if gone in group.subscriptions else []
        sent = [ConsumerSubscription(each, _topics_of(offered)) for each, offered in offers]
        new = [each for each in sent if group.subscriptions.get(each.member_id) != each]
        if not new and not ended:
            return ()
        tombstones = (Tombstone(ConsumerSubscription, (each,)) for each in ended)
        return [*tombstones, *new, *topic_records(group, soft, new, ended)]

    def bury(self, group: Group) -> Sequence[Record]:
        """Return tombstones of the subscriptions and topics of a group that becomes classic."""
        if group.topics is None:
            return ()
        ended = (Tombstone(ConsumerSubscription, (each,)) for each in sorted(group.subscriptions))
        return [*ended, Tombstone(SubscribedTopics, ())]


def _topics_of(offered: ClassicProtocol) -> tuple[str, ...]:
    return tuple(sorted({*read_subscription(offered.metadata).topics}))


CONSUMER_TRANSLATION = ConsumerTranslation()
