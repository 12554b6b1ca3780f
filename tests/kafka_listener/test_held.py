"""A held heartbeat keeps nobody waiting: what comes after it on its connection has it answered."""
# pyright: basic

import asyncio
from pathlib import Path

from fairlead.actors.shards.hosting import HostedGroups
from fairlead.runtime.kafka.wire.served import HEARTBEAT, JOIN_GROUP, OFFSET_FETCH, SYNC_GROUP
from fairlead_tests.kafka_listener.served import SECONDS, Client, Served, listening
from fairlead_tests.kafka_listener.spoken import ask, asking, told


async def joined(client: Client) -> str:
    """Join with one member that leads, and return its id."""
    said = await ask(
        client,
        JOIN_GROUP,
        3,
        GroupId="g",
        SessionTimeoutMs=10_000,
        RebalanceTimeoutMs=20_000,
        MemberId="",
        ProtocolType="game",
        Protocols=[{"Name": "chess", "Metadata": "hex:00"}],
    )
    member_id = str(said["MemberId"])
    fields = {"GroupId": "g", "GenerationId": 1, "MemberId": member_id, "Assignments": []}
    named = {"ProtocolType": "game", "ProtocolName": "chess"}
    assert (await ask(client, SYNC_GROUP, 5, **fields, **named))["ErrorCode"] == 0
    return member_id


async def held(served: Served, client: Client) -> None:
    """Have a heartbeat sent that is not answered."""
    fields = {"GroupId": "g", "GenerationId": 1, "MemberId": await joined(client)}
    beat = asking(HEARTBEAT, 4, fields)
    assert told(HEARTBEAT, 4, await client.asks(beat))["ErrorCode"] == 0
    served.shard.pass_to(1_000)
    calls = served.shard.calls
    await client.send(beat)
    while served.shard.calls == calls:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)


def test_a_request_behind_a_held_heartbeat_has_it_answered_first(tmp_path: Path) -> None:
    async def play() -> None:
        async with listening(tmp_path, kind=HostedGroups) as served:
            client = await served.dial()
            await held(served, client)
            await client.send(asking(OFFSET_FETCH, 5, {"GroupId": "g", "Topics": []}))
            assert told(HEARTBEAT, 4, await client.receive())["ErrorCode"] == 0
            assert told(OFFSET_FETCH, 5, await client.receive())["ErrorCode"] == 0

    asyncio.run(play())


def test_a_part_of_a_request_behind_a_held_heartbeat_has_it_answered_as_well(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        async with listening(tmp_path, kind=HostedGroups) as served:
            client = await served.dial()
            await held(served, client)
            frame = asking(OFFSET_FETCH, 5, {"GroupId": "g", "Topics": []})
            client.writer.write(len(frame).to_bytes(4) + frame[:3])
            assert told(HEARTBEAT, 4, await client.receive())["ErrorCode"] == 0
            client.writer.write(frame[3:])
            assert told(OFFSET_FETCH, 5, await client.receive())["ErrorCode"] == 0

    asyncio.run(play())


def test_a_client_that_hangs_up_while_its_heartbeat_is_held_is_let_go(tmp_path: Path) -> None:
    async def play() -> None:
        async with listening(tmp_path, kind=HostedGroups) as served:
            client = await served.dial()
            await held(served, client)
            client.writer.close()
            async with asyncio.timeout(SECONDS):
                while served.listener._connections:
                    await asyncio.sleep(0.001)

    asyncio.run(play())
