"""Offsets are committed and told in each version, and topics are looked at when one is named."""
# pyright: basic

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime.kafka import groups as groups_module
from fairlead.runtime.kafka import topics as topics_module
from fairlead.runtime.kafka.wire.served import (
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SERVED,
)
from fairlead_tests.kafka_listener.behind import Behind
from fairlead_tests.kafka_listener.served import Client, Served
from fairlead_tests.kafka_listener.spoken import ask, between

T_ID = "hex:" + "0a" * 16
UNKNOWN_TOPIC, LOADING, INVALID_GROUP_ID, UNKNOWN_TOPIC_ID = 3, 14, 24, 100


def versions(api: int) -> range:
    """Return the versions that call topics by their names."""
    first, last = SERVED[api]
    return range(first, min(last, 9) + 1)


NO_MEMBER = {
    "GroupId": "g",
    "GenerationIdOrMemberEpoch": -1,
    "MemberId": "",
    "RetentionTimeMs": -1,
}
PARTITION = {
    "PartitionIndex": 0,
    "CommittedOffset": 7,
    "CommittedLeaderEpoch": 2,
    "CommittedMetadata": "m",
}


async def commit(client: Client, version: int, topic: str = "t", partition: int = 0) -> int:
    place = {**PARTITION, "PartitionIndex": partition}
    topics = [{"Name": topic, "Partitions": [place]}]
    said = await ask(client, OFFSET_COMMIT, version, **NO_MEMBER, Topics=topics)
    return int(said["Topics"][0]["Partitions"][0]["ErrorCode"])


async def fetch(client: Client, version: int, topics: Any) -> Any:
    asked: dict[str, Any] = {"GroupId": "g", "Topics": topics}
    fields = {"Groups": [asked], "RequireStable": True} if version >= 8 else asked
    said = await ask(client, OFFSET_FETCH, version, **fields)
    group = said["Groups"][0] if version >= 8 else said
    assert group.get("ErrorCode", 0) == 0
    return [
        (topic["Name"], each["PartitionIndex"], each["CommittedOffset"], each["Metadata"])
        for topic in group["Topics"]
        for each in topic["Partitions"]
    ]


@pytest.mark.parametrize("version", versions(OFFSET_COMMIT))
def test_offsets_are_committed_in_each_version(tmp_path: Path, version: int) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        assert await commit(client, version) == 0
        assert await fetch(client, 9, None) == [("t", 0, 7, "m")]

    between(tmp_path, play)


@pytest.mark.parametrize("version", versions(OFFSET_FETCH))
def test_offsets_are_told_in_each_version(tmp_path: Path, version: int) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await commit(client, 9)
        asked = [{"Name": "t", "PartitionIndexes": [1, 0]}, {"Name": "u", "PartitionIndexes": [2]}]
        assert await fetch(client, version, asked) == [
            ("t", 1, -1, ""),
            ("t", 0, 7, "m"),
            ("u", 2, -1, ""),
        ]
        if version >= 2:
            assert await fetch(client, version, None) == [("t", 0, 7, "m")]

    between(tmp_path, play)


def test_the_newest_version_calls_topics_by_their_ids(tmp_path: Path) -> None:
    unknown = "hex:" + "0b" * 16
    places = [{**PARTITION, "PartitionIndex": each} for each in (0, 9)]

    async def play(served: Served, broker: Behind) -> None:
        has(broker, t=2)
        async with watching(served):
            client = await served.dial()
            named = [{"TopicId": each, "Partitions": places} for each in (unknown, T_ID)]
            said = await ask(client, OFFSET_COMMIT, 10, **NO_MEMBER, Topics=named)
            assert {each["TopicId"]: codes_of(each) for each in said["Topics"]} == {
                T_ID: {0: 0, 9: UNKNOWN_TOPIC},
                unknown: {0: UNKNOWN_TOPIC_ID, 9: UNKNOWN_TOPIC_ID},
            }
            asked = [{"TopicId": each, "PartitionIndexes": [0]} for each in (unknown, T_ID)]
            assert await fetch_by_id(client, asked) == [
                (unknown, 0, -1, UNKNOWN_TOPIC_ID),
                (T_ID, 0, 7, 0),
            ]
            assert await fetch_by_id(client, None) == [(T_ID, 0, 7, 0)]

    between(tmp_path, play)


def codes_of(topic: Any) -> dict[int, int]:
    return {each["PartitionIndex"]: each["ErrorCode"] for each in topic["Partitions"]}


async def fetch_by_id(client: Client, topics: Any) -> Any:
    asked = {"GroupId": "g", "MemberId": None, "MemberEpoch": -1, "Topics": topics}
    said = await ask(client, OFFSET_FETCH, 10, Groups=[asked], RequireStable=True)
    return [
        (topic["TopicId"], each["PartitionIndex"], each["CommittedOffset"], each["ErrorCode"])
        for topic in said["Groups"][0]["Topics"]
        for each in topic["Partitions"]
    ]


def test_a_topic_that_was_created_a_moment_ago_is_known_by_its_id(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        has(broker)
        async with watching(served):
            client = await served.dial()
            has(broker, t=1)
            named = [{"TopicId": T_ID, "Partitions": [PARTITION]}]
            said = await ask(client, OFFSET_COMMIT, 10, **NO_MEMBER, Topics=named)
            assert [codes_of(each) for each in said["Topics"]] == [{0: 0}]

    between(tmp_path, play)


def test_offsets_are_forgotten(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await commit(client, 9)
        asked = [{"Name": "t", "Partitions": [{"PartitionIndex": 0}]}]
        said = await ask(client, OFFSET_DELETE, 0, GroupId="g", Topics=asked)
        assert said["ErrorCode"] == 0
        assert said["Topics"][0]["Partitions"] == [{"PartitionIndex": 0, "ErrorCode": 0}]
        said = await ask(client, OFFSET_DELETE, 0, GroupId="g", Topics=asked)
        assert (said["ErrorCode"], said["Topics"]) == (69, [])

    between(tmp_path, play)


async def fetch_groups(client: Client, *groups: str) -> list[int]:
    """Ask for all offsets of groups, and return the error of each."""
    asked = [{"GroupId": each, "Topics": None} for each in groups]
    said = await ask(client, OFFSET_FETCH, 9, Groups=asked, RequireStable=False)
    assert [each["GroupId"] for each in said["Groups"]] == [*groups]
    return [each["ErrorCode"] for each in said["Groups"]]


def test_a_group_that_is_named_many_times_is_asked_once_and_told_of_each_time(
    tmp_path: Path,
) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await commit(client, 9)
        calls = served.shard.calls
        assert await fetch_groups(client, *("g" for _ in range(5_000)), "h") == [0] * 5_001
        assert served.shard.calls == calls + 2
        asked = [
            {"GroupId": "g", "Topics": [{"Name": "t", "PartitionIndexes": [each]}]}
            for each in (0, 1)
        ]
        said = await ask(client, OFFSET_FETCH, 9, Groups=asked, RequireStable=False)
        told = [each["Topics"][0]["Partitions"][0] for each in said["Groups"]]
        assert [each["CommittedOffset"] for each in told] == [7, -1]

    between(tmp_path, play)


def test_a_group_that_is_to_be_deleted_twice_is_deleted_once(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await commit(client, 9)
        said = await ask(client, DELETE_GROUPS, 2, GroupsNames=["g", "", "g"])
        assert said["Results"] == [
            {"GroupId": "g", "ErrorCode": 0},
            {"GroupId": "", "ErrorCode": 69},
        ]

    between(tmp_path, play)


@pytest.mark.parametrize("version", versions(OFFSET_FETCH))
def test_a_topic_is_told_of_without_partitions_as_it_was_asked_for(
    tmp_path: Path, version: int
) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        topics = [
            {"Name": name, "PartitionIndexes": numbers}
            for name, numbers in (("u", []), ("t", [0]), ("v", []))
        ]
        asked: dict[str, Any] = {"GroupId": "", "Topics": topics}
        fields = {"Groups": [asked], "RequireStable": True} if version >= 8 else asked
        said = await ask(client, OFFSET_FETCH, version, **fields)
        group = said["Groups"][0] if version >= 8 else said
        assert group.get("ErrorCode", 0) == 0
        told = [(each["Name"], len(each["Partitions"])) for each in group["Topics"]]
        assert told == [("u", 0), ("t", 1), ("v", 0)]

    between(tmp_path, play)


@pytest.mark.parametrize("version", [each for each in versions(OFFSET_FETCH) if each < 8])
def test_a_refusal_is_told_for_each_partition_until_an_answer_has_an_error_for_all(
    tmp_path: Path, version: int
) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        topics = [{"Name": "t", "PartitionIndexes": [0, 1]}]
        said = await ask(client, OFFSET_FETCH, version, GroupId="g" * 300, Topics=topics)
        told = [each["ErrorCode"] for topic in said["Topics"] for each in topic["Partitions"]]
        wanted = ([INVALID_GROUP_ID] * 2, None) if version < 2 else ([], INVALID_GROUP_ID)
        assert (told, said.get("ErrorCode")) == wanted

    between(tmp_path, play)


def test_groups_that_do_not_fit_into_an_answer_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups_module, "LONGEST_ANSWER", 1_000)
    monkeypatch.setattr(groups_module, "AT_ONCE", 2)

    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        for partition in range(20):
            await commit(client, 9, partition=partition)
        assert await fetch_groups(client, "a", "g", "b", "c") == [0, 0, LOADING, LOADING]
        assert await fetch_groups(client, "b", "c") == [0, 0]
        assert await fetch_groups(client, "g", "g", "g") == [0, LOADING, LOADING]

    between(tmp_path, play)


def has(broker: Behind, **partitions: int) -> None:
    """Let the broker have topics, each with so many partitions."""
    found = [
        {
            "ErrorCode": 0,
            "Name": name,
            "TopicId": T_ID,
            "IsInternal": False,
            "Partitions": [
                {"ErrorCode": 0, "PartitionIndex": each, "LeaderId": 1} for each in range(count)
            ],
        }
        for name, count in partitions.items()
    ]
    told = {"ThrottleTimeMs": 0, "Brokers": [], "ClusterId": "x", "ControllerId": 1}
    broker.says(METADATA, topics_module.VERSION, {**told, "Topics": found})


@asynccontextmanager
async def watching(served: Served) -> AsyncIterator[None]:
    """Look at the broker's topics meanwhile."""
    watching = asyncio.create_task(served.topics.watch())
    while not served.shard.calls:
        await asyncio.sleep(0.01)
    yield
    watching.cancel()


def test_a_topic_that_is_named_before_the_next_look_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics_module, "REFRESH_SECONDS", 3_600.0)

    async def play(served: Served, broker: Behind) -> None:
        has(broker, t=1)
        async with watching(served):
            client = await served.dial()
            assert await commit(client, 9) == 0
            looks = len(broker.seen)
            has(broker, t=2, u=1)
            assert await commit(client, 9, "u") == await commit(client, 9, "t", 1) == 0
            assert len(broker.seen) == looks + 1
            for _ in range(5):
                assert await commit(client, 9, "v") == UNKNOWN_TOPIC
            assert len(broker.seen) == looks + 2, "what is not there is not looked for again"

    between(tmp_path, play)


def test_few_names_of_what_is_not_there_are_kept_and_none_that_no_topic_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics_module, "REFRESH_SECONDS", 3_600.0)
    monkeypatch.setattr(topics_module, "MOST_MISSING", 10)

    async def play(served: Served, broker: Behind) -> None:
        has(broker, t=1)
        async with watching(served):
            client = await served.dial()
            looks = len(broker.seen)
            for _ in range(3):
                assert await commit(client, 9, "n" * 250) == UNKNOWN_TOPIC
            assert len(broker.seen) == looks
            for at in (0, 1):
                names = [f"n{number}" for number in range(at, 100, 2)]
                topics = [{"Name": each, "Partitions": [PARTITION]} for each in names]
                await ask(client, OFFSET_COMMIT, 9, **NO_MEMBER, Topics=topics)
                assert len(served.topics._missing) == 10

    between(tmp_path, play)


@pytest.mark.parametrize("version", versions(CONSUMER_GROUP_HEARTBEAT))
def test_a_consumer_is_given_partitions_by_the_ids_of_their_topics(
    tmp_path: Path, version: int
) -> None:
    async def play(served: Served, broker: Behind) -> None:
        has(broker, t=3)
        async with watching(served):
            client = await served.dial()
            said = await ask(
                client,
                CONSUMER_GROUP_HEARTBEAT,
                version,
                GroupId="g",
                MemberId="" if version == 0 else "m",
                MemberEpoch=0,
                RebalanceTimeoutMs=20_000,
                SubscribedTopicNames=["t"],
                TopicPartitions=[],
            )
            assert said["ErrorCode"] == 0
            assert said["MemberId"]
            assert said["Assignment"] == {
                "TopicPartitions": [{"TopicId": T_ID, "Partitions": [0, 1, 2]}]
            }

    between(tmp_path, play)


def test_while_the_broker_is_away_nobody_waits_for_a_look(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        has(broker, t=1)
        async with watching(served):
            client = await served.dial()
            broker.answers.clear()
            begun = asyncio.get_running_loop().time()
            assert await commit(client, 9, "new") == UNKNOWN_TOPIC
            assert await commit(client, 9, "new") == UNKNOWN_TOPIC
            assert asyncio.get_running_loop().time() - begun < topics_module.WAIT_SECONDS + 1

    between(tmp_path, play)
