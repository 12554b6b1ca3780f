"""Follows all of a control log but its epochs and targets, for what explains those later.

Each record goes to several folds, each of which answers one question: when and why an epoch rose
(`causes`), who was away (`absences`), how work changed hands (`following`), which generations of
classic members there were (`generations`), and who the members are (`causes/clients`).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ...events.entries.codec import decode
from ...events.group import Group
from ...events.log.frame import Entry
from ...events.model import Why
from ...events.record_parts import RecordParts
from ...events.records import (
    ClassicGroup,
    GroupMetadata,
    MemberMetadata,
    Record,
    TaskStatus,
    Tombstone,
)
from .absences import Absences
from .causes.changes import Changed
from .causes.clients import GoneMembers, KafkaClient, client_of
from .causes.detection import Detection, Detector
from .diff import Owners
from .epochs import EpochReading
from .following import Handovers
from .generations import Generations, ReadShares

UPGRADED: Final = (
    "converted from the classic protocol, because {} joined by the {} protocol; members that"
    " keep {}: {}, from generation {}"
)
OF_CONSUMERS: Final = ("consumer", "their partitions")
OF_WORKERS: Final = ("connect", "their work")


class LogNotes:
    """Facts of a group beside its epochs and targets, as far as its log was read."""

    def __init__(self, group: Group, owners: Owners, read_shares: ReadShares) -> None:
        """Begin with nothing known; the owner of `group` and `owners` changes them."""
        self._group, self._owners = group, owners
        urls: dict[str, str] = {}
        self._urls = urls
        """The url of a member, by member id; its id where it has none."""
        self._detector = Detector(urls)
        self._changed = Changed()
        self.absences = Absences(urls)
        self.handovers = Handovers(owners, urls)
        self._generations = Generations(group.classic, read_shares)
        self._gone = GoneMembers(urls, self._generations.clients, *self._detector.by_name)
        self._protocol, self._kept = OF_WORKERS
        """The group's own protocol, and what its members keep in a conversion."""

    @property
    def clients(self) -> Mapping[str, KafkaClient]:
        """Kafka's clients that the group has, and those that left it last, by member id."""
        return self._generations.clients

    @property
    def put_together(self) -> Collection[str]:
        """The connectors that raised the epoch that was explained last, if they are several."""
        return self._changed.put_together

    def apply_latest(self, entries: Iterable[Entry]) -> None:
        """Apply the latest entry of each key; raises `CodecError`."""
        parts = RecordParts()
        for entry in entries:
            record = decode(entry)
            whole = None if record is None else parts.assemble(record)
            if whole is not None:
                self.apply(whole, entry.timestamp_ms)

    def apply(self, record: Record, now_ms: int) -> None:
        """Apply the next record, after the group has evolved by it."""
        if isinstance(record, TaskStatus):
            self._detector.apply_status(record, now_ms)
            self.handovers.apply_status(record)
            return
        if isinstance(record, Tombstone) and record.kind is ClassicGroup:
            self._owners.last.update(self._generations.end())
        self._gone.apply(record)
        if isinstance(record, MemberMetadata):
            self._urls[record.member_id] = record.worker_url
            if client := client_of(record):
                self._generations.clients[record.member_id] = client
        self._detector.apply(record, now_ms)
        self._changed.apply(record)
        self.absences.apply(record, now_ms)
        self.handovers.apply(record, now_ms)

    def explain_rise(self, bump: GroupMetadata) -> tuple[Detection, str]:
        """Return how the cause of an epoch was noticed, and what had changed."""
        return self._detector.detect(bump), self._describe(bump)

    def _describe(self, bump: GroupMetadata) -> str:
        if bump.cause.why is not Why.GROUP_UPGRADED:
            return self._changed.describe(bump)
        who, count = bump.cause.subject, len(self._group.translated)
        client = self.clients.get(who)
        who = client.name(who) if client else who
        return UPGRADED.format(who, self._protocol, self._kept, count, self._generations.ended)

    def form_generation(self, record: ClassicGroup) -> EpochReading | None:
        """Apply a generation; return its epoch if it begins, None if its leader has assigned."""
        is_of_consumers = record.protocol_type == OF_CONSUMERS[0]
        self._protocol, self._kept = OF_CONSUMERS if is_of_consumers else OF_WORKERS
        if record.cause.why is Why.GROUP_DOWNGRADED:
            self._generations.inherit(self._owners.last)
        return self._generations.apply(record, self._detector, self._protocol)
