"""A page of the groups of Kafka's clients, what they have left to read, and which have changed."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rest.conftest import service_over
from rest.test_client_groups import told
from rest.test_reach import limited

from fairlead.projections import shards
from fairlead.runtime.interfaces.replies.building.page.state import PageView
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands.service import Service
from fairlead.runtime.interfaces.rest.reading import ends
from fairlead.runtime.interfaces.rest.reading.ends import (
    FRESH_SECONDS,
    KEPT_SECONDS,
    NO_LISTENER,
    PAUSE_SECONDS,
    TOO_MANY,
    EndOffsets,
    EndsUnknown,
    Partition,
    ask_brokers,
)
from fairlead.runtime.interfaces.rest.watch.page import client_groups
from fairlead.runtime.interfaces.rest.watch.page.client_groups import ClientGroupWatch
from fairlead.runtime.security.rights import Role
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.shards.recorded import AGAIN, live

ENDS = {("orders", 1): 20, ("orders", 2): 4, ("orders", 0): 9, ("clicks", 1): 50}
"""A broker's answer; the committed offset of clicks 1 is beyond its end."""
SILENT = "the brokers do not say how far partitions were written: none answers"


class Brokers:
    """Brokers that note what they were asked, and that may be silent."""

    def __init__(self) -> None:
        self.asked: list[list[Partition]] = []
        self.is_silent = False
        self.now = 0.0

    def read(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        self.asked.append([*partitions])
        if self.is_silent:
            raise EndsUnknown("none answers")
        return {each: ENDS[each] for each in partitions if each in ENDS}


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def service(tmp_path: Path, brokers: Brokers) -> Iterator[Service]:
    live(tmp_path)
    over = service_over(tmp_path, FakeGateway(None))
    yield replace(over, ends=EndOffsets(brokers.read, lambda: brokers.now))
    over.logs.close()


@pytest.fixture
def served(service: Service) -> Client:
    return Client(make_app(service))


def ids(answer: Any) -> list[str]:
    return [each["group_id"] for each in answer["groups"]]


def test_the_list_comes_in_pages_by_id(served: Client, brokers: Brokers) -> None:
    first = told(served, "/client-groups?limit=3")
    assert (ids(first), first["matching"], first["total"]) == (["billing", "pay", "registry"], 4, 4)
    assert ids(told(served, "/client-groups?limit=3&after=registry")) == ["resets"]
    assert brokers.asked == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("text=PAY", ["pay"]),
        ("type=consumer", ["billing"]),
        ("state=Empty", ["resets"]),
        ("type=classic&state=Stable", ["pay", "registry"]),
        ("text=nobody", []),
    ],
)
def test_the_list_is_filtered(served: Client, query: str, found: list[str]) -> None:
    answer = told(served, f"/client-groups?{query}")
    assert (ids(answer), answer["matching"], answer["total"]) == (found, len(found), 4)


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "type=share", "lag=perhaps"])
def test_a_filter_that_makes_no_sense_is_refused(served: Client, query: str) -> None:
    assert served.get(f"/client-groups?{query}").status_code == 400


def test_the_list_has_what_each_group_has_left_to_read(served: Client) -> None:
    answer = told(served, "/client-groups?lag=true")
    assert answer["message"] == ""
    lags = {each["group_id"]: each.get("lag") for each in answer["groups"]}
    assert lags == {"billing": 3, "pay": None, "registry": None, "resets": 0}


def test_each_partition_has_its_member_offset_end_and_lag(served: Client) -> None:
    lag = told(served, "/groups/billing/lag")
    assert (lag["lag"], lag["message"], lag["total"]) == (3, "", 4)
    kept = ("partition", "member_id", "offset", "end", "lag", "metadata")
    assert [tuple(each[name] for name in kept) for each in lag["partitions"]] == [
        (0, AGAIN, None, 9, None, ""),
        (1, AGAIN, 17, 20, 3, ""),
        (2, AGAIN, 4, 4, 0, "note"),
        (3, AGAIN, None, None, None, ""),
    ]
    (of_nobody,) = told(served, "/groups/resets/lag")["partitions"]
    assert (of_nobody["member_id"], of_nobody["offset"], of_nobody["lag"]) == ("", 99, 0)


def test_brokers_are_asked_once_in_a_while_and_left_alone_after_a_failure(
    served: Client, brokers: Brokers
) -> None:
    for _ in range(2):
        told(served, "/groups/billing/lag")
    assert brokers.asked == [[("orders", number) for number in range(4)]]
    brokers.is_silent, brokers.now = True, FRESH_SECONDS
    for _ in range(2):
        lag = told(served, "/groups/billing/lag")
        assert (lag["message"], lag["lag"]) == (SILENT, 3)  # as it was known
    assert len(brokers.asked) == 2
    brokers.is_silent, brokers.now = False, FRESH_SECONDS + PAUSE_SECONDS
    assert told(served, "/groups/billing/lag")["message"] == ""
    brokers.is_silent, brokers.now = True, KEPT_SECONDS * 2
    assert told(served, "/groups/billing/lag")["lag"] is None


def test_without_a_listener_there_are_offsets_and_a_reason_why_no_lag(service: Service) -> None:
    lag = told(Client(make_app(replace(service, ends=EndOffsets()))), "/groups/billing/lag")
    assert (lag["lag"], lag["message"], lag["partitions"][1]["offset"]) == (None, NO_LISTENER, 17)


def test_a_broker_that_cannot_be_reached_is_named(service: Service) -> None:
    nowhere = ask_brokers({"brokers": [["127.0.0.1", 9]], "upstream": {}})
    client = Client(make_app(replace(service, ends=EndOffsets(nowhere))))
    lag = told(client, "/groups/billing/lag")
    assert lag["lag"] is None
    assert "127.0.0.1:9" in lag["message"]


def test_the_lag_of_a_group_that_is_none_is_a_404(served: Client) -> None:
    reply = served.get("/groups/nobody/lag")
    assert (reply.status_code, reply.json()["message"]) == (
        404,
        "there is no group nobody of Kafka's clients",
    )


def test_a_caller_who_sees_some_connectors_gets_no_group_of_clients(service: Service) -> None:
    client = limited(Role.ADMIN, "orders-*")(cast("Any", SimpleNamespace(service=service)))
    assert client.get("/groups").json() == []
    for path in ("/client-groups", "/groups/billing", "/groups/billing/lag", "/groups/nobody/lag"):
        assert client.get(path).status_code == 403


def test_that_not_all_partitions_are_asked_for_is_said(
    served: Client, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ends, "MOST_PARTITIONS", 2)
    answer = told(served, "/client-groups?lag=true")
    assert (answer["message"], [len(each) for each in brokers.asked]) == (TOO_MANY, [2])


# -- what has changed


class Watched:
    """The feed of a page that somebody has read, and its looks."""

    def __init__(self, data_dir: Path) -> None:
        self.service = service_over(data_dir, FakeGateway(None))
        self.now = 0.0
        self._watch = ClientGroupWatch(self.service, lambda: self.now)
        view = SimpleNamespace(position=7, time_ms=1)
        self.service.page.publish(cast("PageView", view))

    def reads(self) -> None:
        """Have somebody read the page, so that changes are told."""
        self.service.page._read_at = float("inf")

    def look(self) -> list[Any]:
        """Look, half a second later, and return what is told."""
        self.now += client_groups.PERIOD_SECONDS
        before = self.service.page.sequence
        self._watch.follow("connect", cast("Any", None))
        messages = [*self.service.page._messages]
        return [json.loads(each.block.split(b"data: ")[1]) for each in messages[before:]]


def test_readers_of_the_page_hear_which_groups_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(tmp_path)
    watched = Watched(tmp_path)
    with watched.service.logs.shards.reading() as (shard,):
        pass
    assert watched.look() == []  # nobody follows the page
    watched.reads()
    assert watched.look() == []  # nothing has changed
    shard.changed.add(["pay", "billing"])
    (told_of,) = watched.look()
    assert told_of["client_groups"] == ["billing", "pay"]
    assert watched.look() == []
    monkeypatch.setattr(shards, "CHANGED_MAX", 1)
    shard.changed.add(["pay", "billing"])
    assert watched.look()[0]["client_groups"] is None
    watched.service.logs.close()


def test_groups_of_all_shards_are_named_together_only_as_long_as_they_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(tmp_path, 2)
    copytree(tmp_path / "shards" / "0", tmp_path / "shards" / "1")
    logs = service_over(tmp_path, FakeGateway(None)).logs
    with logs.shards.reading() as followed:
        pass
    monkeypatch.setattr(shards, "CHANGED_MAX", len(followed) - 1)
    for each in followed:
        each.changed.add([f"of-{each.number}"])
    assert (len(followed), logs.shards.take_changed(), logs.shards.take_changed()) == (
        2,
        None,
        set(),
    )
    logs.close()
