# pyright: basic
"""A log in Kafka: a topic of one partition, and one of beats beside it (LOG.md §13).

The fence is the order of the topic: what counts is decided alike by whoever reads it
(`kafka_records.py`). An owner knows without reading that its record counts: it lies right behind
its last one, so that nobody can have claimed in between. Only if there is something in between, it
waits until its reader has come there. No transactions: they take ten times as long.

A claim goes to the topic of beats first, and to that of the log if it counts there, with an epoch
above all that were read in both. So a beat that lies right behind the last one says that nobody has
claimed the log before it. Beats have a topic of their own as they need not be kept.

An owner is silent by the clock of each reader: since its last record came, and only once the reader
has reached the ends of both topics. One that was cut off hears first what it has missed.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import uuid4

from ..log.errors import LogError, LogFailedError, OffsetConflictError, OwnerFencedError
from .bodies import in_rounds
from .kafka_clients import (
    ANSWER_S,
    KafkaException,
    MissingTopicError,
    Settings,
    StoreClients,
    StoreTopics,
    TopicNames,
)
from .kafka_reader import DifferentTopicError, TopicReader
from .kafka_records import (
    PART_BYTES,
    OwnerBeat,
    StoreClaim,
    StoreMark,
    commit_parts,
    digest_of,
    encode_record,
    pack_mark,
    snapshot_parts,
)
from .port import (
    DIFFERS,
    Claimant,
    Claimed,
    StoreAwayError,
    StoredCommit,
    StoreDiffersError,
    StoredSlice,
    StoreOwner,
    StorePosition,
    StoreSnapshot,
)

T = TypeVar("T")

_SENT_AT_ONCE: Final = 8 * PART_BYTES
"""So many bytes of a large write, each of which have their time to be answered."""
_AWAY: Final = "nothing counted; it is asked again"
_UNKNOWN: Final = "whether the write counts is unknown: exit, claim, and read what counts"


@dataclass
class _Owned:
    """The log as its owner has it."""

    claim: StoreClaim
    end: int
    stored_bytes: int
    next_logged: int
    """The offset of its next record in the log's topic, if nobody else writes there."""
    next_beat: int
    has_failed: bool = False


class KafkaStore:
    """A log in two topics; see `LogStore` for its calls."""

    def __init__(
        self, log: str, settings: Settings, prefix: str = "fairlead-", replicas: int = 3
    ) -> None:
        """Name a log, and the cluster by settings of librdkafka; connects with the first call.

        The topics are made with the first claim, unless they are there: with so many replicas, or
        as many as the cluster has brokers.
        """
        names = TopicNames.of(prefix, log)
        self._shown = f"Kafka, topic {names.log}"
        self._clients = StoreClients(settings)
        self._topics = StoreTopics(self._clients, names, replicas)
        self._reader: TopicReader | None = None
        self._topic_id: str | None = None
        """Kafka's identity of the topic that the reader reads."""
        self._producer: Any = None
        """Made early, as it needs half a second before it can write. It is not used again once a
        write has failed; what it sends late has the claim of then."""
        self._position = StorePosition()
        """The last one of a reader."""
        self._owned: _Owned | None = None

    def owner(self) -> StoreOwner | None:
        """Return the last claim, silent by the clock of this host."""
        with self._translated():
            reader = self._read_to_ends()
        if reader is None or reader.fold.claim is None:
            return None
        claim = reader.fold.claim
        return StoreOwner(claim.epoch, claim.claimant, reader.silent_seconds())

    def claim(
        self, claimant: Claimant, silence_seconds: float, at_least: int = 1
    ) -> Claimed | None:
        """Write a claim into both topics, if the folder of the last one or its silence allow it."""
        with self._translated():
            reader = self._read_to_ends()
            if reader is None:
                self._topics.make()
                reader = self._read_to_ends()
            if reader is None:
                raise TimeoutError("the new topics are not there yet")
            self._check_topic()
            last = reader.fold.claim
            is_other = last is not None and last.folder != claimant.folder
            if is_other and reader.silent_seconds() < silence_seconds:
                return None
            self._owned = self._claimed(reader, claimant, at_least)
        if self._owned is None:
            return None
        return Claimed(self._owned.claim.epoch, self._owned.stored_bytes)

    def append(self, epoch: int, *commits: StoredCommit) -> StorePosition:
        """Write commits as one or more records each."""
        owned = self._require_owned(epoch)
        if commits[0].base != owned.end:
            raise self._conflict(commits[0].base, owned)
        owned.stored_bytes += sum(len(each.body) for each in commits)
        records = [part for each in commits for part in commit_parts(owned.claim, each)]
        (*_, last) = self._write(owned, records, commits[-1].end)
        place = StoreMark(last, digest_of(records[-1]), owned.claim, owned.stored_bytes)
        return StorePosition(owned.end, pack_mark(place))

    def beat(self, epoch: int) -> None:
        """Write a beat into the topic of beats."""
        owned = self._require_owned(epoch)
        with self._translated():
            record = encode_record(OwnerBeat(owned.claim.id, epoch))
            (offset,) = self._send(self._topics.names.beats, [record])
            is_next = offset == owned.next_beat
            owned.next_beat = offset + 1
            if not is_next:
                reader = self._read_to(beats=offset + 1)
                if reader.beats.claim != owned.claim.id:
                    raise self._fenced(reader, epoch)

    def compact(self, epoch: int, snapshot: StoreSnapshot) -> None:
        """Write a snapshot as records, and delete those before it once they count."""
        owned = self._require_owned(epoch)
        if owned.end not in {0, snapshot.end}:
            raise self._conflict(snapshot.end, owned)
        owned.stored_bytes = 0
        first, *_ = self._write(owned, snapshot_parts(owned.claim, snapshot), snapshot.end)
        self._topics.delete_before(first)

    def read(self, position: StorePosition, wait_seconds: float) -> StoredSlice:
        """Return what the reader has from a position on; another position takes a new reader."""
        with self._translated():
            found = self._reading(self._topics.log_end, position)
            if found is None:
                time.sleep(wait_seconds)
                return StoredSlice(None, (), position, is_whole=True)
            reader, end = found
            if self._owned is not None:
                end = max(end, self._owned.next_logged)
            part = reader.take(position, end, wait_seconds)
            self._position = part.position
        return part

    def close(self) -> None:
        """Close all clients."""
        if self._reader is not None:
            self._reader.close()
        self._reader = self._producer = None
        self._clients.close()

    def flaws(self) -> Sequence[str]:
        """Return how Kafka is set up to lose what it has acknowledged, as sentences."""
        with self._translated():
            return self._topics.flaws()

    def warnings(self) -> Sequence[str]:
        """Return what is not as it should be, and loses nothing, as sentences."""
        return self._topics.warnings()

    # -- reading

    def _reading(
        self, ask: Callable[[], T], position: StorePosition | None = None
    ) -> tuple[TopicReader, T] | None:
        """Return a reader at a position, or anywhere, with what is asked of the topics.

        None: there is no log yet.
        """
        for _ in range(2):
            reader = self._reader
            if reader is None or reader.is_lost or position not in {None, reader.position}:
                reader = self._begun(self._position if position is None else position)
            if reader is None:
                return None
            try:
                return reader, ask()
            except MissingTopicError:  # perhaps: a new reader sees that
                reader.is_lost = True
        raise TimeoutError("its topics cannot be read")

    def _begun(self, position: StorePosition) -> TopicReader | None:
        """Begin to read at a position; None if there is no log yet."""
        if self._reader is not None:
            self._reader.close()
        self._reader, self._position = None, position
        self._topic_id = self._topics.id()
        if self._topic_id is not None:
            self._producer = self._producer or self._clients.producer()
            self._reader = TopicReader(self._clients, self._topics, position)
        elif position != StorePosition() and self._topics.are_missing():
            raise DifferentTopicError(f"it is not there, and the copy ends at {position.end}")
        return self._reader

    def _read_to_ends(self) -> TopicReader | None:
        """Return a reader that has read all there is now; None if there is no log yet."""
        found = self._reading(self._topics.ends)
        if found is None:
            return None
        reader, ends = found
        reader.wait_for(*ends)
        return reader

    def _read_to(self, log: int = 0, beats: int = 0) -> TopicReader:
        """Return a reader that has read so far."""
        found = self._reading(lambda: None)
        if found is None:
            raise TimeoutError("its topics are not there")
        found[0].wait_for(log, beats)
        return found[0]

    def _check_topic(self) -> None:
        """Raise if the topic is not the one that the reader began to read."""
        found = self._topics.id()
        if found is None and not self._topics.are_missing():
            raise TimeoutError("its topics cannot be read")
        if found != self._topic_id:
            raise DifferentTopicError("it was deleted, and perhaps made again")

    # -- writing

    def _claimed(self, reader: TopicReader, claimant: Claimant, at_least: int) -> _Owned | None:
        last = reader.fold.claim
        epoch = max(at_least, reader.beats.epoch + 1, last.epoch + 1 if last else 1)
        log_id = last.log_id if last else uuid4().bytes
        claim = StoreClaim(log_id, epoch, uuid4().bytes, *claimant)
        (beat,) = self._send(self._topics.names.beats, [encode_record(claim)])
        reader.wait_for(beats=beat + 1)
        if reader.beats.claim != claim.id:
            return None
        (offset,) = self._send(self._topics.names.log, [encode_record(claim)])
        reader.wait_for(log=offset + 1)
        fold = reader.fold
        if fold.claim is None or fold.claim.id != claim.id:
            return None
        return _Owned(fold.claim, fold.end, fold.stored_bytes, offset + 1, beat + 1)

    def _require_owned(self, epoch: int) -> _Owned:
        owned, reader = self._owned, self._reader
        if owned is None or owned.claim.epoch != epoch:
            raise OwnerFencedError(f"{self._shown}: epoch {epoch} was not claimed here")
        if reader is not None and reader.fold.claim and reader.fold.claim.epoch > epoch:
            raise self._fenced(reader, epoch)
        if owned.has_failed:
            raise LogFailedError(f"{self._shown}: of an earlier write, {_UNKNOWN}")
        return owned

    def _write(self, owned: _Owned, records: Sequence[bytes], end: int) -> list[int]:
        """Write records of the owner; return their offsets once they count."""
        try:
            with self._translated(LogFailedError):
                offsets = self._send(self._topics.names.log, records)
                expected = range(owned.next_logged, owned.next_logged + len(records))
                if offsets != [*expected]:
                    self._require_counted(owned, offsets[-1], end)
        except LogFailedError:
            owned.has_failed = True
            raise
        if self._reader is not None:
            self._reader.forget()
        owned.end, owned.next_logged = end, offsets[-1] + 1
        return offsets

    def _require_counted(self, owned: _Owned, offset: int, end: int) -> None:
        """Wait until the reader has come to a record; raises `OwnerFencedError`.

        If the owner was succeeded, a commit counts that is within what counted before. A snapshot
        ends where the log did, so that it may have come too late: it is of no use any more.
        """
        reader = self._read_to(log=offset + 1)
        fold = reader.fold
        is_last = fold.claim is not None and fold.claim.id == owned.claim.id
        counted = fold.ends.get(owned.claim.id, 0)
        if not is_last and (counted < end or end == owned.end):
            raise self._fenced(reader, owned.claim.epoch)

    def _send(self, topic: str, records: Sequence[bytes]) -> list[int]:
        """Write records, and return their offsets; raises `KafkaException`, `TimeoutError`."""
        producer, self._producer = self._producer or self._clients.producer(), None
        answers: list[tuple[Any, int]] = []

        def note(error: object, record: Any) -> None:  # noqa: ANN401  # Kafka's own
            answers.append((error, record.offset()))

        start = 0
        for some in in_rounds(records, len, _SENT_AT_ONCE):
            for each in some:
                producer.produce(topic, each, partition=0, on_delivery=note)
            start += len(some)
            deadline = time.monotonic() + ANSWER_S
            while len(answers) < start:
                if time.monotonic() > deadline:
                    raise TimeoutError("no answer")
                producer.poll(deadline - time.monotonic())
            for error, _ in answers:
                if error is not None:
                    raise KafkaException(error)
        self._producer = producer
        return [offset for _, offset in answers]

    # -- errors

    def _fenced(self, reader: TopicReader, epoch: int) -> OwnerFencedError:
        claim = reader.fold.claim
        who = (
            f"{claim.node} at {claim.address}" if claim and claim.epoch > epoch else "another node"
        )
        claimed = max(reader.beats.epoch, claim.epoch if claim else 0)
        return OwnerFencedError(
            f"{self._shown}: {who} has claimed it with epoch {claimed}, after this owner with"
            f" {epoch}: nothing was written, and this owner has to exit"
        )

    def _conflict(self, base: int, owned: _Owned) -> OffsetConflictError:
        return OffsetConflictError(
            f"{self._shown} ends at {owned.end}, not at {base}: nothing was written"
        )

    @contextmanager
    def _translated(self, error_type: type[LogError] = StoreAwayError) -> Generator[None]:
        outcome = _AWAY if error_type is StoreAwayError else _UNKNOWN
        try:
            with self._clients.translated(f"{self._shown}: {outcome}", error_type):
                yield
        except DifferentTopicError as flaw:
            raise StoreDiffersError(f"{self._shown}: {flaw}. {DIFFERS}") from None
