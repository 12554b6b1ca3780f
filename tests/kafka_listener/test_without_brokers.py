"""A listener without brokers behind it serves groups, and says why it does nothing else."""
# pyright: basic

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.config.contradictions import flaws_in_kafka
from fairlead.runtime.config.node_keys.kafka import KafkaSettings
from fairlead.runtime.kafka.broker.without_brokers import CLUSTER, NO_BROKER
from fairlead.runtime.kafka.wire.served import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    METADATA,
    PRIVATE,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from fairlead_tests.kafka_listener.served import HOST, Served, listening
from fairlead_tests.kafka_listener.spoken import ask, asking, told

COORDINATOR, INVALID, NO_TOPIC, UNSUPPORTED = 1_000_000_000, 42, 3, 35
OF_TOPIC, OF_GROUP = 2, 32
NO_RIGHTS = {
    "AllowAutoTopicCreation": False,
    "IncludeClusterAuthorizedOperations": False,
    "IncludeTopicAuthorizedOperations": False,
}


def alone(folder: Path, play: Callable[[Served], Awaitable[Any]]) -> Served:
    kept: list[Served] = []

    async def run() -> None:
        async with listening(folder, broker=0) as served:
            kept.append(served)
            await play(served)

    asyncio.run(run())
    return kept[0]


def test_it_offers_what_needs_no_broker(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        answer = await ask(
            client, API_VERSIONS, 3, ClientSoftwareName="c", ClientSoftwareVersion="1"
        )
        keys = [each["ApiKey"] for each in answer["ApiKeys"]]
        assert len(keys) == len({*keys})
        assert {*PRIVATE, METADATA, FIND_COORDINATOR, DESCRIBE_CONFIGS} <= {*keys}
        assert not {PRODUCE, FETCH, TXN_OFFSET_COMMIT, 19, 22, 24} & {*keys}
        unknown = bytearray(asking(API_VERSIONS, 0, {}))
        unknown[2:4] = (99).to_bytes(2)
        refused = told(API_VERSIONS, 0, await client.asks(bytes(unknown)))
        assert refused["ErrorCode"] == UNSUPPORTED
        assert API_VERSIONS in {each["ApiKey"] for each in refused["ApiKeys"]}

    alone(tmp_path, play)


@pytest.mark.parametrize("version", [0, 1, 4, 9, 12, 13])
def test_its_cluster_is_one_node_without_topics(tmp_path: Path, version: int) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        topic = {"Name": "t", "TopicId": "00000000-0000-0000-0000-000000000000"}
        answer = await ask(client, METADATA, version, Topics=[topic], **NO_RIGHTS)
        (node,) = answer["Brokers"]
        assert (node["NodeId"], node["Host"], node["Port"]) == (COORDINATOR, HOST, served.port)
        assert [each["ErrorCode"] for each in answer["Topics"]] == [NO_TOPIC]

    alone(tmp_path, play)


def test_the_coordinator_of_groups_is_here_and_that_of_transactions_nowhere(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        answer = await ask(client, FIND_COORDINATOR, 4, KeyType=0, CoordinatorKeys=["g"])
        (group,) = answer["Coordinators"]
        assert (group["NodeId"], group["ErrorCode"]) == (COORDINATOR, 0)
        answer = await ask(client, FIND_COORDINATOR, 4, KeyType=1, CoordinatorKeys=["t"])
        (refused,) = answer["Coordinators"]
        assert (refused["NodeId"], refused["ErrorCode"]) == (-1, INVALID)
        assert refused["ErrorMessage"] == NO_BROKER
        answer = await ask(client, FIND_COORDINATOR, 2, KeyType=1, Key="t")
        assert (answer["ErrorCode"], answer["ErrorMessage"]) == (INVALID, NO_BROKER)
        answer = await ask(client, DESCRIBE_CLUSTER, 1, EndpointType=1, **NO_RIGHTS)
        assert [each["BrokerId"] for each in answer["Brokers"]] == [COORDINATOR]

    alone(tmp_path, play)


def test_groups_are_found_at_the_node_that_owns_them(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        for owner in (HostPort("h2", 9094), None):
            served.shard.owner = owner
            place = owner or HostPort(HOST, served.port)
            answer = await ask(client, FIND_COORDINATOR, 4, KeyType=0, CoordinatorKeys=["g"])
            cluster = await ask(client, DESCRIBE_CLUSTER, 1, EndpointType=1, **NO_RIGHTS)
            metadata = await ask(client, METADATA, 12, Topics=[], **NO_RIGHTS)
            for (each,) in (answer["Coordinators"], cluster["Brokers"], metadata["Brokers"]):
                assert (each["Host"], each["Port"]) == place

    alone(tmp_path, play)


def test_configs_are_those_of_groups(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        named = [(OF_TOPIC, "t"), (OF_GROUP, "g")]
        resources = [
            {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": None}
            for kind, name in named
        ]
        for asked in (resources, resources[:1]):
            answer = await ask(client, DESCRIBE_CONFIGS, 4, Resources=asked)
            found = [(each["ErrorCode"], each["ErrorMessage"]) for each in answer["Results"]]
            assert found == [(INVALID, NO_BROKER), (0, None)][: len(asked)]

    alone(tmp_path, play)


def test_a_call_for_records_ends_its_connection(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        fields: dict[str, Any] = {
            "TransactionalId": None,
            "Acks": 1,
            "TimeoutMs": 1,
            "TopicData": [],
        }
        assert await client.asks(asking(PRODUCE, 9, fields)) == b""

    served = alone(tmp_path, play)
    assert served.counts.reasons == ["no broker"]
    assert NO_BROKER in served.counts.told[0]


def test_a_stock_client_administers_groups_there(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        client: Any = AdminClient({"bootstrap.servers": f"{HOST}:{served.port}", "log_level": 0})

        def groups() -> Any:
            return client.list_consumer_groups(request_timeout=30).result()

        def cluster() -> Any:
            return client.describe_cluster(request_timeout=30).result(), client.list_topics()

        found = await asyncio.to_thread(groups)
        assert (found.valid, found.errors) == ([], [])
        described, listed = await asyncio.to_thread(cluster)
        assert described.cluster_id == listed.cluster_id == CLUSTER
        assert ([*listed.brokers], listed.topics) == ([COORDINATOR], {})

    alone(tmp_path, play)


def test_whoever_has_no_broker_has_none_that_decides() -> None:
    settings = KafkaSettings(kafka_listeners="SASL_PLAINTEXT://127.0.0.1:9092")
    assert [*flaws_in_kafka(settings, needs_broker=False)] == []
    assert [each.text for each in flaws_in_kafka(settings)] == [
        "kafka.listeners is set and kafka.bootstrap.servers is not: name the brokers behind"
    ]
    settings = KafkaSettings(kafka_listeners="PLAINTEXT://127.0.0.1:9092", kafka_acls="broker")
    assert [each.text for each in flaws_in_kafka(settings, needs_broker=False)] == [
        "kafka.acls = broker needs kafka.bootstrap.servers: who decides"
    ]
