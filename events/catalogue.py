"""The catalogue of records: one row for each type, and what is built from the rows.

A row says by which number the log knows the type, which fields are its key, and how the record
and its tombstone change a group. To add a record, see LOG.md §9.

As bytes a key is short enough for LMDB, and its first parts are a prefix of the whole, so that
all keys that begin with a connector's name can be scanned.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple

from . import folds
from .commits import (
    CommitId,
    Committed,
    ConsumerOffset,
    Document,
    Offset,
    PendingOffset,
    TaskProgress,
    spell_partition,
)
from .model import Key
from .records import (
    ClassicGroup,
    ConfiguredPart,
    ConnectorConfig,
    ConnectorsTasksMetadata,
    ConsumerSubscription,
    CurrentAssignment,
    CurrentPart,
    GroupConfiguration,
    GroupDeletion,
    GroupMetadata,
    Loss,
    MemberMetadata,
    OffsetsAltered,
    Operator,
    OwnerBegan,
    OwnerResigned,
    Record,
    ScheduledRebalance,
    SubscribedTopics,
    TargetAssignment,
    TargetPart,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)

Upcast = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes a plain map of one version from one of the version before."""


class KeyFields(NamedTuple):
    """The key fields of a record: text fields, then number fields.

    A field is given by its path, such as `token.generation`.
    """

    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    def reader(self) -> Callable[[Any], Key]:
        """Return a function that reads the key of a record."""
        paths = self.texts + self.numbers
        if len(paths) == 1:
            read = attrgetter(paths[0])
            return lambda record: (read(record),)
        return attrgetter(*paths) if paths else lambda _: ()

    def parse(self, packed: bytes) -> Key:
        """Return the key from its bytes; raises ValueError if they have another form."""
        *parts, behind = packed.decode().split("\0")
        texts = len(self.texts)
        key: Key = (*parts[:texts], *map(int, parts[texts:]))
        if behind or len(key) != texts + len(self.numbers) or pack_key(key) != packed:
            raise ValueError(f"{packed!r} is no key of {', '.join(self.texts + self.numbers)}")
        return key


PER_GROUP: Final = KeyFields()
PER_MEMBER: Final = KeyFields(("member_id",))
PER_CONNECTOR: Final = KeyFields(("connector",))
PER_PARTITION: Final = KeyFields(("connector", "partition_key"))
PER_RESOURCE: Final = KeyFields(("resource.connector",), ("resource.task",))
PER_TASK: Final = KeyFields(("last.connector",), ("last.task",))
PER_BATCH: Final = KeyFields(
    ("commit_id.connector",),
    (
        "commit_id.task",
        "commit_id.token.grant_epoch",
        "commit_id.token.generation",
        "commit_id.batch",
    ),
)
PER_SUBJECT: Final = KeyFields(("scope.value", "name"), ("task",))
PER_TOPIC_PARTITION: Final = KeyFields(("topic",), ("partition",))
PER_TRANSACTION: Final = KeyFields(("offset.topic",), ("offset.partition", "producer_id", "after"))
PER_PART: Final = KeyFields((), ("number",))
PER_MEMBER_AND_PART: Final = KeyFields(("member_id",), ("number",))


GENERATION: Final = 14
"""The newest generation of golden logs: it rises whenever what is written changes (LOG.md §9)."""


@dataclass(frozen=True, slots=True)
class RecordType:
    """A type of record, with all but its fields."""

    number: int
    """Its key type: it never changes, and is never given to another type."""

    record: type
    key: KeyFields
    """What tells records of the type apart."""

    fold: Callable[..., None] | None = None
    """Changes a group by a record. None: such a record never changes one by itself. Parts are
    read with their head, and the records of the offset log are no matter of the group."""

    bury: Callable[..., None] | None = None
    """Changes a group by a tombstone, and is given the parts of its key. None: as for `fold`, or
    there is never a tombstone of this type."""

    upcasts: tuple[Upcast, ...] = ()
    """From the first version to the newest, step by step; empty: there is but one version."""

    shown_as: str = ""
    """Its name where a log is shown, if its class has another: what is shown never changes."""

    @property
    def name(self) -> str:
        """The name of the type where a log is shown."""
        return self.shown_as or self.record.__name__


CATALOGUE: Final = (
    RecordType(2, ClassicGroup, PER_GROUP, folds.set_generation, folds.drop_generation),
    RecordType(3, GroupMetadata, PER_GROUP, folds.raise_epoch, folds.drop_epoch),
    RecordType(4, ConnectorsTasksMetadata, PER_GROUP, folds.set_configured, folds.drop_configured),
    RecordType(5, MemberMetadata, PER_MEMBER, folds.seat_member, folds.unseat_member),
    RecordType(6, TargetAssignment, PER_GROUP, folds.set_target, folds.drop_target),
    RecordType(7, CurrentAssignment, PER_MEMBER, folds.set_step, folds.release_member),
    RecordType(8, GroupConfiguration, PER_GROUP, folds.set_configs, folds.drop_configs),
    RecordType(16, ConnectorConfig, PER_CONNECTOR, folds.put_connector, folds.drop_connector),
    RecordType(17, TaskConfigs, PER_CONNECTOR, folds.put_task_configs, folds.drop_task_configs),
    RecordType(18, TargetState, PER_CONNECTOR, folds.put_target_state, folds.drop_target_state),
    RecordType(19, Offset, PER_PARTITION),
    RecordType(20, TaskStatus, PER_RESOURCE, folds.put_status, folds.drop_status),
    RecordType(21, ScheduledRebalance, PER_GROUP, folds.set_schedule, folds.drop_schedule),
    RecordType(22, Operator, PER_SUBJECT, folds.put_order, folds.drop_order),
    RecordType(23, Loss, PER_MEMBER, folds.put_loss, folds.drop_loss),
    RecordType(24, Committed, PER_BATCH),
    RecordType(25, TaskProgress, PER_TASK),
    RecordType(26, GroupDeletion, PER_GROUP, folds.delete_group),
    RecordType(27, ConfiguredPart, PER_PART, shown_as="ConfiguredShard"),
    RecordType(28, TargetPart, PER_PART, shown_as="TargetShard"),
    RecordType(29, CurrentPart, PER_MEMBER_AND_PART, shown_as="CurrentShard"),
    RecordType(
        30, OffsetsAltered, PER_CONNECTOR, folds.put_offset_change, folds.drop_offset_change
    ),
    RecordType(31, SubscribedTopics, PER_GROUP, folds.set_topics, folds.drop_topics),
    RecordType(
        32, ConsumerSubscription, PER_MEMBER, folds.put_subscription, folds.drop_subscription
    ),
    RecordType(33, ConsumerOffset, PER_TOPIC_PARTITION),
    RecordType(34, PendingOffset, PER_TRANSACTION),
    RecordType(35, OwnerBegan, PER_GROUP, folds.set_ownership),
    RecordType(36, OwnerResigned, PER_GROUP, folds.set_ownership),
)

TYPE_OF: Final[Mapping[type, RecordType]] = {row.record: row for row in CATALOGUE}
"""The rows by class of record."""

BY_NUMBER: Final[Mapping[int, RecordType]] = {row.number: row for row in CATALOGUE}
"""The rows by key type."""

_KEY_OF: Final = {row.record: row.key.reader() for row in CATALOGUE}


def key_of(record: Record) -> Key:
    """Return the compaction key of a record: it tells the record from others of its type."""
    return record.key if type(record) is Tombstone else _KEY_OF[type(record)](record)


def entry_key(kind: type, key: Key = ()) -> tuple[int, bytes]:
    """Return a record's type number and key in the form of a log's entries.

    With the first parts of a key only, it is the prefix of all keys that begin with them.
    """
    return TYPE_OF[kind].number, pack_key(key)


def offset_key(connector: str, partition: Document) -> Key:
    """Return the key under which the offset of a source partition is kept."""
    return (connector, spell_partition(partition))


def commit_key(commit_id: CommitId) -> Key:
    """Return the key under which a batch is kept until it is published."""
    return (commit_id.connector, commit_id.task, *commit_id.token, commit_id.batch)


def pack_key(key: Key) -> bytes:
    """Return the bytes of a key, or a prefix of all keys that begin with these parts."""
    return "".join([f"{part}\0" for part in key]).encode()
