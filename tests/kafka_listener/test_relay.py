"""What is no matter of groups goes to the broker as it is; what it says of itself is changed."""
# pyright: basic

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.kafka.broker.responses import COORDINATOR_ID
from fairlead.runtime.kafka.server import METADATA_VERSION
from fairlead.runtime.kafka.wire.served import SERVED, WITHHELD
from fairlead_tests.kafka_listener.behind import FETCH, LIST_OFFSETS, Behind, behind
from fairlead_tests.kafka_listener.served import SECONDS, Served, listening
from fairlead_tests.kafka_listener.spoken import asking, between, told

METADATA, FIND, VERSIONS, CLUSTER, PRODUCE = 3, 10, 18, 60, 0
BROKERS = [{"NodeId": number, "Host": "10.0.0.1", "Port": 9092, "Rack": None} for number in (1, 2)]


@pytest.mark.parametrize("version", range(14))
def test_clients_hear_of_our_ports_alone_and_of_one_more_node(tmp_path: Path, version: int) -> None:
    async def play(served: Served, broker: Behind) -> None:
        brokers = [dict(each) for each in BROKERS]
        answer = {"ThrottleTimeMs": 0, "Brokers": brokers, "ClusterId": "x", "ControllerId": 1}
        broker.says(METADATA, version, {**answer, "Topics": [], "ErrorCode": 0})
        client = await served.dial()
        asked = asking(
            METADATA,
            version,
            {
                "Topics": [],
                "AllowAutoTopicCreation": False,
                "IncludeClusterAuthorizedOperations": False,
                "IncludeTopicAuthorizedOperations": False,
            },
        )
        said = told(METADATA, version, await client.asks(asked))
        found = {each["NodeId"]: (each["Host"], each["Port"]) for each in said["Brokers"]}
        assert found == {
            1: ("127.0.0.1", served.port + 2),
            2: ("127.0.0.1", served.port + 3),
            COORDINATOR_ID: ("127.0.0.1", served.port),
        }
        assert broker.seen[-1] == asked

    between(tmp_path, play)


def test_the_brokers_ports_are_there_before_any_client_asks_for_them(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        answer = {"ThrottleTimeMs": 0, "ClusterId": "x", "ControllerId": 1, "Topics": []}
        answer |= {"ClusterAuthorizedOperations": 0}
        broker.says(METADATA, METADATA_VERSION, {**answer, "Brokers": BROKERS[:1]})
        await served.listener.open_broker_ports([HostPort("127.0.0.1", broker.port)])
        await asyncio.gather(*served.listener._opening)
        client = await served.dial(served.port + 2)
        assert client.writer.get_extra_info("peername") == ("127.0.0.1", served.port + 2)

    between(tmp_path, play)


@pytest.mark.parametrize("version", range(7))
def test_groups_are_with_us_and_transactions_with_the_broker(tmp_path: Path, version: int) -> None:
    async def play(served: Served, broker: Behind) -> None:
        place = {
            "NodeId": 2,
            "Host": "10.0.0.1",
            "Port": 9092,
            "ErrorCode": 0,
            "ErrorMessage": None,
        }
        answer = {"ThrottleTimeMs": 0, **place, "Coordinators": [{"Key": "t", **place}]}
        broker.says(FIND, version, answer)
        client = await served.dial()
        for key_type, node, port in ((0, COORDINATOR_ID, 0), (1, 2, 3)):
            if key_type and not version:
                continue  # the first version knows of groups alone
            fields = {"Key": "t", "KeyType": key_type, "CoordinatorKeys": ["t"]}
            said = told(FIND, version, await client.asks(asking(FIND, version, fields)))
            found = said["Coordinators"][0] if version >= 4 else said
            assert (found["NodeId"], found["Host"]) == (node, "127.0.0.1")
            assert found["Port"] == served.port + port
        assert len(broker.seen) == bool(version)

    between(tmp_path, play)


@pytest.mark.parametrize("version", range(5))
def test_nobody_is_told_of_calls_that_are_not_served(tmp_path: Path, version: int) -> None:
    async def play(served: Served, broker: Behind) -> None:
        keys = [{"ApiKey": key, "MinVersion": 0, "MaxVersion": 99} for key in range(93)]
        features = [{"Name": "transaction.version", "MinVersion": 0, "MaxVersion": 2}]
        broker.says(
            VERSIONS,
            version,
            {"ErrorCode": 0, "ApiKeys": keys, "ThrottleTimeMs": 0, "SupportedFeatures": features},
        )
        client = await served.dial()
        fields = {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"}
        said = told(VERSIONS, version, await client.asks(asking(VERSIONS, version, fields)))
        ranges = {each["ApiKey"]: each["MaxVersion"] for each in said["ApiKeys"]}
        assert not ranges.keys() & WITHHELD
        assert {key: ranges[key] for key in SERVED} == {
            key: last for key, (_, last) in SERVED.items()
        }
        assert (ranges[PRODUCE], ranges[FETCH], ranges[19]) == (9, 15, 99)
        assert said.get("SupportedFeatures", []) == []

    between(tmp_path, play)


def test_who_asks_for_a_version_to_come_hears_of_those_that_there_are(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        broker.answers[VERSIONS, 99] = b"\0\x23" + b"\0\0\0\1" + bytes.fromhex("001200000004")
        client = await served.dial()
        assert (await client.asks(bytes.fromhex("0012006300000007ffff00")))[4:6] == b"\0\x23"

    between(tmp_path, play)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_has_our_ports_and_the_node_of_groups(tmp_path: Path, version: int) -> None:
    async def play(served: Served, broker: Behind) -> None:
        brokers = [
            {"BrokerId": 1, "Host": "10.0.0.1", "Port": 9092, "Rack": None, "IsFenced": False}
        ]
        answer: dict[str, Any] = {"ThrottleTimeMs": 0, "ErrorCode": 0, "ErrorMessage": None}
        answer |= {"EndpointType": 1}
        answer |= {"ClusterId": "x", "ControllerId": 1, "ClusterAuthorizedOperations": 0}
        broker.says(CLUSTER, version, {**answer, "Brokers": brokers})
        client = await served.dial()
        fields = {"IncludeClusterAuthorizedOperations": False, "EndpointType": 1}
        fields |= {"IncludeFencedBrokers": False}
        said = told(CLUSTER, version, await client.asks(asking(CLUSTER, version, fields)))
        found = {each["BrokerId"]: each["Port"] for each in said["Brokers"]}
        assert found == {1: served.port + 2, COORDINATOR_ID: served.port}

    between(tmp_path, play)


def test_a_broker_that_has_moved_is_reached_where_it_is_now(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        async with behind() as elsewhere:
            for each, name in ((broker, b"here"), (elsewhere, b"there")):
                each.answers[LIST_OFFSETS, 1] = name
                node = {"NodeId": 1, "Host": "127.0.0.1", "Port": each.port, "Rack": None}
                answer = {"ThrottleTimeMs": 0, "ClusterId": "x", "ControllerId": 1, "Topics": []}
                broker.says(METADATA, 9, {**answer, "Brokers": [node]})
                client = await served.dial()
                fields = {"Topics": [], "AllowAutoTopicCreation": False}
                fields |= {"IncludeClusterAuthorizedOperations": False}
                fields |= {"IncludeTopicAuthorizedOperations": False}
                assert await client.asks(asking(METADATA, 9, fields))
                await asyncio.gather(*served.listener._opening)
                of_broker = await served.dial(served.port + 2)
                assert (await of_broker.asks(bytes.fromhex("0002000100000001ffff")))[4:] == name

    between(tmp_path, play)


def test_an_answer_of_any_length_passes_in_pieces(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        data = bytes(range(256)) * (1 << 17)  # 32 MiB
        broker.answers[LIST_OFFSETS, 1] = data
        client = await served.dial()
        await client.send(bytes.fromhex("0002000100000001ffff"))
        size = int.from_bytes(await client.reader.readexactly(4))
        got = await client.reader.readexactly(size)
        assert (size, got[4:] == data) == (len(data) + 4, True)

    between(tmp_path, play)


@pytest.mark.parametrize("version", [3, 8, 9])
def test_a_produce_without_acks_is_not_waited_for(tmp_path: Path, version: int) -> None:
    async def play(served: Served, broker: Behind) -> None:
        broker.answers[LIST_OFFSETS, 1] = b"later"
        for acks, is_answered in ((0, False), (-1, True)):
            if is_answered:
                broker.answers[PRODUCE, version] = b"done"
            client = await served.dial()
            fields = {"TransactionalId": "t" * 200, "Acks": acks, "TimeoutMs": 1, "TopicData": []}
            await client.send(asking(PRODUCE, version, fields))
            if is_answered:
                assert (await client.receive())[4:] == b"done"
            assert (await client.asks(bytes.fromhex("0002000100000001ffff")))[4:] == b"later"

    between(tmp_path, play)


def test_requests_that_are_sent_together_are_answered_in_order(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        broker.answers[LIST_OFFSETS, 1] = b"offsets"
        client = await served.dial()
        beat = bytes.fromhex("000c000000000002ffff" + "000161" + "00000001" + "000162")
        for frame in (bytes.fromhex("0002000100000001ffff"), beat) * 20:
            client.writer.write(len(frame).to_bytes(4) + frame)
        numbers = [int.from_bytes((await client.receive())[:4]) for _ in range(40)]
        assert numbers == [1, 2] * 20

    between(tmp_path, play)


def test_a_broker_that_is_away_costs_its_clients_their_connection_and_no_group(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with listening(tmp_path) as served:
            client = await served.dial()
            assert await client.asks(bytes.fromhex("0002000100000001ffff")) == b""
            assert "the broker cannot be reached" in served.counts.told[0]
            again = await served.dial()
            beat = bytes.fromhex("000c000000000002ffff" + "000161" + "00000001" + "000162")
            assert await again.asks(beat)

    asyncio.run(run())


def test_a_broker_that_goes_in_the_middle_of_an_answer_costs_the_client_its_connection(
    tmp_path: Path,
) -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write((1_000).to_bytes(4) + b"some of it")
        writer.close()

    async def run() -> None:
        broker = await asyncio.start_server(cut, "127.0.0.1", 0)
        async with broker, listening(tmp_path, broker.sockets[0].getsockname()[1]) as served:
            client = await served.dial()
            assert await client.asks(bytes.fromhex("0002000100000001ffff")) == b""
            assert "in the middle of an answer" in served.counts.told[0]

    asyncio.run(run())


def test_a_client_that_goes_in_the_middle_of_an_answer_is_let_go(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        broker.answers[LIST_OFFSETS, 1] = bytes(32 << 20)
        client = await served.dial()
        await client.send(bytes.fromhex("0002000100000001ffff"))
        await client.reader.readexactly(4)
        assert served.counts.opened == 1
        client.writer.transport.abort()
        async with asyncio.timeout(SECONDS):
            while served.listener._connections:
                await asyncio.sleep(0.01)
        assert broker.seen == [bytes.fromhex("0002000100000001ffff")], "it had been asked"
        assert (served.counts.opened, served.listener._of_address.total()) == (0, 0)

    between(tmp_path, play)
