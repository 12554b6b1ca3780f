"""Kafka's clients by what people know them by: they have no URL, and their ids are random."""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from ....events.model import ClassicMember
from ....events.records import ClassicGroup, MemberMetadata, Record, Tombstone

SHORT_ID: Final = 8
"""Letters of a member id that are enough to tell the members of one client id apart."""
GONE_MAX: Final = 10_000
"""How many members that are gone are known by more than their ids, those that went last."""


@dataclass(frozen=True, slots=True)
class KafkaClient:
    """A client as it describes itself when it joins."""

    client_id: str
    client_host: str
    instance_id: str | None
    """Its `group.instance.id`; None: it is a dynamic member."""

    def name(self, member_id: str) -> str:
        """Return `billing(7QyFKHtl)`: instance or client id, and the start of its random part.

        A member id of the classic protocol begins with the one or the other.
        """
        label, random = self.instance_id or self.client_id, member_id
        for each in (self.instance_id, self.client_id):
            if each and member_id.startswith(f"{each}-"):
                random = member_id[len(each) + 1 :]
        return f"{label}({random[:SHORT_ID]})" if label not in {"", member_id} else member_id


class GoneMembers:
    """Removes facts about members that left long ago, since clients come with new ids for ever."""

    def __init__(self, *known: MutableMapping[str, Any]) -> None:
        """`known` is what is known of members, by member id."""
        self._known = known
        self._gone: dict[str, None] = {}
        """In the order in which they went."""
        self._generation: set[str] = set()
        """The members of the last generation of classic members."""

    def apply(self, record: Record) -> None:
        """Apply the next record of the log, which may add or remove members."""
        match record:
            case MemberMetadata():
                self._gone.pop(record.member_id, None)
            case ClassicGroup():
                self._apply_generation({each.member_id for each in record.members})
            case Tombstone(kind=kind) if kind is ClassicGroup:
                self._apply_generation(set())
            case Tombstone(kind=kind) if kind is MemberMetadata:
                self._apply_departure(str(record.key[0]))
            case _:
                pass

    def _apply_departure(self, member_id: str) -> None:
        """Forget the member that went first, if this one is one too many."""
        self._gone.pop(member_id, None)
        self._gone[member_id] = None
        while len(self._gone) > GONE_MAX:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            for each in self._known:
                each.pop(oldest, None)

    def _apply_generation(self, member_ids: set[str]) -> None:
        """Set the members of a generation; none when there are no classic members any more."""
        left, self._generation = self._generation - member_ids, member_ids
        for each in member_ids:
            self._gone.pop(each, None)
        for each in sorted(left):
            self._apply_departure(each)


def client_of(member: MemberMetadata | ClassicMember) -> KafkaClient | None:
    """Return a member as a Kafka client; None for a worker of ours, which has a URL.

    The URL of a stock worker of Connect is a whole one, and names nobody.
    """
    is_worker = member.url and "://" not in member.url
    if is_worker or not (member.client_id or member.instance_id):
        return None
    return KafkaClient(member.client_id, member.client_host, member.instance_id)
