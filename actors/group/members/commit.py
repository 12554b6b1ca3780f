"""Which batches count: the commit that makes staged work real (DATA_PLANE §3).

A commit is accepted iff its sender holds the task, its fencing token is the current one, and each
of its steps starts at the logged offset. A repeated commit is accepted again. The logged offset is
that of the offset log as the coordinator sees it: what is durable, and what it has just decided.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass

from ....events.catalogue import commit_key, entry_key, key_of, offset_key, pack_key
from ....events.commits import (
    NO_COST,
    Advance,
    Commit,
    CommitId,
    Committed,
    ConsumerOffset,
    Document,
    Manifest,
    Offset,
    PendingOffset,
    TaskProgress,
)
from ....events.entries.codec import UnwritableRecordError, decode, encode
from ....events.entries.group_keys import Latest
from ....events.group import Group, token_of
from ....events.log.frame import Entry, NewEntry
from ....events.model import Key, Resource
from ....events.records import OffsetsAltered, Record, Tombstone
from ...messages.errors import Error
from ...messages.members import CommitOffsets, CommitReply, CommitVerdict
from ..state.soft_state import DecisionFacts

REMEDY = "stop the task, which starts again from the logged offset where it is assigned"
"""What a fenced task has to do."""


@dataclass(frozen=True, slots=True)
class CommitDecision:
    """The records for the offset log, and the reply once they are durable."""

    records: tuple[Record, ...]
    reply: CommitReply


def commit_offsets(
    group: Group, ledger: "OffsetLedger", command: CommitOffsets, now_ms: int
) -> CommitDecision:
    """Decide a member's commits, each on its own."""
    records: list[Record] = [
        Tombstone(Committed, commit_key(done))
        for done in command.published
        if ledger.is_unpublished(done)
    ]
    verdicts: list[CommitVerdict] = []
    ahead = ledger.branch()
    for commit in command.commits:
        progress = ahead.progress(commit.commit_id.connector, commit.commit_id.task)
        if progress is not None and progress.last == commit.commit_id:
            verdicts.append(CommitVerdict(commit.commit_id, Error.NONE))
        elif found := _find_flaw(group, ahead, command.member_id, commit):
            message = f"{found}; the batch does not count: {REMEDY}"
            verdicts.append(CommitVerdict(commit.commit_id, Error.FENCED, message))
        else:
            verdicts.append(CommitVerdict(commit.commit_id, Error.NONE))
            accepted = _accept(commit, progress, now_ms)
            ahead.lay(accepted)
            records += accepted
    return CommitDecision(tuple(records), CommitReply(tuple(verdicts), command.number))


def _find_flaw(group: Group, ledger: "OffsetLedger", member_id: str, commit: Commit) -> str:
    connector, task, token, batch = commit.commit_id
    current = token_of(group, member_id, Resource(connector, task))
    if current is None:
        return f"{member_id} does not hold {connector}-{task}"
    if current != token:
        return f"token {token} of {connector}-{task} is not the current {current}"
    progress = ledger.progress(connector, task)
    if progress is not None and (progress.last.token, progress.last.batch) >= (token, batch):
        return f"batch {batch} of {connector}-{task} is not newer than {progress.last.batch}"
    for advance in commit.advances:
        logged_at = ledger.offset(connector, advance.partition)
        if logged_at != advance.start:
            return f"{advance.partition} is logged at {logged_at}, not at {advance.start}"
    return ""


def _accept(commit: Commit, progress: TaskProgress | None, now_ms: int) -> list[Record]:
    connector = commit.commit_id.connector
    records = [*_logged(connector, commit.advances)]
    manifest = commit.manifest
    if not manifest.is_empty:
        records.append(Committed(commit, now_ms))
    records.append(
        TaskProgress(
            commit.commit_id,
            (progress.batches if progress else 0) + 1,
            (progress.rows_in if progress else 0) + commit.rows_in,
            (progress.rows_out if progress else 0) + manifest.rows,
            (progress.bytes_out if progress else 0) + manifest.bytes,
            now_ms,
            commit.lag,
            commit.commit_id if manifest.files else progress.filled if progress else None,
            (progress.skipped if progress else 0) + commit.skipped,
            (progress.dead_letters if progress else 0) + _dead_letters(manifest),
            (progress.cost if progress else NO_COST).plus(commit.cost),
        )
    )
    return records


def _logged(connector: str, advances: Iterable[Advance]) -> Iterator[Record]:
    """Yield what is logged of advances; one to no offset removes that which is logged."""
    for advance in advances:
        if advance.end is not None:
            yield Offset(connector, advance.partition, advance.end)
        elif advance.start is not None:
            yield Tombstone(Offset, offset_key(connector, advance.partition))


def _dead_letters(manifest: Manifest) -> int:
    return manifest.dead_letters.rows if manifest.dead_letters else 0


class OffsetLedger:
    """The offset log together with decided records that are not durable yet."""

    def __init__(self, log: Latest, encode: Callable[[Record], NewEntry] = encode) -> None:
        """Open the ledger of an offset log, or a group's part of it; `encode` makes its entries."""
        self._log, self._encode = log, encode
        self._laid: MutableMapping[tuple[type, Key], Record | None] = {}
        """What was decided and is not durable yet, by type and key; None for a tombstone."""
        self.entries: list[NewEntry] = []
        """The entries of that which were not handed out yet."""
        self.expired = 0
        """How many offsets have expired since its host has last counted them."""
        self._has_no_pending = False
        """Whether it is known that no offset waits for the end of a transaction."""

    def facts(self, has_acknowledged: Callable[[str], bool] = lambda _: True) -> DecisionFacts:
        """Return the facts for the rules; `has_acknowledged` is about members."""
        return DecisionFacts(
            self.offset,
            self.offsets,
            self.count,
            self.all_progress,
            self.alteration,
            self.has_unpublished,
            self.unpublished,
            has_acknowledged,
            self.client_offsets,
        )

    def branch(self) -> "OffsetLedger":
        """Return a ledger on top of this one, which does not change this one."""
        ahead = OffsetLedger(self._log)
        ahead._laid = ChainMap({}, self._laid)
        return ahead

    def lay(self, decided: Iterable[Record]) -> None:
        """Add decided records that are to be appended."""
        for record in decided:
            if isinstance(record, Tombstone):
                self._laid[record.kind, record.key] = None
            else:
                self._laid[type(record), key_of(record)] = record
                self._has_no_pending &= not isinstance(record, PendingOffset)

    def commit(self, group: Group, command: CommitOffsets, now_ms: int) -> CommitReply:
        """Decide which batches count; none does if their records are not encodable."""
        decision = commit_offsets(group, self, command, now_ms)
        try:
            self.write(decision.records)
        except UnwritableRecordError as error:
            refused = (
                CommitVerdict(each.commit_id, Error.FENCED, str(error)) for each in command.commits
            )
            return CommitReply(tuple(refused), command.number)
        return decision.reply

    def write(self, records: Sequence[Record]) -> None:
        """Queue decided records; raises `UnwritableRecordError`, and queues none then."""
        self.entries += [self._encode(record) for record in records]
        self.lay(records)

    def hand_out(self) -> list[NewEntry]:
        """Return the entries that were decided since the last call."""
        entries, self.entries = self.entries, []
        return entries

    def advance(self) -> None:
        """Record that the records last handed out are durable, and read them from the log."""
        if not self.entries:
            self._laid.clear()

    def offset(self, connector: str, partition: Document) -> Document | None:
        """Return how far a source partition was read."""
        found = self._find(Offset, offset_key(connector, partition))
        return found.offset if isinstance(found, Offset) else None

    def offsets(self, connector: str) -> list[Offset]:
        """Return how far each source partition of a connector was read."""
        return [each for each in self._all(Offset, connector) if isinstance(each, Offset)]

    def count(self, connector: str) -> int:
        """Return how many source partitions of a connector have an offset."""
        return self._count(Offset, connector)

    def consumer_offset(self, topic: str, partition: int) -> ConsumerOffset | None:
        """Return the committed offset of a partition of a topic."""
        found = self._find(ConsumerOffset, (topic, partition))
        return found if isinstance(found, ConsumerOffset) else None

    def has_consumer_offsets(self) -> bool:
        """Return whether any partition of a topic has a committed or a pending offset."""
        return self._count(ConsumerOffset) > 0 or bool(self.pending_offsets())

    def consumer_offsets(self, *topic: str) -> list[ConsumerOffset]:
        """Return the committed offsets by partition, of one topic or of all."""
        found = self._all(ConsumerOffset, *topic)
        return [each for each in found if isinstance(each, ConsumerOffset)]

    def pending_offsets(self) -> list[PendingOffset]:
        """Return the offsets that wait for the ends of transactions."""
        if self._has_no_pending:
            return []
        found = [each for each in self._all(PendingOffset) if isinstance(each, PendingOffset)]
        self._has_no_pending = not found
        return found

    def client_offsets(self) -> list[ConsumerOffset | PendingOffset]:
        """Return all that clients of Kafka have committed, in transactions or not."""
        return [*self.consumer_offsets(), *self.pending_offsets()]

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        """Return the committed progress of a task."""
        found = self._find(TaskProgress, (connector, task))
        return found if isinstance(found, TaskProgress) else None

    def all_progress(self, connector: str) -> list[TaskProgress]:
        """Return the committed progress of each task of a connector."""
        found = self._all(TaskProgress, connector)
        return [each for each in found if isinstance(each, TaskProgress)]

    def alteration(self, connector: str) -> OffsetsAltered | None:
        """Return how people set a connector's offsets last."""
        found = self._find(OffsetsAltered, (connector,))
        return found if isinstance(found, OffsetsAltered) else None

    def is_unpublished(self, commit_id: CommitId) -> bool:
        """Return whether a commit waits to be published."""
        return self._find(Committed, commit_key(commit_id)) is not None

    def has_unpublished(self, connector: str) -> bool:
        """Return whether any commit of a connector waits to be published."""
        laid = any(
            kind is Committed and key[0] == connector and record is not None
            for (kind, key), record in self._laid.items()
        )
        return laid or bool(self._log.scan(*entry_key(Committed, (connector,))))

    def unpublished(self, connector: str) -> list[CommitId]:
        """Return the commits of a connector that wait to be published."""
        found = self._all(Committed, connector)
        return [each.commit.commit_id for each in found if isinstance(each, Committed)]

    def unpublished_of(self, connector: str, task: int) -> list[Commit]:
        """Return the commits of a task that wait to be published, the oldest first."""
        found = self._all(Committed, connector, task)
        commits = [each.commit for each in found if isinstance(each, Committed)]
        return sorted(commits, key=lambda each: (each.commit_id.token, each.commit_id.batch))

    def _count(self, kind: type, *begin: str) -> int:
        """Return the number of records whose keys have this prefix."""
        keys = {entry.key for entry in self._log.scan(*entry_key(kind, begin))}
        for (each, key), record in self._laid.items():
            if each is kind and key[: len(begin)] == begin:
                (keys.discard if record is None else keys.add)(pack_key(key))
        return len(keys)

    def _all(self, kind: type, *begin: str | int) -> Iterable[Record | None]:
        """Return the latest record of each key with this prefix; None for a tombstone."""
        logged = self._log.scan(*entry_key(kind, begin))
        found = {entry.key: decode(entry) for entry in logged}
        for (each, key), record in self._laid.items():
            if each is kind and key[: len(begin)] == begin:
                found[pack_key(key)] = record
        return found.values()

    def _find(self, kind: type, key: Key) -> Record | None:
        if (kind, key) in self._laid:
            return self._laid[kind, key]
        entry: Entry | None = self._log.get(*entry_key(kind, key))
        return None if entry is None else decode(entry)
