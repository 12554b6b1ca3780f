"""The names of group members for users.

A worker has the name at the end of its URL, a Kafka client its client id or instance id; both have
the start of the random part of their member ids as well.
"""

from collections.abc import Mapping

from .....events.model import ClassicMember
from .....events.records import ClassicGroup, MemberMetadata, Record
from .....projections.explain.causes.clients import KafkaClient, client_of
from .....projections.explain.diff import Owner
from ...replies.handovers import SeatInfo
from .phrases import format_reply_cause, shorten_member


class MemberNames:
    """The names of the members that have occurred so far."""

    def __init__(self, clients: Mapping[str, KafkaClient] | None = None) -> None:
        """`clients` are the Kafka clients among them, by member id."""
        self._clients = dict(clients or {})
        self._workers: dict[str, str] = {}
        """The URLs of workers, by member id."""

    def note(self, record: Record | None) -> None:
        """Add the member in a record, if it has one."""
        for each in record.members if isinstance(record, ClassicGroup) else (record,):
            if isinstance(each, MemberMetadata | ClassicMember):
                if client := client_of(each):
                    self._clients[each.member_id] = client
                elif each.url:
                    self._workers[each.member_id] = each.url

    def of(self, seat: Owner | SeatInfo | None) -> str:
        """Return the name of a member; "" for None."""
        if seat is None:
            return ""
        client = self._clients.get(seat.member_id)
        return (
            client.name(seat.member_id) if client else shorten_member(seat.worker, seat.member_id)
        )

    def short_name(self, member_id: str) -> str:
        """Return the name of a member; the start of its id if it is unknown."""
        client = self._clients.get(member_id)
        if client is not None:
            return client.name(member_id)
        return shorten_member(self._workers.get(member_id, ""), member_id)

    def full_name(self, member_id: str) -> str:
        """Return the name of a client; the whole member id of others."""
        client = self._clients.get(member_id)
        return client.name(member_id) if client else member_id

    def format_cause(self, why: str, subject: str) -> str:
        """Return a cause as text; its subject may contain a client."""
        first, also, others = subject.partition(" and ")
        if first in self._clients:
            return f"{why} {self.full_name(first)}{also}{others}"
        return format_reply_cause(why, subject)
