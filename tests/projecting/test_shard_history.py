"""Where the entries of a shard's groups lie: in a log that is damaged, long, large or trimmed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead.events.catalogue import TYPE_OF
from fairlead.events.commits import ConsumerOffset
from fairlead.events.entries.codec import CodecError, encode
from fairlead.events.entries.group_keys import encode_in_group, groups_with_offsets
from fairlead.events.log.errors import TrimmedError
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.reader import BYTES_PER_READ
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, ClassicMember, Why
from fairlead.events.records import ClassicGroup, GroupMetadata, MemberMetadata, Tombstone
from fairlead.projections import shard_history
from fairlead.projections.explain.cache import EpochCache, NotToldError
from fairlead.projections.explain.causes import clients as explained_clients
from fairlead.projections.explain.causes.clients import GoneMembers
from fairlead.projections.explain.reader import EpochReader
from fairlead.projections.shard_history import EpochCaches, GroupEntries, ShardHistory
from fairlead.projections.shards import ChangedGroups, CommittedGroups, ShardFollower
from fairlead.runtime.interfaces.replies.building.clients import read_shares
from fairlead_tests.shards.recorded import Clients

MIB = 1 << 20
OFFSET = TYPE_OF[ConsumerOffset].number


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    clients = Clients(tmp_path)
    yield clients
    clients.close()


def append(log: GroupLog, *entries: NewEntry) -> None:
    log.append(log.end, entries, 1)


READS: dict[str, Callable[[Clients], object]] = {
    "followed": lambda clients: ShardFollower(clients.control, ChangedGroups()),
    "history": lambda clients: ShardHistory(clients.control).catch_up(),
    "committed": lambda clients: CommittedGroups(clients.offsets, ChangedGroups()),
    "offsets": lambda clients: groups_with_offsets(clients.offsets),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_key_that_names_no_group_is_told_with_its_offset(
    clients: Clients, read: Callable[[Clients], object]
) -> None:
    joined = encode(GroupMetadata(1, Cause(Why.MEMBER_JOINED, "x"), 1))
    append(clients.shard.log, joined._replace(key=b"\xff\xfe\0"))
    at = clients.shard.log.end - 1
    append(clients.shard.offsets, NewEntry(OFFSET, 1, b"\xff\xfe\0k", b"v"))
    with pytest.raises(CodecError, match=rf"offset ({at}|0) has a key that begins with no group"):
        read(clients)


def test_a_key_that_comes_later_and_names_no_group_is_told_as_well(clients: Clients) -> None:
    committing = CommittedGroups(clients.offsets, ChangedGroups())
    append(clients.shard.offsets, NewEntry(OFFSET, 1, b"\xff\xfe\0k", b"v"))
    with pytest.raises(CodecError, match="offset 0 has a key that begins with no group id"):
        committing.catch_up()


def test_large_entries_of_a_group_are_read_a_few_at_a_time(clients: Clients) -> None:
    for number in range(10):
        member = ClassicMember("m", 1, 1, (), assignment=bytes(MIB))
        joined = Cause(Why.MEMBER_JOINED, "m")
        record = ClassicGroup(number + 1, joined, 1, "consumer", "range", "m", (member,))
        append(clients.shard.log, encode_in_group("large", record))
    control = clients.control
    batches = list(GroupEntries(control, "large", ShardHistory(control)).tail(0))
    assert sum(map(len, batches)) == 10
    sizes = [sum(len(each.value or b"") for each in batch) for batch in batches]
    assert max(sizes) <= BYTES_PER_READ + 2 * MIB


def test_entries_of_a_group_that_lie_between_those_of_another_are_read_once_each(
    clients: Clients,
) -> None:
    for number in range(1, 7):
        joined = Cause(Why.MEMBER_JOINED, str(number))
        for group, count in (("a", 1), ("b", number)):
            records = [encode_in_group(group, GroupMetadata(number, joined, 1))] * count
            append(clients.shard.log, *records)
    control = clients.control
    runs = list(GroupEntries(control, "a", ShardHistory(control)).tail(0))
    offsets = [[each.offset for each in run] for run in runs]
    assert offsets == [[0], [2], [5], [9], [14], [20]]
    runs = list(GroupEntries(control, "b", ShardHistory(control)).tail(4))
    assert [len(run) for run in runs] == [1, 3, 4, 5, 6]


def test_what_was_counted_is_handed_out_as_it_was_then(clients: Clients) -> None:
    history = ShardHistory(clients.control)
    before = history.rebalances
    clients.joins("billing", "app-1", "orders")
    assert sum(history.catch_up().rebalances.by_cause.values()) == 2
    assert sum(before.by_cause.values()) == 0


def test_where_entries_lay_that_were_trimmed_is_forgotten(clients: Clients) -> None:
    clients.joins("old", "app-1", "orders")
    clients.goes("old", "app-1")
    history = ShardHistory(clients.control).catch_up()
    assert history.knows("old")
    counted = history.rebalances.by_cause
    clients.shard.log.trim(clients.shard.log.end)
    history.catch_up()
    assert (history.knows("old"), history.rebalances.by_cause) == (False, counted)
    with pytest.raises(TrimmedError):
        list(GroupEntries(clients.control, "old", history).tail(0))


def test_a_group_that_began_behind_what_was_trimmed_is_told_from_its_first_epoch(
    clients: Clients,
) -> None:
    clients.joins("old", "app-1", "orders")
    clients.settles("old")
    clients.shard.log.trim(clients.shard.log.end)
    clients.joins("new", "app-2", "orders")
    clients.settles("new")
    clients.agrees("pay", ("x", "orders-0"))
    clients.joins("old", "app-3", "orders")
    clients.settles("old")
    control = clients.control
    history = ShardHistory(control)
    told = {}
    for group_id in ("new", "pay", "old"):
        found = EpochCache(GroupEntries(control, group_id, history), read_shares).history()
        told[group_id] = (
            found.first_epoch,
            found.is_trimmed,
            [each.placed for each in found.epochs],
        )
    assert told == {
        "new": (1, False, [None, 4]),
        "pay": (1, False, [1]),
        "old": (None, True, []),
    }
    new = EpochCache(GroupEntries(control, "new", history), read_shares)
    with pytest.raises(NotToldError, match=r"it tells of the epochs 1 to 2$"):
        new.explain(3)


def test_of_clients_that_are_gone_only_the_latest_are_remembered(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explained_clients, "GONE_MAX", 3)
    clients.joins("churn", "stays-0", "orders")
    for number in range(8):
        clients.joins("churn", f"app-{number}", "orders")
        clients.goes("churn", f"app-{number}")
    (x,) = clients.agrees("pay", ("x", "orders-0"))
    for name in "abcde":
        x, other = clients.agrees("pay", (x, "orders-0"), (name, "orders-1"))
        clients.leaves("pay", other)
        (x,) = clients.agrees("pay", (x, "orders-0"))
    control = clients.control
    told = {}
    for group_id in ("churn", "pay"):
        reader = EpochReader(group_id)
        for entries in GroupEntries(control, group_id, ShardHistory(control)).tail(0):
            for each in entries:
                reader.apply(each)
        told[group_id] = [each.client_id for each in reader.clients.values()]
    assert told == {"churn": ["stays", "app", "app", "app"], "pay": ["x", "c", "d", "e"]}


def test_what_is_known_of_a_member_that_came_back_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explained_clients, "GONE_MAX", 1)
    known, others = dict.fromkeys("abc", 1), dict.fromkeys("abc", 2)
    gone = GoneMembers(known, others)
    gone.apply(Tombstone(MemberMetadata, ("a",)))
    gone.apply(MemberMetadata("a"))
    gone.apply(Tombstone(MemberMetadata, ("b",)))
    gone.apply(Tombstone(MemberMetadata, ("c",)))
    assert (known, others) == ({"a": 1, "c": 1}, {"a": 2, "c": 2})


def test_what_is_kept_of_the_epochs_of_all_groups_has_one_bound(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        clients.joins(name, "app-1", "orders")
        clients.settles(name)
    control = clients.control
    history = ShardHistory(control)
    caches = EpochCaches(read_shares)

    def told(group_id: str) -> EpochCache:
        cache = caches.of(GroupEntries(control, group_id, history))
        assert cache.history().last_epoch == 2
        return cache

    a, b = told("a"), told("b")
    assert a.size == b.size > 0
    assert (told("a"), told("b")) == (a, b)
    monkeypatch.setattr(shard_history, "KEPT_MAX", 2 * a.size)
    c, d = told("c"), told("d")
    assert (told("c"), told("d")) == (c, d)
    assert told("a") is not a
    monkeypatch.setattr(shard_history, "CACHES_MAX", 1)
    b = told("b")
    assert told("b") is b
    caches.forget(history)
    assert told("b") is not b
