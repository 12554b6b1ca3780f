"""Protocols that `group.protocols.allowed` does not name: nobody joins by them any more."""
# pyright: basic

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.runtime.kafka.broker.responses import rewrite_response
from fairlead.runtime.kafka.wire import connect_messages as wire
from fairlead.runtime.kafka.wire.frames import (
    Head,
    Request,
    item_class,
    make,
    read_response,
    response_class,
    write_request,
)
from fairlead.runtime.kafka.wire.served import (
    API_VERSIONS,
    BY_PROTOCOL,
    CONNECT_HEARTBEAT,
    CONSUMER_GROUP_HEARTBEAT,
    JOIN_GROUP,
)
from fairlead.runtime.kafka.wire.terms import NO_TIME, code
from fairlead_tests.kafka_listener.served import Served, listening
from fairlead_tests.kafka_listener.spoken import ask

UNSUPPORTED_VERSION = 35
JOIN = {
    "GroupId": "g",
    "SessionTimeoutMs": 10_000,
    "RebalanceTimeoutMs": 10_000,
    "MemberId": "",
    "ProtocolType": "consumer",
    "Protocols": [{"Name": "range", "Metadata": "hex:00"}],
}
BEAT = {
    "GroupId": "h",
    "MemberId": "m",
    "MemberEpoch": 0,
    "InstanceId": None,
    "RackId": None,
    "RebalanceTimeoutMs": 10_000,
    "SubscribedTopicNames": [],
    "ServerAssignor": None,
    "TopicPartitions": [],
}


async def errors(served: Served) -> dict[str, int]:
    """Return how the first join by each protocol is answered."""
    client = await served.dial()
    classic = await ask(client, JOIN_GROUP, 3, **{key: JOIN[key] for key in JOIN})
    consumer = await ask(client, CONSUMER_GROUP_HEARTBEAT, 0, **BEAT)
    message = wire.ConnectGroupHeartbeatRequest(
        group_id="c",
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        server_assignor="uniform",
        connectors_and_tasks=wire.NOTHING,
    )
    head = Head(CONNECT_HEARTBEAT, 0, 7)
    answer = read_response(head, await client.asks(write_request(Request(head, "c", message))))
    return {
        "classic": classic["ErrorCode"],
        "consumer": consumer["ErrorCode"],
        "connect": answer.error_code,
    }


@pytest.mark.parametrize("allowed", ["connect", "classic", "consumer"])
def test_the_first_join_by_another_protocol_is_refused(tmp_path: Path, allowed: str) -> None:
    async def play() -> None:
        async with listening(tmp_path, protocols=[allowed]) as served:
            served.shard.groups._set_topics({}, served.shard.now)
            found = await errors(served)
            refused = {name for name, error in found.items() if error == UNSUPPORTED_VERSION}
            assert refused == {"classic", "connect", "consumer"} - {allowed}

    asyncio.run(play())


def test_their_calls_are_not_advertised(tmp_path: Path) -> None:
    async def play() -> None:
        async with listening(tmp_path, protocols=["classic"]) as served:
            hidden: Any = served.listener._groups.hidden_apis
            assert hidden == BY_PROTOCOL["connect"] | BY_PROTOCOL["consumer"]
            kind: Any = response_class(API_VERSIONS, 3)
            item = item_class(kind, "api_keys")
            keys = tuple(
                make(item, api_key=each, min_version=0, max_version=1)
                for each in (JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT)
            )
            message = make(kind, error_code=code(Error.NONE), api_keys=keys, throttle_time=NO_TIME)
            nobody: Any = None
            changed = rewrite_response(API_VERSIONS, message, nobody, nobody, hidden)
            assert [each.api_key for each in changed.api_keys] == [JOIN_GROUP]

    asyncio.run(play())
