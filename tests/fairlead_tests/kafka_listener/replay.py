"""Replays recorded conversations over sockets against the listener, for a field-wise comparison."""
# pyright: basic

import asyncio
from typing import Any, NamedTuple

from fairlead.runtime.kafka.wire.served import SERVED
from fairlead_tests.classic.replay import in_order
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import read_frames
from fairlead_tests.conformance.frames import (
    Frame,
    build,
    message_class,
    read_frame,
    spell,
    write_frame,
)
from fairlead_tests.kafka_listener.served import Client, Served

MEMBER_IDS = {"MemberId", "Leader"}


class Compared(NamedTuple):
    """A recorded response with our ids, and ours; None: the connection was closed."""

    told: dict[str, Any]
    theirs: Any
    ours: Any


class WireReplay:
    """One conversation, its connections, and the mapping of member ids."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._clients: dict[Any, Client] = {}
        self._ids: dict[str, str] = {}
        """Our member ids, by the recorded ones."""

    async def play(self, conversation: Case) -> list[Compared]:
        """Return each recorded response to a group request with ours."""
        found: list[tuple[dict[str, Any], Any]] = []
        for each in read_frames(conversation):
            first, last = SERVED.get(each["api_key"], (0, -1))
            if not first <= each["version"] <= last:
                continue
            self._served.line.pass_to(round(each["t"] * 1_000))
            if each["direction"] == "request":
                await self._send(each)
            else:
                found.append((each, await self._answer(each)))
        return [
            Compared(told, _sorted(self._with_our_ids(told["fields"])), ours and _sorted(ours))
            for told, ours in found
        ]

    async def _client(self, name: Any) -> Client:
        if name not in self._clients:
            self._clients[name] = await self._served.dial()
        return self._clients[name]

    async def _send(self, told: dict[str, Any]) -> None:
        """Send a request, encoded with our ids, and wait until it is handled."""
        recorded = bytes.fromhex(told["hex"])
        kind = message_class("request", told["api_key"], told["version"])
        header = read_frame(recorded, kind).header
        frame = write_frame(Frame(header, build(kind, self._with_our_ids(told["fields"]))))
        before, client = self._served.line.calls, await self._client(told["connection"])
        await client.send(frame)
        for _ in range(2_000):
            if self._served.line.calls > before or client.reader.at_eof():
                return
            await asyncio.sleep(0.001)

    async def _answer(self, told: dict[str, Any]) -> Any:
        client = await self._client(told["connection"])
        frame = await client.receive()
        if not frame:
            return None
        kind = message_class("response", told["api_key"], told["version"])
        read = read_frame(frame, kind)
        assert read.header.correlation_id == told["correlation"]
        ours = spell(read.message)
        self._learn(told["fields"], ours)
        return ours

    def _learn(self, theirs: Any, ours: Any) -> None:
        if theirs.get("MemberId") and ours.get("MemberId"):
            self._ids.setdefault(theirs["MemberId"], ours["MemberId"])

    def _with_our_ids(self, fields: Any) -> Any:
        if isinstance(fields, list):
            return [self._with_our_ids(each) for each in fields]
        if not isinstance(fields, dict):
            return fields
        return {
            name: self._ids.get(each, each)
            if name in MEMBER_IDS and isinstance(each, str)
            else self._with_our_ids(each)
            for name, each in fields.items()
        }


def _sorted(fields: Any) -> Any:
    """Return fields with sorted members: a broker has the order of a hash map."""
    told = dict(fields)
    if "Members" in told:
        told["Members"] = in_order(told["Members"])
    for group in told.get("Groups", ()):
        if isinstance(group, dict) and "Members" in group:
            group["Members"] = in_order(group["Members"])
    return told
