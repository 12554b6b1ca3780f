"""How far partitions were written, as their leaders tell it."""
# pyright: basic

import asyncio
from typing import Any

import pytest

from fairlead.runtime.kafka.broker.ends import (
    METADATA_VERSION,
    OFFSETS_VERSION,
    BrokersSilent,
    read_ends,
)
from fairlead.runtime.kafka.wire.served import LIST_OFFSETS, METADATA
from fairlead_tests.kafka_listener.behind import Behind, behind

WANTED = [("orders", 0), ("orders", 1), ("orders", 2), ("gone", 0)]
SECONDS = 60.0


def leads(number: int, leader: int) -> dict[str, Any]:
    nobody = {"ReplicaNodes": [], "IsrNodes": [], "OfflineReplicas": [], "LeaderEpoch": 0}
    return {"ErrorCode": 0, "PartitionIndex": number, "LeaderId": leader, **nobody}


def metadata(*ports: int) -> dict[str, Any]:
    """Return who leads what: the first broker 0, the second one 1, and nobody 2."""
    orders = {"Partitions": [leads(0, 1), leads(1, 2), leads(2, -1)], "ErrorCode": 0}
    gone = {"Partitions": [], "ErrorCode": 3}
    rest = {"IsInternal": False, "TopicAuthorizedOperations": 0}
    return {
        "ThrottleTimeMs": 0,
        "Brokers": [
            {"NodeId": number, "Host": "127.0.0.1", "Port": port, "Rack": None}
            for number, port in enumerate(ports, 1)
        ],
        "ClusterId": "c",
        "ControllerId": 1,
        "Topics": [{"Name": "orders", **orders, **rest}, {"Name": "gone", **gone, **rest}],
        "ClusterAuthorizedOperations": 0,
    }


def ends(partition: int, error: int, offset: int) -> dict[str, Any]:
    answer = {"PartitionIndex": partition, "ErrorCode": error, "Offset": offset}
    of_topic = {"Name": "orders", "Partitions": [{**answer, "Timestamp": -1, "LeaderEpoch": 0}]}
    return {"ThrottleTimeMs": 0, "Topics": [of_topic]}


async def ask(broker: Behind, seconds: float = SECONDS) -> dict[tuple[str, int], int]:
    places = [("127.0.0.1", broker.port)]
    return await asyncio.to_thread(read_ends, places, {}, WANTED, seconds)


@pytest.mark.parametrize(("error", "known"), [(0, {("orders", 1): 7}), (6, {})])
def test_each_leader_is_asked_for_its_partitions(error: int, known: Any) -> None:
    async def play() -> None:
        async with behind() as one, behind() as other:
            one.says(METADATA, METADATA_VERSION, metadata(one.port, other.port))
            one.says(LIST_OFFSETS, OFFSETS_VERSION, ends(0, 0, 41))
            other.says(LIST_OFFSETS, OFFSETS_VERSION, ends(1, error, 7))
            assert await ask(one) == {("orders", 0): 41, **known}

    asyncio.run(play())


def test_a_broker_that_is_silent_is_named() -> None:
    async def play() -> None:
        async with behind() as broker:
            with pytest.raises(BrokersSilent, match=f"127.0.0.1:{broker.port} did not answer"):
                await ask(broker, 0.2)

    asyncio.run(play())


def test_a_user_whose_password_cannot_be_read_is_told() -> None:
    upstream = {"mechanism": "PLAIN", "user": "node", "password_file": "/nowhere/password"}
    with pytest.raises(BrokersSilent, match="/nowhere/password"):
        read_ends([("127.0.0.1", 9)], upstream, WANTED, SECONDS)
