"""Groups of Kafka's clients over REST, from the logs of their shard alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse
from rest.conftest import service_over
from rest.test_openapi import flaws_of

from fairlead.events.log.frame import Entry
from fairlead.events.log.reader import LogReader, Slice
from fairlead.projections.shards import COMPLETING
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.shards.driver import joining
from fairlead_tests.shards.recorded import AGAIN, Clients, live

LABELS = ("shard", "type", "state", "cause", "log")
NAMED = {"explain": "{epoch}", "moves": "{resource}"}
W1 = {"client_id": "web", "client_host": "/10.0.0.7", "instance_id": "w1"}
LISTED = {
    "billing": ("consumer", "Stable", 6, 1, 4, 4, "uniform", ""),
    "pay": ("classic", "Stable", 5, 1, 0, 4, "range", "consumer"),
    "registry": ("classic", "Stable", 1, 1, 0, 0, "chess", "game"),
    "resets": ("classic", "Empty", 0, 0, 0, 0, "", ""),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    data_dir = tmp_path_factory.mktemp("node")
    live(data_dir)
    service = service_over(data_dir, FakeGateway(None))
    yield Client(make_app(service))
    service.logs.close()


def told(served: Client, path: str) -> Any:
    """Return what is answered, which is just what the schema says."""
    reply = served.get(path)
    assert reply.status_code == 200, reply.text
    document = served.get("/openapi.json").json()
    groups, *rest = path.removeprefix("/").partition("?")[0].split("/")
    named = ("{group}", *rest[1:2], *(NAMED[each] for each in rest[1:2] if each in NAMED))
    template = "/".join(("", groups, *named[: len(rest)]))
    answer = document["paths"][template]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    assert [*flaws_of(reply.json(), schema, document)] == []
    return reply.json()


def test_they_are_listed_with_type_state_members_epoch_and_assignor(served: Client) -> None:
    kept = ("type", "state", "group_epoch", "members", "configured", "assigned")
    listed = {
        each["group_id"]: (
            *(each[name] for name in kept),
            each.get("assignor", ""),
            each.get("protocol_type", ""),
        )
        for each in told(served, "/groups")
    }
    assert listed == LISTED
    assert {each["shard"] for each in told(served, "/groups")} == {0}


def test_a_group_that_waits_for_its_leader_is_in_the_state_that_kafka_calls_so(
    tmp_path: Path,
) -> None:
    clients = Clients(tmp_path)
    clients.shard.asks(joining("pay"))
    clients.close()
    service = service_over(tmp_path, FakeGateway(None))
    served = Client(make_app(service))
    (listed,) = told(served, "/groups")
    assert listed["state"] == told(served, "/groups/pay")["state"] == COMPLETING
    service.logs.close()


def test_a_look_reads_what_is_new_and_not_the_log_anew(
    served: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = told(served, "/groups")
    served.get("/metrics")
    read: list[int] = []

    def noted(batches: Iterator[list[Entry]]) -> Iterator[list[Entry]]:
        for entries in batches:
            read.extend(each.offset for each in entries)
            yield entries

    def refuse(log: LogReader) -> NoReturn:
        pytest.fail(f"all of {log.path} is read")

    tail, part = LogReader.tail, LogReader.read

    def noted_tail(log: LogReader, start: int) -> Iterator[list[Entry]]:
        return noted(tail(log, start))

    monkeypatch.setattr(LogReader, "load", refuse)
    monkeypatch.setattr(LogReader, "tail", noted_tail)
    assert told(served, "/groups") == before
    served.get("/metrics")
    assert read == []

    def read_part(log: LogReader, start: int, limit: int, size_limit: int) -> Slice:
        found = part(log, start, limit, size_limit)
        return Slice([*next(noted(iter([found.entries])))], found.end)

    monkeypatch.setattr(LogReader, "read", read_part)
    assert len(told(served, "/groups/registry/history")["epochs"]) == 1
    assert len(read) == 2


def test_a_group_of_consumers_is_told_with_members_partitions_and_offsets(served: Client) -> None:
    group = told(served, "/groups/billing")
    (member,) = group["members"]
    assert {name: member[name] for name in W1} == W1
    assert (member["member_id"], member["state"], member["protocol"]) == (
        AGAIN,
        "STABLE",
        "consumer",
    )
    assert [each["id"] for each in member["assigned"]] == [f"orders-{n}" for n in range(4)]
    assert member["target"] == [
        {"id": f"orders-{n}", "connector": "orders", "task": n} for n in range(4)
    ]
    read = [(each["topic"], each["partition"], each["offset"]) for each in group["committed"]]
    assert read == [("orders", 1, 17), ("orders", 2, 4)]


def test_a_classic_group_is_told_with_what_its_leader_assigned(served: Client) -> None:
    group = told(served, "/groups/pay")
    (member,) = group["members"]
    assert (member["client_id"], member["protocol"], member["member_epoch"]) == ("x", "classic", 5)
    assert [each["id"] for each in member["assigned"]] == [f"orders-{n}" for n in range(4)]
    assert group["generation"]["leader"] == "x-1"
    (other,) = told(served, "/groups/registry")["members"]
    assert (other["assigned"], other["state"]) == ([], "STABLE")
    assert told(served, "/groups/resets")["committed"][0]["offset"] == 99


def test_history_explanations_and_moves_name_the_clients(served: Client) -> None:
    history = told(served, "/groups/billing/history")
    assert [each["cause"] for each in history["epochs"]] == [
        "member-joined",
        "subscription-changed",
        "member-joined",
        "member-left",
        "member-joined",
        "session-expired",
    ]
    assert history["clients"][AGAIN] == W1
    last = told(served, "/groups/billing/explain/latest")
    assert (last["cause"], last["type"]) == ("session-expired", "consumer")
    assert {each["to"]["member_id"] for each in last["handovers"]} == {AGAIN}
    assert sorted(last["clients"]) == [AGAIN, "app-1111aaaa"]
    generation = told(served, "/groups/pay/explain/2")
    assert generation["generation"]["leader_name"] == "x(1)"
    assert [each["id"] for each in generation["handovers"]] == ["orders-2", "orders-3"]
    moved = told(served, "/groups/billing/moves/orders-2?limit=2")
    assert [(each["group_epoch"], each["causes"]) for each in moved["moves"]] == [
        (4, ["member-left"]),
        (5, ["member-joined"]),
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/groups/nobody", "there is no group nobody"),
        ("/groups/nobody/history", "there is no group nobody"),
        ("/groups/nobody/moves/orders-1", "there is no group nobody"),
        ("/groups/billing/explain/7", "there is no epoch 7 in the log of group billing: it tells"),
        ("/groups/resets/explain/latest", "the log of group resets tells of no epoch"),
        ("/groups/pay/moves/clicks-0", "nothing of the name clicks-0 changed hands in the epochs"),
        ("/groups/nobody/config", "there is no group nobody"),
        ("/groups/pay/compaction", "group pay is one of Kafka's clients: it has no workers"),
    ],
)
def test_what_there_is_not_is_a_404_that_says_so(served: Client, path: str, message: str) -> None:
    reply = served.get(path)
    assert (reply.status_code, reply.json()["message"][: len(message)]) == (404, message)


def test_they_are_measured_by_shard_and_type_and_none_by_name(served: Client) -> None:
    page = served.get("/metrics").text
    samples = {
        (sample.name, *(sample.labels[each] for each in LABELS if each in sample.labels)): (
            sample.value
        )
        for family in parse(page)
        for sample in family.samples
        if sample.name.startswith("fairlead_kafka_")
    }
    assert samples["fairlead_kafka_groups", "0", "consumer", "stable"] == 1
    assert samples["fairlead_kafka_groups", "0", "classic", "stable"] == 2
    assert samples["fairlead_kafka_group_members", "0", "classic"] == 2
    name = "fairlead_kafka_group_rebalances_total"
    assert samples[name, "0", "consumer", "session-expired"] == 1
    assert samples[name, "0", "classic", "group-downgraded"] == 1
    assert samples["fairlead_kafka_committed_offsets_total", "0"] == 3
    assert samples["fairlead_kafka_log_size_bytes", "0", "offsets"] > 0
    assert "billing" not in page
