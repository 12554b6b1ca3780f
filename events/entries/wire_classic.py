"""The shape of a classic member, which is part of the record of its generation."""

from typing import Self

import msgspec

from ..model import ClassicMember, ClassicProtocol
from .wire_resources import GrantsByConnector, grants_by_connector, grants_from_connectors


class ClassicMemberWire(msgspec.Struct):
    """A member of a generation; its grants lie there as in a part."""

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    assignment: bytes = b""
    url: str = ""
    assigned: GrantsByConnector = {}
    pending: GrantsByConnector = {}
    returns: int = 0

    @classmethod
    def of(cls, member: ClassicMember) -> Self:
        """Return the form of a member."""
        fields = {name: getattr(member, name) for name in member.__slots__}
        fields["assigned"] = grants_by_connector(member.assigned)
        fields["pending"] = grants_by_connector(member.pending)
        return cls(**fields)

    def to_member(self) -> ClassicMember:
        """Return the member; raises ValueError if a resource lacks its epoch."""
        fields = msgspec.structs.asdict(self)
        fields["assigned"] = grants_from_connectors(self.assigned)
        fields["pending"] = grants_from_connectors(self.pending)
        return ClassicMember(**fields)
