"""What every store of a log keeps, whatever its engine (events/stores/port.py)."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from fairlead.events.log.errors import OffsetConflictError, OwnerFencedError
from fairlead.events.stores.port import (
    Claimant,
    Claimed,
    LogStore,
    StoreDiffersError,
    StoredSlice,
    StoreOwner,
    StorePosition,
    StoreSnapshot,
)
from fairlead_tests.stores.engine import (
    BEGINNING,
    A,
    B,
    C,
    StoreEngine,
    WholeLog,
    claimed,
    commit_at,
    read_all,
)

Opened = Callable[[], LogStore]
LONG = 60.0
"""Seconds of silence that no test waits for."""


def test_a_log_that_nobody_has_claimed_is_empty(store: Opened) -> None:
    reader = store()
    assert reader.owner() is None
    assert reader.read(BEGINNING, 0.0) == StoredSlice(None, (), BEGINNING, is_whole=True)
    assert reader.read(BEGINNING, 0.05) == StoredSlice(None, (), BEGINNING, is_whole=True)


def test_what_counts_is_read_byte_for_byte_in_its_order(store: Opened) -> None:
    owner, reader = store(), store()
    epoch = claimed(owner).epoch
    bodies = [b"\0", bytes(range(256)), b"\xff" * 70_000, os.urandom(3_000_000), b"'\\x"]
    commits = [commit_at(at * 10, body, 10) for at, body in enumerate(bodies)]
    positions = [owner.append(epoch, each) for each in commits]
    assert [each.end for each in positions] == [10, 20, 30, 40, 50]
    assert read_all(reader).commits == commits
    assert read_all(store(), positions[1]).commits == commits[2:]
    assert read_all(reader, positions[3]).commits == commits[4:]


def test_many_commits_come_in_parts(store: Opened) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    commits = [commit_at(at, b"%d" % at) for at in range(1_050)]
    with pytest.raises(OffsetConflictError):
        owner.append(epoch, *commits[1:])
    assert owner.append(epoch, *commits[:1_000]).end == 1_000  # in one round
    for each in commits[1_000:]:
        owner.append(epoch, each)
    reader = store()
    first = reader.read(BEGINNING, 0.0)
    assert not first.is_whole
    rest = read_all(reader, first.position)
    assert [*first.commits, *rest.commits] == commits
    assert read_all(reader, rest.position).commits == []
    assert claimed(store()).stored_bytes == sum(len(each.body) for each in commits)


def test_a_claim_names_its_node_and_has_an_epoch_above_all_before(store: Opened) -> None:
    first, other = store(), store()
    assert claimed(first).epoch == 1
    owner = other.owner()
    assert owner is not None
    assert (owner.epoch, owner.claimant) == (1, A)
    assert 0 <= owner.silent_seconds < LONG
    read_all(other)
    assert other.claim(B, 0.0, at_least=7) == Claimed(7, 0)
    assert first.claim(A, 0.0, at_least=3) == Claimed(8, 0)


def test_a_claim_tells_how_much_the_store_keeps(store: Opened) -> None:
    owner, other = store(), store()
    epoch = claimed(owner).epoch
    for at in range(5):
        owner.append(epoch, commit_at(at, b"x" * 1_000))
    assert claimed(other, B).stored_bytes == 5_000
    owner_of = other.owner()
    assert owner_of is not None
    other.compact(owner_of.epoch, StoreSnapshot(5, b"all"))
    other.append(owner_of.epoch, commit_at(5, b"y" * 10))
    assert claimed(store(), C).stored_bytes == 10


def test_another_node_claims_only_after_silence_and_the_same_folder_at_once(store: Opened) -> None:
    owner, other, again = store(), store(), store()
    epoch = claimed(owner).epoch
    read_all(other)
    assert other.claim(B, LONG) is None
    read_all(again)
    assert again.claim(A._replace(node="a2", address="new:1"), LONG) == Claimed(epoch + 1, 0)
    assert other.claim(B, LONG) is None
    with pytest.raises(OwnerFencedError):
        owner.beat(epoch)


def live(owner: LogStore, epoch: int, ends: Event) -> int:
    """Beat and append in turns until an event, and return the end of the log."""
    end = 0
    while not ends.wait(0.1):
        owner.beat(epoch)
        end = owner.append(epoch, commit_at(end)).end
    return end


def test_an_owner_that_beats_or_appends_is_not_silent(store: Opened) -> None:
    owner, other, ends = store(), store(), Event()
    epoch = claimed(owner).epoch
    read_all(other)
    with ThreadPoolExecutor(1) as pool:
        lives = pool.submit(live, owner, epoch, ends)
        begun = time.monotonic()
        while time.monotonic() < begun + 1.5:
            assert other.claim(B, 1.0) is None
            time.sleep(0.05)
        ends.set()
        end = lives.result(LONG)
    while (made := other.claim(B, 1.0)) is None:
        assert time.monotonic() < begun + LONG
        time.sleep(0.02)
    assert made == Claimed(epoch + 1, 4 * end)


def test_whoever_was_succeeded_appends_beats_and_compacts_in_vain(store: Opened) -> None:
    former, owner, reader = store(), store(), store()
    old = claimed(former).epoch
    former.append(old, commit_at(0, b"of the former"))
    new = claimed(owner, B).epoch
    for attempt in (
        lambda: former.append(old, commit_at(1, b"late")),
        lambda: former.beat(old),
        lambda: former.compact(old, StoreSnapshot(1, b"late")),
        lambda: former.append(old, commit_at(1, b"later")),
    ):
        with pytest.raises(OwnerFencedError, match=r"b at b:9092 .* epoch 2"):
            attempt()
    owner.append(new, commit_at(1, b"of the owner"))
    owner.beat(new)
    kept = [commit_at(0, b"of the former"), commit_at(1, b"of the owner")]
    assert read_all(reader).commits == kept
    assert read_all(former).commits == kept


def test_a_snapshot_that_comes_after_the_next_claim_stands_for_nothing(store: Opened) -> None:
    former, owner = store(), store()
    old = claimed(former).epoch
    former.append(old, commit_at(0, b"of the former"))
    new = claimed(owner, B).epoch
    owner.append(new, commit_at(1, b"of the owner"))
    with pytest.raises(OwnerFencedError):
        former.compact(old, StoreSnapshot(1, b"late"))
    fresh = read_all(store())
    assert fresh.snapshot is None
    assert fresh.commits == [commit_at(0, b"of the former"), commit_at(1, b"of the owner")]


def test_after_a_claim_all_is_read_that_counted_before_it(store: Opened) -> None:
    former, owner = store(), store()
    epoch = claimed(former).epoch
    position = read_all(owner).position
    for at in range(50):
        former.append(epoch, commit_at(at))
    assert owner.claim(B, 0.0) is not None
    assert read_all(owner, position).commits == [commit_at(at) for at in range(50)]


def test_a_commit_that_does_not_begin_at_the_end_is_refused(store: Opened) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    owner.append(epoch, commit_at(0, entries=4))
    for base in (0, 3, 5):
        with pytest.raises(OffsetConflictError):
            owner.append(epoch, commit_at(base))
    with pytest.raises(OffsetConflictError):
        owner.compact(epoch, StoreSnapshot(3, b"short"))
    owner.append(epoch, commit_at(4))
    assert [each.base for each in read_all(store()).commits] == [0, 4]


def race(stores: list[LogStore], rounds: int) -> None:
    """Let three claim at once, and all append that may believe that they own the log."""
    end, kept = 0, list[bytes]()
    for turn in range(rounds):
        start = Barrier(3)

        def attempt(at: int, start: Barrier = start, turn: int = turn) -> Claimed | None:
            read_all(stores[at])
            start.wait()
            return stores[at].claim(Claimant(f"n{at}", "n:1", f"{turn} {at}"), 0.0)

        with ThreadPoolExecutor(3) as pool:
            claims = [*pool.map(attempt, range(3))]
        epochs = {made.epoch: at for at, made in enumerate(claims) if made}
        assert len(epochs) == sum(made is not None for made in claims) >= 1
        owner = stores[0].owner()
        assert owner is not None
        assert owner.claimant.node == f"n{epochs[owner.epoch]}"
        assert owner.epoch == max(epochs)
        for epoch in sorted(epochs, reverse=True):
            body = b"%d" % epoch
            if epoch == owner.epoch:
                stores[epochs[epoch]].append(epoch, commit_at(end, body))
                end, kept = end + 1, [*kept, body]
            else:
                with pytest.raises(OwnerFencedError):
                    stores[epochs[epoch]].append(epoch, commit_at(end - 1, body))
    for each in stores:
        assert [commit.body for commit in read_all(each).commits] == kept


def test_of_three_that_claim_at_once_each_has_an_epoch_and_the_last_one_owns(
    store: Opened,
) -> None:
    race([store() for _ in range(3)], 4)


@pytest.mark.soak
def test_of_three_that_claim_at_once_the_last_one_owns_many_times(store: Opened) -> None:
    race([store() for _ in range(3)], 25)


def read_compacted(store: Opened, end: int) -> WholeLog:
    """Read as a new node once what is before the snapshot with this end is gone."""
    deadline = time.monotonic() + LONG
    while (found := read_all(store())).snapshot is None or found.snapshot.end != end:
        assert time.monotonic() < deadline
    return found


def test_a_snapshot_takes_the_place_of_what_was_before_it(store: Opened) -> None:
    owner, behind = store(), store()
    epoch = claimed(owner).epoch
    for at in range(6):
        owner.append(epoch, commit_at(at))
    first = read_all(behind)
    middle = owner.append(epoch, commit_at(6))
    snapshot = StoreSnapshot(7, os.urandom(2_000_000))
    owner.compact(epoch, snapshot)
    later = [commit_at(7, b"x"), commit_at(8, b"y")]
    for each in later:
        owner.append(epoch, each)
    fresh = read_compacted(store, 7)
    assert (fresh.snapshot, fresh.commits, fresh.position.end) == (snapshot, later, 9)
    late = read_all(behind, first.position)  # perhaps it had the commit before
    assert late[:2] in [(snapshot, later), (None, [commit_at(6), *later])]
    assert read_all(store(), first.position)[:2] == (snapshot, later)
    for reader in (store(), behind):
        assert read_all(reader, middle)[:2] == (None, later)
    succeeded = claimed(store(), B)
    assert succeeded == Claimed(epoch + 1, 2)


def test_a_second_snapshot_takes_the_place_of_the_first(store: Opened) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    for end in (1, 2):
        position = owner.append(epoch, commit_at(end - 1))
        owner.compact(epoch, StoreSnapshot(end, b"%d" % end))
        read_compacted(store, end)
    assert read_compacted(store, 2)[:2] == (StoreSnapshot(2, b"2"), [])
    assert read_all(store(), position)[:2] == (None, [])


def test_an_empty_log_may_begin_with_a_snapshot(store: Opened) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    owner.compact(epoch, StoreSnapshot(40, b"published"))
    position = read_all(owner).position
    assert position.end == 40
    owner.append(epoch, commit_at(40))
    assert read_all(store())[:2] == (StoreSnapshot(40, b"published"), [commit_at(40)])


def test_a_reader_waits_for_what_comes(store: Opened) -> None:
    owner, reader = store(), store()
    epoch = claimed(owner).epoch
    position = read_all(reader).position
    with ThreadPoolExecutor(1) as pool:
        for at in range(5):
            waits = pool.submit(reader.read, position, LONG)
            time.sleep(0.02)
            owner.append(epoch, commit_at(at))
            part = waits.result(LONG)
            assert part.commits == [commit_at(at)]
            position = part.position
    begun = time.monotonic()
    assert not reader.read(position, 0.1).commits
    assert time.monotonic() - begun >= 0.1


def refused(store: LogStore, position: StorePosition) -> None:
    """Everything is refused of a store that is not what it was."""
    for attempt in (
        store.owner,
        lambda: store.read(position, 0.0),
        lambda: store.claim(B, 0.0),
    ):
        with pytest.raises(StoreDiffersError, match="nothing was changed"):
            attempt()


def test_a_store_that_was_emptied_is_refused(store: Opened, engine: StoreEngine, log: str) -> None:
    owner, reader = store(), store()
    epoch = claimed(owner).epoch
    position = owner.append(epoch, commit_at(0))
    read_all(reader)
    engine.empty(log)
    with pytest.raises(StoreDiffersError):
        store().read(position, 0.0)
    refused(reader, position)
    assert store().owner() is None
    made = claimed(store(), C)
    assert made.epoch == 1
    refused(reader, position)
    with pytest.raises(StoreDiffersError):
        store().read(position, 0.0)


def test_a_store_that_was_restored_from_an_older_copy_is_refused(
    store: Opened, engine: StoreEngine, log: str
) -> None:
    owner, reader = store(), store()
    epoch = claimed(owner).epoch
    owner.append(epoch, commit_at(0))
    restore = engine.save(log)
    position = owner.append(epoch, commit_at(1))
    read_all(reader)
    restore()
    for each in (reader, store()):
        with pytest.raises(StoreDiffersError, match="nothing was changed"):
            each.read(position, 0.0)
    fresh = read_all(store())
    assert fresh.commits == [commit_at(0)]


def test_closing_twice_does_nothing(store: Opened) -> None:
    owner = store()
    claimed(owner)
    owner.close()
    owner.close()


def test_an_owner_is_told_by_all_readers_alike(store: Opened) -> None:
    owner, reader = store(), store()
    for turn, claimant in enumerate((A, B, C), 1):
        epoch = claimed(owner, claimant).epoch
        seen = reader.owner()
        assert seen == StoreOwner(turn, claimant, seen.silent_seconds if seen else 0.0)
        owner.append(epoch, commit_at(turn - 1))
