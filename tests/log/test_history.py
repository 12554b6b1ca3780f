"""What a log says of the history that was trimmed, and how much of it is kept."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from log.test_compaction import COMES_BACK, IS_DELETED, LIVES

from fairlead.events.entries.codec import decode, encode, restore
from fairlead.events.entries.compaction import EPOCHS_KEPT, SLICE, Compactor, CutFinder
from fairlead.events.entries.group_keys import encode_in_group
from fairlead.events.entries.history import HistorySummary, read_summary, summarizer
from fairlead.events.entries.retention import Retention
from fairlead.events.log import tables
from fairlead.events.log.errors import CorruptLogError
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import ClassicGroup, ConnectorConfig, GroupMetadata
from fairlead.projections.explain.cache import EpochCache
from fairlead.projections.follow.rebalances import Rebalances
from fairlead.projections.shard_history import ShardHistory
from fairlead.runtime.simulation.invariants.group import same
from fairlead_tests.life import Deed, Life
from fairlead_tests.log.samples import TIME_MS

DAY_MS = 86_400_000
NOW_MS = TIME_MS + 100 * DAY_MS
ALL = 1 << 40


def rise(epoch: int, why: Why = Why.MEMBER_JOINED) -> NewEntry:
    return encode(GroupMetadata(epoch, Cause(why, "h/w1"), TIME_MS))


def config(name: str = "A") -> NewEntry:
    return encode(ConnectorConfig(name, {"number": "1"}))


def trim(log: GroupLog, upto: int, chunk: int = ALL) -> None:
    log.trim(upto, chunk, summarizer(NOW_MS))


def compact(log: GroupLog, retention: Retention, *, is_shared: bool = False) -> int:
    compactor = Compactor(log, retention, is_shared=is_shared)
    while compactor.step(NOW_MS):
        pass
    return log.verify().low


def test_the_summary_counts_what_was_trimmed_in_however_many_slices(log: GroupLog) -> None:
    log.append(0, [config(), rise(1)], TIME_MS)
    log.append(2, [rise(2, Why.PROCESS_ENDED), rise(3, Why.MEMBER_LEFT)], TIME_MS + 5)
    log.append(4, [rise(4)], TIME_MS + 9)
    trim(log, 1)
    trim(log, 4, chunk=2)
    trim(log, 4, chunk=2)
    assert log.verify().low == 4
    assert read_summary(log.trimmed().summary) == HistorySummary(
        compacted_ms=NOW_MS,
        entries=4,
        first_ms=TIME_MS,
        last_ms=TIME_MS + 5,
        first_epoch=1,
        last_epoch=3,
        epochs={"member-joined": 1, "process-ended": 1, "member-left": 1},
        losses={"process-ended": {"h/w1": 1}},
        records={"ConnectorConfig": 1, "GroupMetadata": 3},
    )


def test_a_generation_that_is_told_again_behind_the_cut_counts_once(
    path: Path, log: GroupLog
) -> None:
    generation = ClassicGroup(7, Cause(Why.MEMBER_JOINED), TIME_MS)
    log.append(0, [encode(generation)] * 3, TIME_MS)
    trim(log, 1)
    log.close()
    with LogReader.open(path) as reader:
        assert counted(reader) == ({Why.MEMBER_JOINED: 1}, {})


def test_a_reader_that_a_trim_has_overtaken_counts_all_the_same(path: Path, log: GroupLog) -> None:
    log.append(0, [rise(1), rise(2)], TIME_MS)
    log.close()
    counts = Rebalances()
    with LogReader.open(path) as reader:
        counts.catch_up(reader)
    with GroupLog.open_writer(path, "flights") as again:
        again.append(2, [rise(3), rise(4), rise(5)], TIME_MS)
        trim(again, 4)
    with LogReader.open(path) as reader:
        counts.catch_up(reader)
    assert dict(counts.by_cause) == {Why.MEMBER_JOINED: 5}


def test_the_counts_of_a_log_that_groups_share_go_on_behind_a_cut(path: Path) -> None:
    groups = ("a", "b", "c")
    entries = [encode_in_group(name, GroupMetadata(1, JOINED, TIME_MS)) for name in groups]
    with GroupLog.open_writer(path, "shard 0 of 1") as log:
        log.append(0, entries, TIME_MS)
        assert compact(log, Retention(ms=DAY_MS), is_shared=True) == 3
    with LogReader.open(path) as reader:
        history = ShardHistory(reader).catch_up()
        assert dict(history.rebalances.by_cause) == {Why.MEMBER_JOINED: 3}


JOINED = Cause(Why.MEMBER_JOINED)


def test_a_damaged_summary_is_found(log: GroupLog) -> None:
    log.append(0, [rise(1), rise(2)], TIME_MS)
    trim(log, 1)

    def damage(txn: tables.Transaction) -> None:
        meta = log._tables.meta  # pyright: ignore[reportPrivateUsage]
        sealed = txn.get(tables.SUMMARY_KEY, db=meta)
        assert sealed is not None
        txn.put(tables.SUMMARY_KEY, sealed[:-1] + bytes([sealed[-1] ^ 1]), db=meta)

    log._write(damage)  # pyright: ignore[reportPrivateUsage]
    for read in (log.trimmed, log.verify, lambda: trim(log, 2)):
        with pytest.raises(CorruptLogError, match="summary"):
            read()


@given(deeds=LIVES, low=st.integers(0, 100), chunk=st.integers(1, 40))
@example(deeds=COMES_BACK, low=90, chunk=3)
@example(deeds=IS_DELETED, low=95, chunk=7)
@settings(max_examples=15)
def test_counters_and_the_group_are_the_same_before_and_after_any_trim(
    deeds: list[Deed], low: int, chunk: int
) -> None:
    coordinator = Life().lead(deeds)
    entries = coordinator.witness.entries
    with TemporaryDirectory() as folder:
        path = Path(folder) / "control"
        write(path, entries)
        with LogReader.open(path) as reader:
            before = counted(reader)
            epochs = [each.group_epoch for each in EpochCache(reader).history().epochs]
        with GroupLog.open_writer(path, "connect", reserve_bytes=0) as log:
            upto = len(entries) * low // 100
            while log.low() < upto:
                trim(log, upto, chunk)
            log.verify()
        with LogReader.open(path) as reader:
            assert counted(reader) == before
            same(coordinator.group, restore("connect", *reader.load()))
            left = [each.group_epoch for each in EpochCache(reader).history().epochs]
            assert left == epochs[len(epochs) - len(left) :]
            gone = read_summary(reader.trimmed().summary)
            rises = [each for part in reader.tail(upto) for each in part if is_rise(each)]
            count = 0 if gone is None else gone.rebalances.total()
            assert count + len(rises) == sum(before[0].values())


def is_rise(entry: Entry) -> bool:
    return isinstance(decode(entry), GroupMetadata)


def write(path: Path, entries: list[Entry]) -> None:
    with GroupLog.open_writer(path, "connect", reserve_bytes=0) as log:
        for at in range(0, len(entries), 20):
            news = [NewEntry(*each[1:4], each.value) for each in entries[at : at + 20]]
            log.append(log.end, news, TIME_MS)


def counted(reader: LogReader) -> tuple[dict[Why, int], dict[tuple[str, Why], int]]:
    counts = Rebalances()
    counts.catch_up(reader)
    return dict(counts.by_cause), dict(counts.losses)


def live(log: GroupLog, epochs: int, *, age_days: int = 50) -> None:
    """Write so many epochs, each a commit of a config and the rise, a day apart."""
    for epoch in range(1, epochs + 1):
        at_ms = NOW_MS - (age_days - epoch) * DAY_MS
        log.append(log.end, [config(), rise(epoch)], at_ms)


def test_time_keeps_whole_epochs_with_what_raised_them(log: GroupLog) -> None:
    live(log, 40)  # epoch 20 rose 30 days ago
    assert compact(log, Retention(ms=30 * DAY_MS)) == 2 * (19 - 1)
    assert [each.type for each in log.read(36, 2).entries] == [config().type, rise(1).type]


def test_the_last_epochs_stay_however_old_they_are(log: GroupLog) -> None:
    live(log, 40)
    assert compact(log, Retention(ms=DAY_MS)) == 2 * (40 - EPOCHS_KEPT)


def test_a_number_of_epochs_is_kept_however_young_they_are(log: GroupLog) -> None:
    live(log, 40)
    assert compact(log, Retention(epochs=3)) == 2 * 37
    live_on = Compactor(log, Retention(epochs=3))
    assert not live_on.step(NOW_MS)
    log.append(log.end, [config(), rise(41)], NOW_MS)
    while live_on.step(NOW_MS):
        pass
    assert log.low() == 2 * 38


def test_epochs_of_an_earlier_life_stay_until_this_one_has_passed_them(
    log: GroupLog,
) -> None:
    live(log, 30)
    live(log, 20)
    assert compact(log, Retention(epochs=5)) == 2 * 15, "as many may be of this life"
    live(log, 50)
    assert compact(log, Retention(epochs=5)) == 2 * (30 + 20 + 45)


def test_bytes_are_a_bound_even_within_one_epoch(log: GroupLog) -> None:
    log.append(0, [rise(1)], NOW_MS)
    for _ in range(20):
        log.append(log.end, [config() for _ in range(500)], NOW_MS)
    most = log.entry_bytes() // 4
    assert compact(log, Retention(bytes=most)) > SLICE
    assert most * 0.8 < log.entry_bytes() <= most
    assert log.get(rise(1).type, rise(1).key) is not None


def test_without_limits_all_of_it_stays(log: GroupLog) -> None:
    live(log, 40)
    assert compact(log, Retention()) == 0


def test_where_to_cut_is_found_without_owning_the_log(path: Path, log: GroupLog) -> None:
    live(log, 40)
    log.close()
    with LogReader.open(path) as reader:
        finder = CutFinder(reader, Retention(epochs=3))
        while finder.read(NOW_MS):
            pass
        assert (finder.cut, reader.low()) == (2 * 37, 0)
