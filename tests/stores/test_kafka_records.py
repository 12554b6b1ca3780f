"""Which records of a log in Kafka count: the order of the topic decides, alike for all readers."""

import os

import pytest

from fairlead.events.stores.kafka_records import (
    PART_BYTES,
    BeatsFold,
    LogFold,
    MissingCommitsError,
    OwnerBeat,
    StoreClaim,
    StoreRecord,
    commit_parts,
    decode_record,
    encode_record,
    snapshot_parts,
)
from fairlead.events.stores.port import StoredCommit, StoreSnapshot
from fairlead_tests.stores.engine import commit_at

Content = StoredCommit | StoreSnapshot | None


def claim_of(epoch: int, name: str = "", log_id: bytes = b"log") -> StoreClaim:
    return StoreClaim(log_id, epoch, f"claim {epoch} {name}".encode(), "n", "n:1", "folder")


FIRST, SECOND = claim_of(1), claim_of(2)


def parts_of(claim: StoreClaim, content: StoredCommit | StoreSnapshot) -> list[bytes]:
    if isinstance(content, StoredCommit):
        return commit_parts(claim, content)
    return snapshot_parts(claim, content)


def fold(*records: bytes | StoreRecord) -> tuple[list[Content], LogFold]:
    """Return what counts of records, and the fold behind them."""
    made = LogFold()
    raw = [each if isinstance(each, bytes) else encode_record(each) for each in records]
    counted = [made.take(decode_record(each)) for each in raw]
    return [each for each in counted if each is not None], made


def test_a_commit_of_many_parts_counts_with_its_last_part() -> None:
    commit = commit_at(0, os.urandom(2 * PART_BYTES + 1))
    parts = parts_of(FIRST, commit)
    assert len(parts) == 3
    assert all(len(each) < 1_000_000 for each in parts)
    assert fold(FIRST, *parts[:2])[0] == []
    counted, made = fold(FIRST, *parts)
    assert (counted, made.end, made.stored_bytes) == ([commit], 1, len(commit.body))


def test_a_commit_whose_parts_are_divided_by_a_claim_does_not_count() -> None:
    parts = parts_of(FIRST, commit_at(0, os.urandom(PART_BYTES + 1)))
    other = commit_at(0, b"of the second")
    assert fold(FIRST, parts[0], SECOND, parts[1])[0] == []
    counted, _ = fold(FIRST, parts[0], SECOND, *parts_of(SECOND, other), parts[1], *parts)
    assert counted == [other]


def test_parts_that_are_not_in_their_order_do_not_count() -> None:
    first, second, third = parts_of(FIRST, commit_at(0, os.urandom(2 * PART_BYTES + 1)))
    for parts in ((second, third), (first, third), (first, third, second), (first, second, second)):
        assert fold(FIRST, *parts)[0] == []
    assert len(fold(FIRST, first, first, second, third)[0]) == 1


def test_what_a_former_owner_writes_does_not_count() -> None:
    late = [*parts_of(FIRST, commit_at(1, b"late")), *parts_of(FIRST, StoreSnapshot(1, b"late"))]
    kept = [commit_at(0, b"first"), commit_at(1, b"second")]
    before, behind = parts_of(FIRST, kept[0]), parts_of(SECOND, kept[1])
    counted, made = fold(FIRST, *before, SECOND, *late, *behind, *late)
    assert (counted, made.claim, made.ends) == (kept, SECOND, {FIRST.id: 1})


def test_a_claim_counts_only_with_a_higher_epoch_and_the_log_keeps_its_identity() -> None:
    others = (claim_of(2, "too"), claim_of(1, "late"), claim_of(-3), FIRST)
    _, made = fold(FIRST, SECOND, *others)
    assert made.claim == SECOND
    _, made = fold(FIRST, claim_of(9, log_id=b"another"))
    assert made.claim == claim_of(9)


def test_without_a_claim_nothing_counts() -> None:
    assert fold(*parts_of(FIRST, commit_at(0)), OwnerBeat(FIRST.id, 1))[0] == []


def test_a_commit_beyond_the_end_is_a_hole_and_one_before_it_a_repetition() -> None:
    commits = [commit_at(0), commit_at(1)]
    records = [part for each in commits for part in parts_of(FIRST, each)]
    assert fold(FIRST, *records, *records[:1])[0] == commits
    with pytest.raises(MissingCommitsError, match="entries 2 to 7 are missing"):
        fold(FIRST, *records, *parts_of(FIRST, commit_at(7)))
    with pytest.raises(MissingCommitsError, match="entries 2 to 7 are missing"):
        fold(FIRST, *records, *parts_of(FIRST, StoreSnapshot(7, b"")))


def test_a_snapshot_begins_a_log_and_tells_those_nothing_who_have_it() -> None:
    commits = [commit_at(0), commit_at(1)]
    records = [part for each in commits for part in parts_of(SECOND, each)]
    snapshot = StoreSnapshot(2, os.urandom(PART_BYTES * 2))
    counted, made = fold(SECOND, *records, *parts_of(SECOND, snapshot))
    assert (counted, made.stored_bytes) == (commits, 0)
    behind = parts_of(SECOND, commit_at(2, b"behind"))
    counted, made = fold(*parts_of(SECOND, snapshot), *behind)
    assert counted == [snapshot, commit_at(2, b"behind")]
    assert (made.claim, made.stored_bytes) == (SECOND, 6)


def test_bytes_that_are_no_record_count_for_nobody() -> None:
    good = encode_record(FIRST)
    cut = [good[:at] for at in range(len(good))]
    odd = [b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 5_000, encode_record(7), os.urandom(99)]
    wrong = [encode_record(["commit", "text", 0, 1, 0, 1, b""]), encode_record(["later", 1])]
    wrong += [encode_record(["claim", b"log", 1, b"id", "n", "a"])]
    assert {decode_record(each) for each in (*cut, *odd, *wrong, None)} == {None}
    commit = commit_at(0)
    counted, _ = fold(*cut, FIRST, *odd, *parts_of(FIRST, commit), *odd)
    assert counted == [commit]


def test_beats_may_be_read_from_anywhere_on() -> None:
    made = BeatsFold()
    records = [
        OwnerBeat(SECOND.id, 2),
        OwnerBeat(FIRST.id, 1),
        claim_of(2, "too"),
        claim_of(3),
        OwnerBeat(SECOND.id, 2),
        OwnerBeat(claim_of(3).id, 3),
        None,
    ]
    assert [made.take(each) for each in records] == [True, False, False, True, False, True, False]
    assert (made.epoch, made.claim) == (3, claim_of(3).id)
