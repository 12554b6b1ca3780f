"""On real processes: what ends comes back by itself, and groups go on where they were."""

import asyncio
from typing import Any

import pytest

from fairlead.runtime.kafka.wire.served import HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from fairlead_tests.conformance.frames import (
    Frame,
    build,
    message_class,
    read_frame,
    spell,
    write_frame,
)
from fairlead_tests.kafka_listener.node import ListenerNode
from fairlead_tests.kafka_listener.served import Client

AGAIN = {14, 15, 16}
"""Errors by which a coordinator has its clients ask again."""


class Member:
    """A member that dials anew whenever it has to."""

    def __init__(self, node: ListenerNode, group_id: str) -> None:
        self._node, self._group_id = node, group_id
        self._client: Client | None = None
        self.member_id, self.generation = "", -1

    async def asks(self, api: int, version: int, **fields: Any) -> dict[str, Any]:
        kind = message_class("request", api, version)
        header = kind.__header_schema__(
            request_api_key=api, request_api_version=version, correlation_id=1, client_id="c"
        )
        fields |= {"GroupId": self._group_id, "MemberId": self.member_id}
        frame = write_frame(Frame(header, build(kind, fields)))
        while True:
            try:
                if self._client is None:
                    dialled = await asyncio.open_connection("127.0.0.1", self._node.port)
                    self._client = Client(*dialled)
                answer = await self._client.asks(frame)
                if answer:
                    said = spell(
                        read_frame(answer, message_class("response", api, version)).message
                    )
                    if said["ErrorCode"] not in AGAIN:
                        return dict(said)
                else:
                    self.goes()
            except OSError:
                self.goes()
            await asyncio.sleep(0.02)

    async def joins(self) -> int:
        """Join, with an id of its own, and return the error."""
        while True:
            said = await self.asks(
                JOIN_GROUP,
                9,
                SessionTimeoutMs=10_000,
                RebalanceTimeoutMs=20_000,
                ProtocolType="game",
                Protocols=[{"Name": "chess", "Metadata": "hex:00"}],
            )
            error, self.generation = said["ErrorCode"], said["GenerationId"]
            self.member_id = "" if error == 25 else said["MemberId"]
            if error not in {25, 79}:
                return int(error)

    async def syncs(self) -> dict[str, Any]:
        """Bring, or ask for, what is assigned."""
        told = [{"MemberId": self.member_id, "Assignment": "hex:01"}]
        return await self.asks(
            SYNC_GROUP,
            5,
            GenerationId=self.generation,
            ProtocolType="game",
            ProtocolName="chess",
            Assignments=told,
        )

    async def beats(self) -> int:
        """Say that it lives, and return the error."""
        return int((await self.asks(HEARTBEAT, 4, GenerationId=self.generation))["ErrorCode"])

    def goes(self) -> None:
        """Hang up."""
        if self._client is not None:
            self._client.writer.transport.abort()
            self._client = None


@pytest.mark.cluster
def test_groups_outlive_the_listener_and_their_own_process(listener: ListenerNode) -> None:
    async def play() -> None:
        first, second = Member(listener, "g"), Member(listener, "g")
        assert (await first.joins(), (await first.syncs())["Assignment"]) == (0, "hex:01")
        listener.kill("fairlead: kafka")
        assert await first.beats() == 0
        listener.kill("fairlead: shard")
        assert await first.beats() == 0
        joining = asyncio.create_task(second.joins())
        while await first.beats() != 27:
            await asyncio.sleep(0.01)
        listener.kill("fairlead: shard")  # in the middle of a join
        while not joining.done():
            if await first.beats() == 27:
                assert await first.joins() == 0
            await asyncio.sleep(0.05)
        assert await joining == 0
        generations = listener.generations("g")
        assert generations == sorted(generations)
        assert max(first.generation, second.generation) == generations[-1] > 1
        for each in (first, second):
            each.goes()
        await asyncio.sleep(0.01)  # transports hear of their ends

    asyncio.run(play())
