"""How people know the members of a group.

Workers go by the names at the ends of their URLs, Kafka's clients by client id or instance id; both
with the start of what is random in their member ids.
"""

from collections.abc import Mapping

from .....events.model import ClassicMember
from .....events.records import ClassicGroup, MemberMetadata, Record
from .....projections.explain.causes.clients import KafkaClient, client_of
from .....projections.explain.diff import Seat
from ...replies.handovers import SeatInfo
from .phrases import cause_of, member_name


class MemberNames:
    """The members that were heard of so far."""

    def __init__(self, clients: Mapping[str, KafkaClient] | None = None) -> None:
        """Take Kafka's clients among them, by member id."""
        self._clients = dict(clients or {})
        self._workers: dict[str, str] = {}
        """The URLs of workers, by member id."""

    def note(self, record: Record | None) -> None:
        """Take who is a member by a record."""
        for each in record.members if isinstance(record, ClassicGroup) else (record,):
            if isinstance(each, MemberMetadata | ClassicMember):
                if client := client_of(each):
                    self._clients[each.member_id] = client
                elif each.url:
                    self._workers[each.member_id] = each.url

    def of(self, seat: Seat | SeatInfo | None) -> str:
        """Return the name of a member; nothing for nobody."""
        if seat is None:
            return ""
        client = self._clients.get(seat.member_id)
        return client.name(seat.member_id) if client else member_name(seat.worker, seat.member_id)

    def short(self, member_id: str) -> str:
        """Return the name of a member; of one that nobody has heard of the start of its id."""
        client = self._clients.get(member_id)
        if client is not None:
            return client.name(member_id)
        return member_name(self._workers.get(member_id, ""), member_id)

    def whole(self, member_id: str) -> str:
        """Return the name of a client, or else the whole member id."""
        client = self._clients.get(member_id)
        return client.name(member_id) if client else member_id

    def cause(self, why: str, subject: str) -> str:
        """Return a cause; its subject may be a client, and more beside it."""
        first, also, others = subject.partition(" and ")
        if first in self._clients:
            return f"{why} {self.whole(first)}{also}{others}"
        return cause_of(why, subject)
