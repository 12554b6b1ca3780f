"""Copies of a log whose commits count in a store: they follow, claim, and are never ahead."""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import lmdb
import pytest

from fairlead.events.log.errors import CorruptLogError, LogFailedError, OwnerFencedError
from fairlead.events.log.files import read_mark
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.stores import stored_log
from fairlead.events.stores.port import (
    Claimant,
    StoreAwayError,
    StoreDiffersError,
    StoreUnsafeError,
)
from fairlead.events.stores.stored_log import StoredLog
from fairlead_tests.log.memory_store import MemoryEngine, MemoryStore
from fairlead_tests.log.samples import TIME_MS, gone, member
from fairlead_tests.stores.pairs import Engines, engines

HISTORY = [member("W1", 1), member("W2", 1), gone("W1"), member("W2", 2), member("W3", 1)]


def copy_at(path: Path, engine: MemoryEngine) -> StoredLog:
    return StoredLog.open_copy(path, "flights", None, MemoryStore(engine))


def claimant(node: str) -> Claimant:
    return Claimant(node, f"{node}:9092", f"folder of {node}")


def owner_at(path: Path, engine: MemoryEngine, silence: float = 0.0) -> StoredLog:
    log = copy_at(path, engine)
    assert log.claim(claimant(path.name), silence)
    return log


def append_one_by_one(log: GroupLog, entries: Sequence[NewEntry]) -> None:
    for entry in entries:
        log.append(log.end, [entry], TIME_MS)


def tables_of(path: Path) -> list[list[tuple[bytes, bytes]]]:
    """Return the rows of `events`, `commits` and `view` of a closed log."""
    with lmdb.open(str(path), max_dbs=5, readonly=True) as env, env.begin() as txn:
        names = (b"events", b"commits", b"view")
        return [list(txn.cursor(env.open_db(each, txn, create=False))) for each in names]


def test_a_copy_is_its_owners_log_byte_for_byte(tmp_path: Path) -> None:
    engine = MemoryEngine(most=2)
    with owner_at(tmp_path / "n1", engine) as owner, copy_at(tmp_path / "n2", engine) as copy:
        append_one_by_one(owner, HISTORY)
        owner.append(owner.end, HISTORY, TIME_MS)
        assert [copy.follow() for _ in range(4)] == [False, False, True, True]
        assert copy.load() == owner.load()
        assert copy.verify() == owner.verify()
    assert tables_of(tmp_path / "n2") == tables_of(tmp_path / "n1")
    with LogReader.open(tmp_path / "n2", "flights") as reader:
        assert reader.end() == 10


def write_both(stores: Engines, folder: Path) -> None:
    """Have an owner write to the offset log, then to the control log, twice."""
    with closing(stores.copies_at(folder)) as owner:
        assert owner.claim(claimant("n1"), 0.0)
        for at in range(2):
            owner.offsets.append(at, HISTORY[at : at + 1], TIME_MS)
            owner.control.append(at, HISTORY[at : at + 1], TIME_MS)


def test_a_control_log_never_has_what_its_offset_log_lacks(tmp_path: Path) -> None:
    stores = engines()
    write_both(stores, tmp_path / "n1")
    stores.control.most = 1
    with closing(stores.copies_at(tmp_path / "n2")) as copies:
        assert not copies.control.follow()
        assert (copies.control.end, copies.offsets.end) == (1, 2)
    stores.offsets.is_away = True
    with closing(stores.copies_at(tmp_path / "n3")) as copies:
        for _ in range(2):
            with pytest.raises(StoreAwayError):
                copies.control.follow()
        assert copies.control.end == 0
        stores.offsets.is_away = False
        assert copies.claim(claimant("n3"), 0.0)
        assert (copies.control.end, copies.offsets.end) == (2, 2)


def test_a_store_whose_offsets_are_older_than_its_control_log_is_refused(tmp_path: Path) -> None:
    stores = engines()
    write_both(stores, tmp_path / "n1")
    del stores.offsets.commits[1:]
    with closing(stores.copies_at(tmp_path / "n2")) as copies:
        with pytest.raises(StoreDiffersError, match=r"rest on 2 entries of .* which ends at 1"):
            copies.control.follow()
        assert copies.control.end == 0


def test_a_published_control_log_rests_on_all_offsets(tmp_path: Path) -> None:
    stores = engines()
    for path in (tmp_path / "n1" / "control", tmp_path / "n1" / "offsets"):
        with GroupLog.open_writer(path, "flights") as log:
            append_one_by_one(log, HISTORY)
    with closing(stores.copies_at(tmp_path / "n1")) as own:
        end = own.offsets.publish(claimant("n1"))
        own.control.publish(claimant("n1"), rests_on=end)
        own.control.publish(claimant("n1"))  # what is there already may rest on anything
    stores.control.most = 1
    with closing(stores.copies_at(tmp_path / "n2")) as copies:
        copies.control.follow()
        assert (copies.control.end, copies.offsets.end) == (1, 5)


def test_an_append_counts_in_the_store_before_it_is_in_the_copy(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        append_one_by_one(owner, HISTORY[:2])
        engine.loses_answers = True
        with pytest.raises(LogFailedError):
            owner.append(2, HISTORY[2:], TIME_MS)
        assert (engine.end, owner.end, owner.load().end) == (5, 2, 2)
    engine.loses_answers = False
    with owner_at(tmp_path / "n1", engine) as owner:  # the next process reads what counted
        assert owner.end == 5


def test_what_is_fenced_is_in_no_copy(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as first, copy_at(tmp_path / "n2", engine) as second:
        append_one_by_one(first, HISTORY[:2])
        assert second.claim(claimant("n2"), 0.0)
        with pytest.raises(OwnerFencedError):
            first.append(2, HISTORY[2:], TIME_MS)
        with pytest.raises(OwnerFencedError):
            first.beat()
        assert (first.end, engine.end) == (2, 2)
        assert second.append(2, HISTORY[2:], TIME_MS) == 5
        assert second.epoch > first.epoch


def test_an_owner_that_was_just_heard_of_is_left_alone(tmp_path: Path) -> None:
    now = [0.0]
    engine = MemoryEngine(clock=lambda: now[0])
    with owner_at(tmp_path / "n1", engine) as first, copy_at(tmp_path / "n2", engine) as second:
        now[0] = 2.0
        first.beat()
        now[0] = 4.9
        assert not second.claim(claimant("n2"), 3.0)
        assert first.append(0, HISTORY, TIME_MS) == 5
        now[0] = 5.0
        assert second.claim(claimant("n2"), 3.0)
        assert second.end == 5


def test_of_two_nodes_that_saw_the_same_owner_give_up_one_claims(tmp_path: Path) -> None:
    engine = MemoryEngine()
    names = ("n2", "n3")
    with owner_at(tmp_path / "n1", engine), copy_at(tmp_path / "n2", engine) as second:
        seen = second.owner()
        assert seen is not None
        with copy_at(tmp_path / "n3", engine) as third:
            claims = [
                log.claim(claimant(name), 0.0, seen.epoch)
                for name, log in zip(names, (second, third), strict=True)
            ]
            assert claims == [True, False]
            assert second.append(0, HISTORY, TIME_MS) == 5


def test_the_folder_of_the_last_claim_need_not_wait(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        first = owner.epoch
    with owner_at(tmp_path / "n1", engine, silence=3.0) as owner:
        assert owner.epoch > first


def test_epochs_go_on_from_those_of_the_copy_and_of_the_commits(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        owner.append(0, HISTORY, TIME_MS)
        epochs = [owner.epoch]
    with copy_at(tmp_path / "n2", engine) as copy:
        copy.follow()
        assert copy.epoch >= epochs[0]
    for _ in range(3):
        with GroupLog.open_writer(tmp_path / "n2", "flights") as alone:
            epochs.append(alone.epoch)
    engine.owner = None
    with owner_at(tmp_path / "n2", engine) as owner:
        epochs.append(owner.epoch)
    assert epochs == sorted(set(epochs))


def test_a_lost_folder_comes_back_from_the_store(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        append_one_by_one(owner, HISTORY)
        wanted = owner.load()
    with owner_at(tmp_path / "n3", engine) as owner:
        assert owner.load() == wanted
        assert owner.append(5, HISTORY, TIME_MS) == 10


@pytest.mark.parametrize("before", [0, 2])
def test_where_the_store_begins_later_a_copy_is_replaced_by_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(stored_log, "SNAPSHOT_BYTES", 1)
    monkeypatch.setattr(StoredLog, "_weigh_at", 1)
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner, copy_at(tmp_path / "n2", engine) as copy:
        append_one_by_one(owner, HISTORY[:before])
        assert copy.follow()
        append_one_by_one(owner, HISTORY * 20)
        while not owner.compact_store(owner.beat):
            append_one_by_one(owner, HISTORY)
        low = owner.end
        append_one_by_one(owner, HISTORY)
        assert [each.base for each in engine.commits] == [*range(low, low + 5)]
        assert copy.follow()
        assert (copy.low(), copy.end) == (low, low + 5)
        assert copy.load().entries == [
            each for each in owner.load().entries if each.value or each.offset >= low
        ]
        copy.verify()
    with owner_at(tmp_path / "n2", engine) as owner:
        assert owner.append(low + 5, HISTORY, TIME_MS) == low + 10
        owner.verify()


def test_a_snapshot_is_due_only_when_the_commits_are_three_times_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_log, "SNAPSHOT_BYTES", 100)
    monkeypatch.setattr(StoredLog, "_weigh_at", 100)
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        for number in range(30):
            owner.append(owner.end, [member(f"W{number}", 1)], TIME_MS)
            assert not owner.compact_store(owner.beat)


def test_an_owner_is_heard_of_while_it_makes_a_large_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_log, "SNAPSHOT_BYTES", 1)
    monkeypatch.setattr(StoredLog, "_weigh_at", 1)
    monkeypatch.setattr(stored_log, "BEAT_SECONDS", 0.0)
    engine, beats = MemoryEngine(), list[int]()
    with owner_at(tmp_path / "n1", engine) as owner:
        append_one_by_one(owner, HISTORY * 20)
        assert owner.compact_store(lambda: beats.append(len(engine.commits)))
    assert engine.commits == []
    assert beats == [100] * (1 + 2 + 1), "at the begin, after each frame, and before it is sent"


def test_a_snapshot_that_is_not_due_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_log, "SNAPSHOT_BYTES", 1)
    monkeypatch.setattr(StoredLog, "_weigh_at", 1)
    monkeypatch.setattr(StoredLog, "snapshot", None)
    with owner_at(tmp_path / "n1", MemoryEngine()) as owner:
        owner.append(0, [member(f"W{each}", 1) for each in range(50)], TIME_MS)
        assert not owner.compact_store(owner.beat)


def published_elsewhere(tmp_path: Path) -> MemoryEngine:
    """Return a store with another history of the same length."""
    engine = MemoryEngine()
    with owner_at(tmp_path / "other", engine) as owner:
        append_one_by_one(owner, [member("W9", 9), *HISTORY])
    return engine


def test_a_copy_of_another_history_refuses_and_nothing_changes(tmp_path: Path) -> None:
    engine, other = MemoryEngine(), published_elsewhere(tmp_path)
    with owner_at(tmp_path / "n1", engine) as owner:
        append_one_by_one(owner, HISTORY[:3])
        before = owner.load()
    with copy_at(tmp_path / "n1", other) as copy:
        with pytest.raises(StoreDiffersError, match=r"another history than .*n1, which ends at 3"):
            copy.follow()
        with pytest.raises(StoreDiffersError):
            copy.claim(claimant("n1"), 0.0)
        assert copy.load() == before
    assert other.owner is not None
    assert other.owner[1].node == "other"


@pytest.mark.parametrize("kept", [0, 2])
def test_a_store_that_was_restored_from_an_older_copy_is_refused(tmp_path: Path, kept: int) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        append_one_by_one(owner, HISTORY)
    del engine.commits[kept:]
    with copy_at(tmp_path / "n1", engine) as copy:
        with pytest.raises(StoreDiffersError, match=f"ends at {kept}, not at 5"):
            copy.claim(claimant("n1"), 0.0)
        assert copy.end == 5


def test_a_log_that_was_never_in_the_store_asks_to_be_published(tmp_path: Path) -> None:
    with GroupLog.open_writer(tmp_path / "n1", "flights") as alone:
        alone.append(0, HISTORY, TIME_MS)
    engine = MemoryEngine()
    with copy_at(tmp_path / "n1", engine) as copy:
        with pytest.raises(StoreDiffersError, match="`fairlead log publish`"):
            copy.claim(claimant("n1"), 0.0)
        assert copy.end == 5
    assert engine.owner is None


def test_damaged_bytes_of_a_store_are_refused_whole(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        append_one_by_one(owner, HISTORY)
    sound = engine.commits[3]
    cut = sound.body[:-2] + bytes(2)
    for number, body in enumerate((b"", b"\x92", os.urandom(60), cut, engine.commits[2].body)):
        engine.commits[3] = sound._replace(body=body)
        with copy_at(tmp_path / f"copy {number}", engine) as copy:
            with pytest.raises((CorruptLogError, StoreDiffersError)):
                copy.follow()
            assert copy.end == 0
    engine.commits[3] = sound
    with copy_at(tmp_path / "sound", engine) as copy:
        assert copy.follow()
        assert copy.end == 5


def test_a_store_that_is_away_changes_nothing(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner, copy_at(tmp_path / "n2", engine) as copy:
        append_one_by_one(owner, HISTORY)
        engine.is_away = True
        with pytest.raises(StoreAwayError):
            copy.follow()
        with pytest.raises(StoreAwayError):
            owner.beat()
        engine.is_away = False
        assert copy.follow()
        assert copy.load() == owner.load()


def test_the_place_in_the_store_outlives_the_process(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        append_one_by_one(owner, HISTORY)
    with copy_at(tmp_path / "n2", engine) as copy:
        copy.follow()
    for path in ("n1", "n2"):
        with copy_at(tmp_path / path, engine) as copy:
            assert copy.follow()
            assert copy.end == 5


def test_the_copy_alone_is_a_log(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with owner_at(tmp_path / "n1", engine) as owner:
        append_one_by_one(owner, HISTORY)
    with GroupLog.open_writer(tmp_path / "n1", "flights") as alone:
        assert alone.append(5, HISTORY, TIME_MS) == 10
        alone.verify()
    with copy_at(tmp_path / "n1", engine) as copy, pytest.raises(StoreDiffersError):
        copy.follow()


def test_a_log_of_one_host_is_published_into_an_empty_store(tmp_path: Path) -> None:
    engine = MemoryEngine()
    with GroupLog.open_writer(tmp_path / "n1", "flights") as alone:
        append_one_by_one(alone, HISTORY)
        wanted, epoch = alone.load(), alone.epoch
    with copy_at(tmp_path / "n1", engine) as copy:
        assert copy.publish(claimant("n1")) == 5
    with owner_at(tmp_path / "n2", engine) as owner:
        assert owner.load() == wanted
        assert owner.epoch > epoch
        owner.append(5, HISTORY, TIME_MS)
    with copy_at(tmp_path / "n1", engine) as copy:
        assert copy.follow()
        assert copy.end == 10
        copy.verify()


@pytest.mark.parametrize("low", [1, 5, 7, 9, 14, 15])
def test_a_trimmed_log_is_published_as_a_snapshot_and_what_follows(
    tmp_path: Path, low: int
) -> None:
    engine = MemoryEngine()
    with GroupLog.open_writer(tmp_path / "n1", "flights") as alone:
        for _ in range(3):
            alone.append(alone.end, HISTORY, TIME_MS)
        alone.trim(low)
        values = {(each.type, each.key): each for each in alone.load().entries if each.value}
    with copy_at(tmp_path / "n1", engine) as copy:
        copy.publish(claimant("n1"))
    with copy_at(tmp_path / "n2", engine) as copy:
        assert copy.follow()
        assert copy.end == 15
        found = {(each.type, each.key): each for each in copy.load().entries if each.value}
        assert found == values
        copy.verify()


def test_the_summary_of_what_was_trimmed_is_published(tmp_path: Path) -> None:
    def summarize(before: bytes | None, entries: Sequence[Entry]) -> bytes:
        return (before or b"") + b"".join(b"%d " % each.offset for each in entries)

    engine = MemoryEngine()
    with GroupLog.open_writer(tmp_path / "n1", "flights") as alone:
        for _ in range(2):
            alone.append(alone.end, HISTORY, TIME_MS)
        alone.trim(3, summarize=summarize)
    with copy_at(tmp_path / "n1", engine) as copy:
        copy.publish(claimant("n1"), summarize)
    with copy_at(tmp_path / "n2", engine) as copy:
        assert copy.follow()
        assert copy.trimmed() == (5, b"0 1 2 3 4 ")


def test_a_store_that_has_a_log_is_not_published_into(tmp_path: Path) -> None:
    engine = published_elsewhere(tmp_path)
    before = engine.owner, list(engine.commits)
    with GroupLog.open_writer(tmp_path / "n1", "flights") as alone:
        alone.append(0, HISTORY, TIME_MS)
    refusal = pytest.raises(StoreDiffersError, match="has a log of the node other")
    with copy_at(tmp_path / "n1", engine) as copy, refusal:
        copy.publish(claimant("n1"))
    assert (engine.owner, engine.commits) == before


@pytest.mark.parametrize("kept", [0, 1, 3, 5])
def test_a_publishing_that_was_interrupted_goes_on(tmp_path: Path, kept: int) -> None:
    engine = MemoryEngine()
    with GroupLog.open_writer(tmp_path / "n1", "flights") as alone:
        append_one_by_one(alone, HISTORY)
        wanted = alone.load()
    with copy_at(tmp_path / "n1", engine) as copy:
        copy.publish(claimant("n1"))
    del engine.commits[kept:]
    with copy_at(tmp_path / "n1", engine) as copy:
        assert copy.publish(claimant("n1")) == 5
    with copy_at(tmp_path / "n2", engine) as copy:
        assert copy.follow()
        assert copy.load() == wanted


def test_an_engine_that_may_lose_what_counts_is_refused_unless_that_is_accepted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = MemoryEngine(flaws=["fsync is off"])
    with copy_at(tmp_path / "n1", engine) as copy:
        with pytest.raises(StoreUnsafeError, match=r"fsync is off \(log.store.unsafe = true"):
            copy.check_store(is_unsafe=False)
        copy.check_store(is_unsafe=True)
    assert caplog.messages == ["fsync is off: log.store.unsafe = true accepts that"]


def test_the_mark_of_a_copy_says_nothing_of_the_commit_that_a_power_cut_may_undo(
    tmp_path: Path,
) -> None:
    engine = MemoryEngine()
    marks: list[int] = []
    with owner_at(tmp_path / "n1", engine) as owner:
        for entry in HISTORY:
            append_one_by_one(owner, [entry])
            marks.append(mark_at(tmp_path / "n1"))
    assert marks == [0, 1, 2, 3, 4]
    with copy_at(tmp_path / "n1", engine):
        assert mark_at(tmp_path / "n1") == 5  # what an opening finds is flushed first


def mark_at(path: Path) -> int:
    mark = read_mark(path)
    assert mark is not None
    return mark.end
