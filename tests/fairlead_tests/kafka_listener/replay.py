"""Replays recorded conversations over sockets against the listener, for a field-wise comparison."""
# pyright: basic

import asyncio
from typing import Any

from fairlead.actors.messages.members import LEAVE_EPOCH
from fairlead.runtime.kafka.wire.served import SERVED
from fairlead_tests.classic.replay import in_order
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import (
    LATE_MS,
    Compared,
    call_of,
    read_frames,
)
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
EPOCHS = {
    "AssignmentEpoch",
    "GenerationId",
    "GenerationIdOrMemberEpoch",
    "GroupEpoch",
    "MemberEpoch",
}


class WireReplay:
    """One conversation, its connections, and how member ids and epochs are called here."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._clients: dict[Any, Client] = {}
        self._ids: dict[str, str] = {}
        """Our member ids, by the recorded ones."""
        self.epochs = Epochs()

    async def play(self, conversation: Case) -> list[Compared]:
        """Return each recorded response to a group request with ours."""
        asked: dict[Any, dict[str, Any]] = {}
        found: list[tuple[dict[str, Any], Any, Any]] = []
        for each in read_frames(conversation):
            first, last = SERVED.get(each["api_key"], (0, -1))
            if not first <= each["version"] <= last:
                continue
            at_ms = round(each["t"] * 1_000)
            is_asked = each["direction"] == "request"
            self._served.shard.pass_to(at_ms - LATE_MS * is_asked)
            self._served.shard.now_ms = at_ms
            if is_asked:
                asked[call_of(each)] = each
                await self._send(each)
            else:
                ours = await self._answer(each)
                request = asked[call_of(each)]
                if ours is not None:
                    self.epochs.learn(request, each["fields"], ours)
                group_id = request["fields"].get("GroupId")
                found.append((each, self.epochs.ours(each["fields"], group_id), ours))
        return [
            Compared(
                asked[call_of(told)],
                told,
                _sorted(self._with_our_ids(theirs)),
                ours and _sorted(ours),
            )
            for told, theirs, ours in found
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
        frame = write_frame(
            Frame(header, build(kind, self._with_our_ids(self.epochs.ours(told["fields"]))))
        )
        before, client = self._served.shard.calls, await self._client(told["connection"])
        await client.send(frame)
        for _ in range(2_000):
            if self._served.shard.calls > before or client.reader.at_eof():
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


class Epochs:
    """By how much our epochs of a group are greater than the recorded ones.

    A group that is taken over while it is empty counts from 1 again at a broker. Here no epoch goes
    back.
    """

    def __init__(self) -> None:
        self._greatest: dict[str, int] = {}
        """The greatest recorded epoch of a group."""
        self._ahead: dict[str, int] = {}
        self.anew: set[str] = set()
        """The groups that were emptied and taken over."""
        self._members: dict[str, set[str]] = {}

    def learn(self, asked: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> None:
        """Take note of a member that joins or leaves."""
        fields, api = asked["fields"], asked["api"]
        members = self._members.setdefault(fields.get("GroupId", ""), set())
        if api == "LeaveGroup":
            members -= {each["MemberId"] for each in fields.get("Members", [fields])}
        elif api in {"JoinGroup", "ConsumerGroupHeartbeat"} and theirs["ErrorCode"] == 0:
            if (epoch := fields.get("MemberEpoch", 0)) < 0:
                members -= {theirs["MemberId"]} if epoch == LEAVE_EPOCH else set()
                return
            name = "GenerationId" if api == "JoinGroup" else "MemberEpoch"
            if not members:
                self._begin(fields["GroupId"], theirs[name], ours.get(name, 0))
            known = self._greatest.get(fields["GroupId"], 0)
            self._greatest[fields["GroupId"]] = max(known, theirs[name])
            members.add(theirs["MemberId"])

    def _begin(self, group_id: str, theirs: int, ours: int) -> None:
        """Take note of where a group begins whose first member has joined."""
        if theirs <= self._greatest.get(group_id, 0):
            self.anew.add(group_id)
            self._ahead[group_id] = max(ours - theirs, 0)

    def ours(self, fields: Any, group_id: str | None = None) -> Any:
        """Return a recorded message of a group with our epochs."""
        if isinstance(fields, list):
            return [self.ours(each, group_id) for each in fields]
        if not isinstance(fields, dict):
            return fields
        group_id = fields.get("GroupId", group_id)
        ahead = self._ahead.get(group_id or "", 0)
        return {
            name: each + ahead
            if name in EPOCHS and isinstance(each, int) and each > 0
            else self.ours(each, group_id)
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
