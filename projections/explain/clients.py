"""Kafka's clients by what people know them by: they have no URL, and their ids are random."""

from dataclasses import dataclass
from typing import Final

from ...events.model import ClassicMember
from ...events.records import MemberMetadata

SHORT_ID: Final = 8
"""Letters of a member id that are enough to tell the members of one client id apart."""


@dataclass(frozen=True, slots=True)
class KafkaClient:
    """What a member says of itself when it joins."""

    client_id: str
    client_host: str
    instance_id: str | None
    """Its `group.instance.id`; None: it is a dynamic member."""

    def name(self, member_id: str) -> str:
        """Return `billing(7QyFKHtl)`: instance id or client id, and the start of what is random.

        A member id of the classic protocol begins with the one or the other.
        """
        label, random = self.instance_id or self.client_id, member_id
        for each in (self.instance_id, self.client_id):
            if each and member_id.startswith(f"{each}-"):
                random = member_id[len(each) + 1 :]
        return f"{label}({random[:SHORT_ID]})" if label not in {"", member_id} else member_id


def client_of(member: MemberMetadata | ClassicMember) -> KafkaClient | None:
    """Return what is known of a client; None for a worker of ours, which goes by its URL.

    The URL of a stock worker of Connect is a whole one, and names nobody.
    """
    is_worker = member.url and "://" not in member.url
    if is_worker or not (member.client_id or member.instance_id):
        return None
    return KafkaClient(member.client_id, member.client_host, member.instance_id)
