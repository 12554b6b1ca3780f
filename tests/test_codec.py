"""Records and their bytes: nothing is lost on the way, and no bytes do harm."""
# pyright: basic

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from inspect import signature
from typing import Any, get_args

import msgpack  # the independent oracle
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.events import records
from fairlead.events.catalogue import BY_NUMBER, CATALOGUE, TYPE_OF, RecordType, key_of
from fairlead.events.commits import (
    Advance,
    Commit,
    CommitId,
    ConsumerOffset,
    Manifest,
    OffsetRecord,
    PendingOffset,
)
from fairlead.events.entries import codec
from fairlead.events.entries.codec import (
    MalformedRecordError,
    NewerRecordError,
    decode,
    encode,
)
from fairlead.events.entries.wire import SHAPES
from fairlead.events.log.frame import Entry
from fairlead.events.model import (
    Cause,
    ClassicMember,
    ClassicProtocol,
    ClientAssignor,
    MemberState,
    Resource,
    Scope,
    Succession,
    TaskConfig,
    Token,
    Why,
)
from fairlead.events.records import ConnectorConfig, Record, Tombstone, Topic
from fairlead_tests.golden_records import EARLIER, WRITTEN, A, Golden


def entry_of(record: Record, **changes: Any) -> Entry:
    kind, version, key, value = encode(record)
    return Entry(7, kind, version, key, 0, value)._replace(**changes)


# Every record, whatever its values.

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
INTS = st.integers(-(1 << 63), (1 << 64) - 1)
EPOCHS = st.integers(0, (1 << 31) - 1)
RESOURCES = st.builds(Resource, NAMES, st.integers(-1, (1 << 31) - 1))
SETS = st.frozensets(RESOURCES, max_size=6)
GRANTS = st.dictionaries(RESOURCES, EPOCHS, max_size=6)
CONFIGS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=4)
SCALARS = st.none() | st.booleans() | INTS | st.text(max_size=9) | st.floats(allow_nan=False)
DOCUMENTS = st.dictionaries(NAMES, SCALARS, max_size=3)
TOKENS = st.builds(Token, EPOCHS, EPOCHS)
CAUSES = st.builds(Cause, st.sampled_from(Why), st.text(max_size=9))
CLASSIC_MEMBERS = st.builds(
    ClassicMember,
    NAMES,
    EPOCHS,
    EPOCHS,
    st.lists(st.builds(ClassicProtocol, NAMES, st.binary(max_size=9)), max_size=3).map(tuple),
    st.none() | NAMES,
    assignment=st.binary(max_size=9),
    url=st.text(max_size=9),
    assigned=GRANTS,
    pending=GRANTS,
    returns=EPOCHS,
)
ASSIGNORS = st.builds(ClientAssignor, NAMES, EPOCHS, EPOCHS, EPOCHS, EPOCHS, st.binary(max_size=9))
COMMIT_IDS = st.builds(CommitId, NAMES, EPOCHS, TOKENS, EPOCHS)
ADVANCES = st.builds(Advance, DOCUMENTS, st.none() | DOCUMENTS, st.none() | DOCUMENTS)
COMMITS = st.builds(
    Commit,
    COMMIT_IDS,
    st.lists(ADVANCES, max_size=3).map(tuple),
    st.builds(Manifest, st.text(), st.text(), EPOCHS, EPOCHS, EPOCHS),
    EPOCHS,
)
TASKS = st.lists(st.builds(TaskConfig, CONFIGS, EPOCHS), max_size=3).map(tuple)
BY_NAME: dict[Any, st.SearchStrategy[Any]] = {
    "assignors": st.lists(ASSIGNORS, max_size=3).map(tuple),
    "members": st.dictionaries(NAMES, SETS, max_size=3),
    "unplaceable": st.dictionaries(RESOURCES, st.text(max_size=9), max_size=3),
    "config": CONFIGS,
    "configs": CONFIGS,
    "scope": st.sampled_from(Scope),
    "name": NAMES,
    "pins": st.lists(NAMES, max_size=3).map(tuple),
    "tasks": TASKS,
    "partition": DOCUMENTS,
    "offset": DOCUMENTS,
    "commit": COMMITS,
    "last": COMMIT_IDS,
    "cause": CAUSES,
    "succession": st.none() | st.builds(Succession, EPOCHS, NAMES, EPOCHS),
    "token": TOKENS,
    "resource": RESOURCES,
    "assigned": GRANTS,
    "pending": GRANTS,
    "parked": GRANTS,
    "configured": SETS,
    "fired": SETS,
    "resources": SETS,
    "member_id": NAMES,
    "connector": NAMES,
    "topic": NAMES,
    "topics": st.dictionaries(NAMES, st.builds(Topic, NAMES, EPOCHS), max_size=3),
}


BY_KIND: dict[tuple[type, str], st.SearchStrategy[Any]] = {
    (ConsumerOffset, "partition"): EPOCHS,
    (ConsumerOffset, "offset"): EPOCHS,
    (PendingOffset, "offset"): st.builds(ConsumerOffset, NAMES, EPOCHS, EPOCHS),
    (records.ClassicGroup, "members"): st.lists(CLASSIC_MEMBERS, max_size=3).map(tuple),
}
"""Fields whose name means something else in other records."""


def any_of(kind: type) -> st.SearchStrategy[Any]:
    """Return records of a kind with anything in their fields."""
    told = {each.name: each.type for each in fields(kind)}
    numbers = {name: EPOCHS for name, its in told.items() if its is int}
    texts = {name: st.text(max_size=9) for name, its in told.items() if its is str}
    known = {name: BY_NAME[name] for name in told if name in BY_NAME}
    known |= {name: BY_KIND[kind, name] for name in told if (kind, name) in BY_KIND}
    return st.builds(kind, **{**numbers, **texts, **known})


RECORDS = st.one_of(*map(any_of, TYPE_OF))


@given(RECORDS)
@settings(max_examples=200)
def test_a_record_survives_its_bytes(record: Record) -> None:
    assert decode(entry_of(record)) == record


@given(RECORDS)
def test_a_tombstone_names_the_key_of_what_it_buries(record: Record) -> None:
    tombstone = Tombstone(type(record), key_of(record))
    assert encode(tombstone).key == encode(record).key
    assert decode(entry_of(tombstone)) == tombstone


def test_every_kind_of_record_has_a_row_and_no_two_have_the_same_number() -> None:
    kinds = {kind for union in get_args(Record) for kind in (get_args(union) or (union,))}
    assert kinds - {Tombstone} == set(TYPE_OF)
    assert len(BY_NUMBER) == len(TYPE_OF) == len(CATALOGUE)


def test_a_record_changes_a_group_unless_its_head_does_or_it_is_of_the_offset_log() -> None:
    silent = {*get_args(records.RecordPart), *get_args(OffsetRecord)}
    assert {row.record for row in CATALOGUE if row.fold is None} == silent
    never_buried = {*silent, records.GroupDeletion, records.OwnerBegan, records.OwnerResigned}
    assert {row.record for row in CATALOGUE if row.bury is None} == never_buried


BURIED = [(row, row.bury) for row in CATALOGUE if row.bury is not None]


@pytest.mark.parametrize(("row", "bury"), BURIED, ids=[row.record.__name__ for row, _ in BURIED])
def test_a_burial_takes_the_parts_of_the_key(row: RecordType, bury: Callable[..., None]) -> None:
    parts = list(signature(bury).parameters.values())[1:]
    told = [str for _ in row.key.texts] + [int for _ in row.key.numbers]
    assert [each.annotation for each in parts] == told


def test_only_what_differs_on_disk_has_a_shape() -> None:
    assert SHAPES.keys() < TYPE_OF.keys()
    for golden in WRITTEN:
        if type(golden.record) in SHAPES:
            assert msgpack.packb(golden.value) != as_it_is(golden.record)


def as_it_is(record: Record) -> bytes | None:
    """Return the bytes of a record without a shape; None if it has none."""
    try:
        return msgspec.msgpack.encode(record)
    except TypeError:
        return None


def test_the_types_on_disk_never_change() -> None:
    assert {row.record.__name__: row.number for row in CATALOGUE} == {
        "ClassicGroup": 2,
        "GroupMetadata": 3,
        "ConnectorsTasksMetadata": 4,
        "MemberMetadata": 5,
        "TargetAssignment": 6,
        "CurrentAssignment": 7,
        "GroupConfiguration": 8,
        "ConnectorConfig": 16,
        "TaskConfigs": 17,
        "TargetState": 18,
        "Offset": 19,
        "TaskStatus": 20,
        "ScheduledRebalance": 21,
        "Operator": 22,
        "Loss": 23,
        "Committed": 24,
        "TaskProgress": 25,
        "GroupDeletion": 26,
        "ConfiguredPart": 27,
        "TargetPart": 28,
        "CurrentPart": 29,
        "OffsetsAltered": 30,
        "SubscribedTopics": 31,
        "ConsumerSubscription": 32,
        "ConsumerOffset": 33,
        "PendingOffset": 34,
        "OwnerBegan": 35,
        "OwnerResigned": 36,
    }


# Golden values, read by msgpack, which had no part in them.

NONE_LISTED: dict[str, list[str]] = {"connectors": [], "tasks": []}


@pytest.mark.parametrize("golden", WRITTEN, ids=lambda golden: type(golden.record).__name__)
def test_the_bytes_of_a_record_are_these(golden: Golden) -> None:
    entry = entry_of(golden.record)
    assert (entry.version, entry.key) == (1, golden.key)
    assert msgpack.unpackb(entry.value) == golden.value
    packed = msgpack.packb(golden.value)
    assert decode(entry._replace(value=packed)) == golden.record, "another's bytes are read as well"


@pytest.mark.parametrize("golden", EARLIER, ids=lambda golden: type(golden.record).__name__)
def test_bytes_of_an_earlier_form_still_load(golden: Golden) -> None:
    entry = entry_of(golden.record)
    assert entry.key == golden.key
    assert msgpack.unpackb(entry.value) != golden.value, "this is no earlier form"
    assert decode(entry._replace(value=msgpack.packb(golden.value))) == golden.record


def test_every_kind_has_its_golden_bytes_with_every_field_of_it() -> None:
    assert sorted(TYPE_OF[type(golden.record)].number for golden in WRITTEN) == sorted(BY_NUMBER)
    for golden in WRITTEN:
        kind = type(golden.record)
        shape: Any = SHAPES.get(kind)
        told = shape.__struct_encode_fields__ if shape else [each.name for each in fields(kind)]
        assert golden.value.keys() == set(told)


# What an older version left out, and what a later one wrote.

OLDEST: dict[type, object] = {
    records.GroupMetadata: {"group_epoch": 3, "cause": {"why": "operator"}},
    records.MemberMetadata: {"member_id": "W1"},
    records.TargetAssignment: {"assignment_epoch": 3, "members": []},
    ConnectorConfig: {"connector": "A", "config": {}},
}


@pytest.mark.parametrize("kind", OLDEST, ids=lambda kind: kind.__name__)
def test_fields_that_came_later_have_defaults(kind: type) -> None:
    entry = Entry(0, TYPE_OF[kind].number, 1, b"", 0, msgpack.packb(OLDEST[kind]))
    assert type(decode(entry)) is kind


def test_a_field_that_a_later_version_added_is_passed_over() -> None:
    record = ConnectorConfig("A", {}, 1, 0)
    later = msgpack.unpackb(entry_of(record).value) | {"added": [1, {"later": None}]}
    assert decode(entry_of(record, value=msgpack.packb(later))) == record


def test_a_state_or_a_cause_that_a_later_version_added_still_loads() -> None:
    current = {
        "member_id": "W1",
        "member_epoch": 1,
        "previous_epoch": 0,
        "state": 44,
        "assigned": NONE_LISTED,
        "pending": NONE_LISTED,
    }
    found = decode(Entry(0, 7, 1, b"W1\0", 0, msgpack.packb(current)))
    assert found == records.CurrentAssignment("W1", 1, 0, MemberState.UNKNOWN, {}, {})
    bump = {"group_epoch": 3, "cause": {"why": "moon-rose", "subject": "W1"}}
    found = decode(Entry(0, 3, 1, b"", 0, msgpack.packb(bump)))
    assert found == records.GroupMetadata(3, Cause(Why.UNKNOWN, "moon-rose W1"), 0)


def test_an_unknown_type_is_left_to_the_reader_to_count() -> None:
    assert decode(Entry(0, 99, 1, b"", 0, b"\x80")) is None
    assert decode(Entry(0, 99, 44, b"", 0, None)) is None


def test_a_newer_version_of_a_known_type_is_refused_with_what_to_do() -> None:
    entry = entry_of(ConnectorConfig("A", {}, 1, 0), version=2)
    with pytest.raises(NewerRecordError, match=r"offset 7 .* the log is intact"):
        decode(entry)
    with pytest.raises(NewerRecordError):
        decode(entry._replace(value=None))


def test_older_versions_are_lifted_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(was: str, now: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return lambda value: {(now if key == was else key): each for key, each in value.items()}

    upcasts = rename("title", "name"), rename("name", "connector")
    form = codec.format_of(replace(BY_NUMBER[16], upcasts=upcasts))
    monkeypatch.setitem(codec.FORMATS, 16, form)
    for version, name in ((1, "title"), (2, "name"), (3, "connector")):
        old = msgpack.packb({name: "A", "config": {"x": "1"}, "version": 4})
        found = decode(Entry(0, 16, version, b"A\0", 0, old))
        assert found == ConnectorConfig("A", {"x": "1"}, 4, 0)


# Hostile bytes.

PLAIN: bytes = msgpack.packb({"connector": "A", "config": {}}) or b""
HOSTILE = {
    "nothing": b"",
    "nil": b"\xc0",
    "no-map": msgpack.packb([1, 2, 3]),
    "empty-map": msgpack.packb({}),
    "trailing": PLAIN + b"\x00",
    "cut": PLAIN[:-3],
    "wrong-type": msgpack.packb({"connector": 7, "config": {}}),
    "wrong-value": msgpack.packb({"connector": "A", "config": {"x": 1}}),
    "deep": b"\x91" * 100_000,
    "deep-map": b"\x81\xa1a" * 100_000,
    "huge-string": b"\xdb\xff\xff\xff\xff",
    "huge-array": b"\xdd\xff\xff\xff\xff",
    "no-utf-8": b"\x82\xa9connector\xa1\xff\xa6config\x80",
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_bytes_that_are_no_record_are_malformed(value: bytes) -> None:
    for number in BY_NUMBER:
        with pytest.raises(MalformedRecordError, match="offset 7 "):
            decode(Entry(7, number, 1, b"", 0, value))


@given(number=st.sampled_from(sorted(BY_NUMBER)), value=st.binary(max_size=60))
@settings(max_examples=200)
def test_any_bytes_are_a_record_or_malformed(number: int, value: bytes) -> None:
    found: type | None = None
    with suppress(MalformedRecordError):
        found = type(decode(Entry(7, number, 1, b"", 0, value)))
    assert found in {None, BY_NUMBER[number].record}


@given(number=st.sampled_from(sorted(BY_NUMBER)), key=st.binary(max_size=20))
@settings(max_examples=200)
def test_any_key_is_a_tombstone_or_malformed(number: int, key: bytes) -> None:
    found: Tombstone | None = None
    with suppress(MalformedRecordError):
        decoded = decode(Entry(7, number, 1, key, 0, None))
        assert isinstance(decoded, Tombstone)
        found = decoded
    assert found is None or encode(found).key == key, "and no two keys are one"


@pytest.mark.parametrize("kind", TYPE_OF, ids=lambda kind: kind.__name__)
def test_a_tombstone_whose_key_has_the_wrong_number_of_parts_is_malformed(kind: type) -> None:
    for key in (b"", b"1\0", b"A\x001\0", b"A\x001\x002\x003\x004\x005\0"):
        entry = Entry(7, TYPE_OF[kind].number, 1, key, 0, None)
        sample = next(golden.record for golden in WRITTEN if type(golden.record) is kind)
        if key.count(b"\0") == encode(sample).key.count(b"\0"):
            assert isinstance(decode(entry), Tombstone)
        else:
            with pytest.raises(MalformedRecordError):
                decode(entry)


def test_a_version_from_before_the_first_is_malformed() -> None:
    entry = entry_of(ConnectorConfig("A", {}, 1, 0), version=0)
    with pytest.raises(MalformedRecordError):
        decode(entry)


def test_grants_without_their_epochs_are_malformed() -> None:
    record = records.CurrentAssignment("W1", 1, 0, MemberState.STABLE, {A: 1}, {})
    cut = msgpack.unpackb(entry_of(record).value) | {"assigned_epochs": []}
    with pytest.raises(MalformedRecordError, match="1 resources with 0 grant epochs"):
        decode(entry_of(record, value=msgpack.packb(cut)))


def test_a_head_whose_resources_lie_in_parts_is_refused_by_who_knows_of_none() -> None:
    head = records.ConnectorsTasksMetadata(frozenset(), parts=2)
    assert entry_of(head).version == 2
    assert decode(entry_of(head)) == head
    with pytest.raises(NewerRecordError):
        decode(entry_of(head, version=3))


def test_a_target_may_be_one_record_however_large_it_is() -> None:
    members = {
        f"W{number}": frozenset(Resource(f"C{number}", task) for task in range(100))
        for number in range(1_000)
    }
    record = records.TargetAssignment(1, members)
    assert decode(entry_of(record)) == record
