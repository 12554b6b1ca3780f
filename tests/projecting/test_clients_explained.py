"""Why a partition moved: epochs of consumers, and generations of classic ones."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fairlead.actors.assignors.classic.protocol import ReceivedAssignment
from fairlead.actors.classic.bytes import connect
from fairlead.actors.classic.bytes.connect import WorkerMetadata, encode_offers
from fairlead.actors.messages.groups import RemoveGroup, TellTopics
from fairlead.events.model import (
    NOTHING,
    Cause,
    ClassicMember,
    ClassicProtocol,
    Resource,
    Resources,
    Why,
)
from fairlead.events.records import ClassicGroup, Topic
from fairlead.projections.explain.cache import EpochCache, NotToldError
from fairlead.projections.explain.causes.clients import KafkaClient
from fairlead.projections.explain.handovers import Handover
from fairlead.projections.shard_history import GroupEntries, ShardHistory
from fairlead.runtime.interfaces.replies.building.clients import read_shares
from fairlead.runtime.interfaces.replies.building.groups import describe_group
from fairlead_tests.shards.recorded import AGAIN, TOPICS, WEB, Clients


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    clients = Clients(tmp_path)
    yield clients
    clients.close()


def epochs_of(clients: Clients, group_id: str) -> EpochCache:
    log = clients.control
    return EpochCache(GroupEntries(log, group_id, ShardHistory(log)), read_shares)


def way(each: Handover) -> tuple[str, str, str]:
    giver, taker = (
        seat.member_id if seat else "" for seat in (each.previous_owner, each.new_owner)
    )
    return giver, taker, f"{each.reason.kind.value} {each.reason.detail}".rstrip()


def moves(clients: Clients, group_id: str, name: str) -> list[tuple[int, tuple[str, str, str]]]:
    told = epochs_of(clients, group_id).moves(name)
    return [(each.group_epoch, way(each.handover)) for each in told.moves]


def test_a_partition_of_consumers_is_followed_from_member_to_member(recorded: Clients) -> None:
    app = "app-1111aaaa"
    assert moves(recorded, "billing", "orders-2") == [
        (2, ("", app, "new")),
        (3, (app, WEB, "balance")),
        (4, (WEB, app, "departure member-left")),
        (5, (app, AGAIN, "balance")),
    ]
    assert moves(recorded, "billing", "orders-0") == [
        (2, ("", app, "new")),
        (6, (app, AGAIN, "departure session-expired")),
    ]


def test_a_partition_is_down_until_it_is_granted_for_nobody_tells_that_it_is_read(
    recorded: Clients,
) -> None:
    told = epochs_of(recorded, "billing").explain(3)
    assert [each.name for each in told.phases] == ["detect", "compute", "revoke", "release"]
    assert {each.downtime_ms for each in told.handovers} == {50}
    assert told.total_ms == 200
    lost = epochs_of(recorded, "billing").explain(6).handovers
    assert {(each.downtime_at_least_ms, each.downtime_at_most_ms) for each in lost} == {
        (1_550, 7_550)
    }


def test_a_partition_of_classic_consumers_is_followed_over_conversions(recorded: Clients) -> None:
    x, y = "x-1", "y-3"
    assert moves(recorded, "pay", "orders-3") == [
        (1, ("", x, "new")),
        (2, (x, y, "balance")),
        (3, (y, x, "departure member-left")),
        (4, (x, "modern", "balance")),
        (5, ("modern", x, "departure member-left")),
    ]
    told = epochs_of(recorded, "pay").history().epochs
    assert [(each.moved, each.placed, each.kept) for each in told] == [
        (0, 4, 0),
        (2, 0, 2),
        (2, 0, 2),
        (2, 0, 2),
        (2, 0, 2),
    ]
    assert told[3].changed.startswith("converted from the classic protocol, because modern joined")
    assert "was the last that spoke the consumer protocol" in told[4].changed


def test_clients_are_named_by_what_they_say_of_themselves(recorded: Clients) -> None:
    told = epochs_of(recorded, "billing").history().clients
    assert told == {
        "app-1111aaaa": KafkaClient("app", "/10.0.0.7", None),
        WEB: KafkaClient("web", "/10.0.0.7", None),
        AGAIN: KafkaClient("web", "/10.0.0.7", "w1"),
    }
    assert [each.name(member_id) for member_id, each in sorted(told.items())] == [
        "web(7QyFKHtl)",
        "w1(X3yFKHtl)",
        "app(1111aaaa)",
    ]
    assert KafkaClient("m", "", None).name("m") == "m"


def test_what_a_cooperative_leader_takes_away_first_is_nobodys_for_a_generation(
    clients: Clients,
) -> None:
    (x,) = clients.agrees("pay", ("x", "orders-0 orders-1"))
    x, y = clients.agrees("pay", (x, "orders-0"), ("y", ""))
    clients.agrees("pay", (x, "orders-0"), (y, "orders-1"))
    assert moves(clients, "pay", "orders-1") == [
        (1, ("", x, "new")),
        (2, (x, "", "balance")),
        (3, (x, y, "balance")),
    ]


def test_a_static_member_that_comes_back_under_another_id_has_what_it_had(
    clients: Clients,
) -> None:
    (first,) = clients.agrees("pay", ("s", "orders-0 orders-1"), statics={"s"})
    (again,) = clients.agrees("pay", ("s", "orders-0 orders-1"), statics={"s"})
    assert again != first
    clients.agrees("pay", (again, "orders-0"), ("y", "orders-1"), statics={"s"})
    last = epochs_of(clients, "pay").explain()
    assert (last.report.group_epoch, [way(each) for each in last.handovers]) == (
        2,
        [(again, "y-5", "balance")],
    )
    change = last.report.target_change
    assert change is not None
    assert {seat.member_id: len(share) for seat, share in change.kept.items()} == {again: 1}


def of_worker(
    name: str, runs: str = "", comes: str = "", goes: str = ""
) -> tuple[str, tuple[ClassicProtocol, ...], bytes]:
    """What a stock worker of Connect says that runs this, and what its leader tells it."""
    url = f"http://{name.partition('-')[0]}:8083/"
    has, more, less = (
        [Resource(each[0], int(each[2:] or -1)) for each in text.split()]
        for text in (runs, comes, goes)
    )
    said = WorkerMetadata(url, 5, ReceivedAssignment(has, leader="w", leader_url=url))
    offered = tuple(ClassicProtocol(*each) for each in encode_offers("compatible", said))
    told = ReceivedAssignment(more, less, leader="w", leader_url=url)
    return name, offered, connect.encode_assignment(told)


def test_what_stock_workers_of_connect_run_is_followed_by_what_their_leader_tells_them(
    clients: Clients,
) -> None:
    (one,) = clients.has_round("workers", "connect", [of_worker("w", "", "f f-0")])
    here = of_worker(one, "f f-0", goes="f-0")
    one, two = clients.has_round("workers", "connect", [here, of_worker("v")])
    there = of_worker(two, comes="f-0")
    clients.has_round("workers", "connect", [of_worker(one, "f"), there])
    assert moves(clients, "workers", "f-0") == [
        (1, ("", one, "new")),
        (2, (one, "", "balance")),
        (3, (one, two, "balance")),
    ]
    assert epochs_of(clients, "workers").history().clients == {
        one: KafkaClient("w", "/10.0.0.7", None),
        two: KafkaClient("v", "/10.0.0.7", None),
    }
    told = describe_group(clients.group("workers"), 0)
    assert [(each.client_id, [one.id for one in each.assigned]) for each in told.members] == [
        ("v", ["f-0"]),
        ("w", ["f"]),
    ]


def test_what_nobody_had_when_a_group_was_converted_is_told_with_who_had_it_last(
    clients: Clients,
) -> None:
    (x,) = clients.agrees("pay", ("x", "orders-0 orders-1"))
    clients.agrees("pay", (x, "orders-0"))
    clients.joins("pay", "modern", "orders")
    assert moves(clients, "pay", "orders-1") == [
        (1, ("", x, "new")),
        (2, (x, "", "balance")),
        (3, (x, "modern", "balance")),
    ]


def test_an_epoch_tells_what_changed_of_subscriptions_and_topics(clients: Clients) -> None:
    clients.joins("billing", "app-1", "orders")
    clients.joins("billing", "app-1", "orders", "clicks")
    clients.shard.asks(TellTopics({**TOPICS, "clicks": Topic("CLICKS", 5)}))
    told = epochs_of(clients, "billing").history().epochs
    assert [(each.cause, each.changed) for each in told[1:]] == [
        ("subscription-changed", "topics none > orders"),
        ("subscription-changed", "topics orders > clicks orders"),
        ("topics-changed", "partitions of clicks 2 > 5"),
    ]


def test_a_group_that_was_deleted_is_told_until_another_has_its_name(clients: Clients) -> None:
    for _ in range(2):
        clients.joins("billing", "app-1", "orders")
        clients.goes("billing", "app-1")
    clients.shard.asks(RemoveGroup("billing"))
    epochs = epochs_of(clients, "billing")
    assert [each.group_epoch for each in epochs.history().epochs] == [1, 2, 3, 4, 5]
    clients.joins("billing", "other-1", "clicks")
    assert [each.subject for each in epochs.history().epochs] == ["other-1", "other-1"]
    assert epochs.explain().report.group_epoch == 2
    with pytest.raises(NotToldError, match="nothing of the name orders-1 changed hands"):
        epochs.moves("orders-1")


@pytest.mark.parametrize(("spoken", "read"), [("consumer", {"x": NOTHING}), ("sr", None)])
def test_what_nobody_can_read_is_nothing_and_others_tell_nothing(
    spoken: str, read: Mapping[str, Resources] | None
) -> None:
    member = ClassicMember("x", 6_000, 6_000, (), assignment=b"\0\0garbled")
    cause = Cause(Why.MEMBER_JOINED, "x")
    assert read_shares(ClassicGroup(1, cause, 0, spoken, "range", "x", (member,))) == read
