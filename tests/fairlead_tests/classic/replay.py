"""Replays recorded conversations against classic groups, and decodes the responses."""
# pyright: basic

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fairlead.actors.messages.classic import (
    ClassicCall,
    ClassicHeartbeat,
    ClassicReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.errors import MEANINGS
from fairlead.events.model import ClassicProtocol
from fairlead_tests.classic.driver import AT_ONCE, ClassicDriver
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import (
    LATE_MS,
    Compared,
    call_of,
    groups_that_speak,
    read_exchanges,
    read_frames,
)

CALLS = {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"}
IDS_FIRST = 4
"""The first version of JoinGroup in which a new member requests its id first."""
SKIPPING = 9
NULLABLE_NAME = 7
LEAVERS = 3


class Replay:
    """The classic groups of one conversation, and the mapping of member ids."""

    def __init__(self, delay_ms: int) -> None:
        self.settings = replace(AT_ONCE, initial_delay_ms=delay_ms)
        self.groups: dict[str, ClassicDriver] = {}
        self.ids: dict[str, str] = {}
        """Our member ids, by the recorded ones."""
        self.asked: dict[Any, tuple[ClassicDriver, int, dict[str, Any]]] = {}
        self._left_out: frozenset[str] = frozenset()
        """The groups with members of KIP-848's protocol."""
        self._earlier: dict[str, int] = {}
        """The number of generations of each group before the recording."""

    def play(self, conversation: Case) -> list[Compared]:
        """Return each recorded response with ours; the id mapping is complete at the end."""
        self._earlier = earlier_generations(conversation)
        self._left_out = groups_that_speak(conversation, {"ConsumerGroupHeartbeat"})
        played = [*self._play(conversation)]
        return [
            Compared(self.asked[call_of(told)][2], told, self.recorded(told["fields"]), ours)
            for told, ours in played
        ]

    def _play(self, conversation: Case) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
        for each in read_frames(conversation):
            if each["api"] not in CALLS:
                continue
            at_ms, key = round(each["t"] * 1_000), call_of(each)
            is_asked = each["direction"] == "request"
            for driver in self.groups.values():
                driver.passes(max(0, at_ms - LATE_MS * is_asked - driver.now_ms))
                driver.now_ms = at_ms
            if is_asked:
                if each["fields"]["GroupId"] not in self._left_out:
                    self._ask(key, each)
            elif key in self.asked:
                yield each, self._answered(key, each)

    def _ask(self, key: Any, told: dict[str, Any]) -> None:
        group_id = told["fields"]["GroupId"]
        if group_id not in self.groups:
            now_ms = round(told["t"] * 1_000)
            driver = ClassicDriver(group_id, self.settings, now_ms)
            self.groups[group_id] = driver
            if before := self._earlier.get(group_id):
                driver.group.group_epoch = before
        driver = self.groups[group_id]
        call = self.request_of(told["api"], told["version"], told["fields"], str(key[0]))
        self.asked[key] = driver, driver.ask(call), told

    def _answered(self, key: Any, told: dict[str, Any]) -> dict[str, Any] | None:
        driver, number, _ = self.asked[key]
        reply = driver.said.get(number)
        if reply is None:
            return None
        if isinstance(reply, JoinGroupReply) and told["fields"]["MemberId"]:
            self.ids.setdefault(told["fields"]["MemberId"], reply.member_id)
        return as_known(spell(reply, told["version"]), told["fields"])

    def request_of(self, api: str, version: int, fields: dict[str, Any], who: str) -> ClassicCall:
        """Return a request with our ids."""
        group_id, instance_id = fields["GroupId"], fields.get("GroupInstanceId")
        member_id = self._id(fields.get("MemberId", ""))
        if api == "JoinGroup":
            protocols = (
                ClassicProtocol(each["Name"], data_of(each["Metadata"]))
                for each in fields["Protocols"]
            )
            session_ms = fields["SessionTimeoutMs"]
            return JoinGroup(
                group_id,
                member_id,
                fields["ProtocolType"],
                tuple(protocols),
                session_ms,
                fields.get("RebalanceTimeoutMs", session_ms),
                instance_id,
                who,
                asks_for_id=version >= IDS_FIRST,
                may_skip_assignment=version >= SKIPPING,
            )
        if api == "SyncGroup":
            given = fields["Assignments"]
            return SyncGroup(
                group_id,
                member_id,
                fields["GenerationId"],
                instance_id,
                fields.get("ProtocolType"),
                fields.get("ProtocolName"),
                {self._id(each["MemberId"]): data_of(each["Assignment"]) for each in given},
            )
        if api == "Heartbeat":
            return ClassicHeartbeat(group_id, member_id, fields["GenerationId"], instance_id)
        leavers = fields.get("Members", [fields])
        return LeaveGroup(
            group_id,
            tuple(
                Leaver(self._id(each["MemberId"]), each.get("GroupInstanceId")) for each in leavers
            ),
        )

    def recorded(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a recorded response with our ids."""
        told = {name: each for name, each in fields.items() if name != "ThrottleTimeMs"}
        for name in {"MemberId", "Leader"} & told.keys():
            told[name] = self._id(told[name])
        if "Members" in told:
            members = [{**each, "MemberId": self._id(each["MemberId"])} for each in told["Members"]]
            told["Members"] = in_order(members)
        return told

    def _id(self, member_id: str) -> str:
        return self.ids.get(member_id, member_id)


def earlier_generations(conversation: Case) -> dict[str, int]:
    """Return the last generation of each group before the recording."""
    found: dict[str, int] = {}
    for asked, told in read_exchanges(conversation):
        if asked["api"] == "JoinGroup" and told["fields"]["ErrorCode"] == 0:
            found.setdefault(asked["fields"]["GroupId"], told["fields"]["GenerationId"] - 1)
    return found


def as_known(ours: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of our response that the recorded version has."""
    known = {name: each for name, each in ours.items() if name in told}
    fields = {name for each in told.get("Members", ()) for name in each}
    if fields and "Members" in known:
        known["Members"] = [
            {name: value for name, value in each.items() if name in fields}
            for each in known["Members"]
        ]
    return known


def in_order(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return sorted members: a broker has the order of a hash map."""
    return sorted(members, key=lambda each: (each["MemberId"], each.get("GroupInstanceId") or ""))


def data_of(told: str) -> bytes:
    """Decode the text of bytes."""
    return bytes.fromhex(told.removeprefix("hex:"))


def spell(reply: ClassicReply, version: int) -> dict[str, Any]:
    """Return a response with Kafka's field names; a version may have fewer fields."""
    told: dict[str, Any] = {"ErrorCode": MEANINGS[reply.error].code}
    if isinstance(reply, JoinGroupReply):
        told |= {
            "GenerationId": reply.generation,
            "ProtocolType": reply.protocol_type,
            "ProtocolName": reply.protocol if version >= NULLABLE_NAME else reply.protocol or "",
            "Leader": reply.leader,
            "SkipAssignment": reply.skips_assignment,
            "MemberId": reply.member_id,
            "Members": in_order(
                [
                    {
                        "MemberId": each.member_id,
                        "GroupInstanceId": each.instance_id,
                        "Metadata": f"hex:{each.metadata.hex()}",
                    }
                    for each in reply.members
                ]
            ),
        }
    elif isinstance(reply, SyncGroupReply):
        told |= {
            "ProtocolType": reply.protocol_type,
            "ProtocolName": reply.protocol,
            "Assignment": f"hex:{reply.assignment.hex()}",
        }
    elif isinstance(reply, LeaveGroupReply) and version >= LEAVERS:
        told["Members"] = in_order(
            [
                {
                    "MemberId": each.member_id,
                    "GroupInstanceId": each.instance_id,
                    "ErrorCode": MEANINGS[each.error].code,
                }
                for each in reply.leavers
            ]
        )
    elif isinstance(reply, LeaveGroupReply):
        told["ErrorCode"] = MEANINGS[reply.leavers[0].error].code
    return told
