"""The bytes of classic consumers, as a conversion needs them."""

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
    """Consumers tell what they subscribe to, and what they have and keep while they join."""

    protocol_type = CONSUMER

    def read(self, offered: ClassicProtocol) -> OfferedMetadata:
        """Return what a consumer tells: an eager one names nothing; raises UnreadableError."""
        told = read_subscription(offered.metadata)
        return OfferedMetadata(frozenset(told.owned), version=told.version)

    def stops_first(self, protocol: str) -> bool:
        """Tell whether who speaks it stops everything before it joins: it says so itself."""
        del protocol
        return False

    def held(self, protocol: str, member: ClassicMember, generation: int) -> HeldResources:
        """Return what a consumer was given; raises UnreadableError.

        What an assignor of its own told it beside that would be lost. The partitions that it had
        before are no such thing: librdkafka's leader hands them back where the assignor is sticky.
        """
        del protocol
        if not member.assignment:
            return HeldResources({}, {})
        told = decode_assignment(member.assignment)
        if told.user_data and not is_of_sticky(told.user_data):
            raise UnreadableError("its assignor tells it more than its partitions")
        return HeldResources(dict.fromkeys(told.partitions, generation), {})

    def waiting(self, member: ClassicMember, generation: int) -> HeldResources:
        """Return what a consumer goes on with while it waits: what it named when it joined.

        An eager one names nothing, and has stopped everything. Raises UnreadableError.
        """
        owned = read_subscription(member.protocols[0].metadata).owned
        return HeldResources(
            {**dict.fromkeys(owned, generation), **member.assigned}, member.pending
        )

    def assignment(self, protocol: str, given: AssignmentContent) -> bytes:
        """Return all that a consumer may read; raises UnwritableError."""
        del protocol
        told = PartitionAssignment(sorted(given.granted), version=given.version)
        return encode_assignment(told)

    def follow(
        self,
        group: Group,
        soft: SoftState,
        offers: Sequence[tuple[str, ClassicProtocol]],
        gone: str = "",
    ) -> Sequence[Record]:
        """Return what is new of subscriptions, and of what is shared out by them."""
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
        """Return what ends with a group that becomes classic."""
        if group.topics is None:
            return ()
        ended = (Tombstone(ConsumerSubscription, (each,)) for each in sorted(group.subscriptions))
        return [*ended, Tombstone(SubscribedTopics, ())]


def _topics_of(offered: ClassicProtocol) -> tuple[str, ...]:
    return tuple(sorted({*read_subscription(offered.metadata).topics}))


CONSUMER_TRANSLATION = ConsumerTranslation()
