"""The proposals' three calls on Kafka's wire: their bytes, and what the workers' group answers."""
# pyright: basic

import asyncio
import io
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from fairlead.actors.classic.bytes.connect import decode_assignment
from fairlead.actors.messages.computing import Install
from fairlead.actors.messages.groups import ConnectCall
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.model import Resource
from fairlead.runtime.kafka.wire import connect_messages as wire
from fairlead.runtime.kafka.wire.bounds import FrameRefused
from fairlead.runtime.kafka.wire.calls.dispatch import calls_of
from fairlead.runtime.kafka.wire.frames import (
    Head,
    Request,
    read_head,
    read_request,
    read_response,
    write_request,
)
from fairlead.runtime.kafka.wire.served import (
    CONNECT_HEARTBEAT,
    CONNECT_INSTALL,
    CONNECT_PREPARE,
    DESCRIBE_GROUPS,
    JOIN_GROUP,
    LIST_GROUPS,
)
from fairlead_tests.kafka_listener.served import Client, Served, listening
from fairlead_tests.kafka_listener.spoken import ask as ask_kafka

NUMBER = 7
ASSIGNOR = wire.Assignor(
    name="mine", minimum_version=0, maximum_version=0, reason=0, version=0, metadata=b""
)
A_AND_TASKS = wire.ConnectorsAndTasks(
    connectors=("A",), tasks=(wire.ConnectorTasks(connector="A", tasks=(0, 1)),)
)
BEAT = wire.ConnectGroupHeartbeatRequest(
    group_id="g",
    member_id="w1",
    member_epoch=3,
    connectors_and_tasks=A_AND_TASKS,
    incarnation="i1",
    sequence=7,
)
BEAT_BYTES = bytes.fromhex(
    "02 67 03 7731 00000003 00 ffffffff 00 00 01 02 02 41 02 02 41 03 00000000 00000001 00 00"
    "02 01 03 03 6931 02 08 0000000000000007"
)
ANSWER = wire.ConnectGroupHeartbeatResponse(
    error_code=0,
    member_epoch=0,
    heartbeat_interval_ms=0,
    assignment=wire.AssignedWork(connectors_and_tasks=wire.NOTHING),
    log_offset=55,
)
ANSWER_BYTES = bytes.fromhex(
    "00000000 0000 00 00000000 00000000 01 00 01 01 00 0000 01 00 01 03 08 0000000000000037"
)
INSTALL = wire.ConnectGroupInstallAssignmentRequest(
    group_id="g",
    member_id="w1",
    member_epoch=3,
    group_epoch=4,
    members=(wire.InstalledMember(member_id="w1", connectors_and_tasks=A_AND_TASKS),),
    parked=(wire.Deadline(deadline_ms=9, connectors_and_tasks=A_AND_TASKS),),
    unplaceable=(wire.Unplaceable(reason="why", connectors_and_tasks=A_AND_TASKS),),
)


def write(message: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


@pytest.mark.parametrize(
    ("message", "data", "size"), [(BEAT, BEAT_BYTES, 50), (ANSWER, ANSWER_BYTES, 35)]
)
def test_bytes_are_those_of_the_schemas(message: Any, data: bytes, size: int) -> None:
    assert len(data) == size
    assert write(message) == data
    assert entity_reader(type(message))(data, 0) == (message, size)


def framed(api: int, message: Any) -> bytes:
    return write_request(Request(Head(api, 0, NUMBER), "c", message))


def asked_by(frame: bytes) -> object:
    (call,) = calls_of(read_request(read_head(frame), frame), "/127.0.0.1")
    assert isinstance(call, ConnectCall)
    return call.request


def test_a_heartbeat_says_what_a_worker_says() -> None:
    frame = framed(CONNECT_HEARTBEAT, BEAT)
    owned = (Resource("A"), Resource("A", 0), Resource("A", 1))
    assert asked_by(frame) == Heartbeat("g", "w1", 3, "i1", 7, owned=owned)


FRAMES = [
    framed(CONNECT_HEARTBEAT, replace(BEAT, client_assignors=(ASSIGNOR,), url="http://w1/")),
    framed(CONNECT_PREPARE, wire.ConnectGroupPrepareAssignmentRequest(
        group_id="g", member_id="w1", member_epoch=3
    )),
    framed(CONNECT_INSTALL, INSTALL),
]  # fmt: skip


@given(st.sampled_from(FRAMES), st.data())
def test_bytes_that_are_no_request_are_refused_and_nothing_else_happens(
    frame: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(8, len(frame)))
    cut = data.draw(st.integers(0, 4))
    other = frame[:at] + data.draw(st.binary(max_size=6) | st.just(b"\0")) + frame[at + cut :]
    with suppress(FrameRefused):
        asked_by(other)


class Spoken:
    """A client that speaks the three calls."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def asks(self, api: int, message: Any) -> Any:
        answer = await self._client.asks(framed(api, message))
        assert answer, "the connection was closed"
        return read_response(Head(api, 0, NUMBER), answer)

    async def beats(self, epoch: int = 0, member_id: str = "m1", **told: Any) -> Any:
        said: dict[str, Any] = {"group_id": "connect", "connectors_and_tasks": wire.NOTHING}
        if epoch == 0:
            said |= {"rebalance_timeout_ms": 60_000, "client_assignors": (ASSIGNOR,)}
        message = wire.ConnectGroupHeartbeatRequest(
            member_id=member_id, member_epoch=epoch, **{**said, **told}
        )
        return await self.asks(CONNECT_HEARTBEAT, message)

    async def prepares(self, epoch: int, member_id: str = "m1") -> Any:
        message = wire.ConnectGroupPrepareAssignmentRequest(
            group_id="connect", member_id=member_id, member_epoch=epoch
        )
        return await self.asks(CONNECT_PREPARE, message)

    async def installs(self, epoch: int, group_epoch: int, **shares: Any) -> Any:
        message = wire.ConnectGroupInstallAssignmentRequest(
            group_id="connect",
            member_id="m1",
            member_epoch=epoch,
            group_epoch=group_epoch,
            members=tuple(
                wire.InstalledMember(member_id=each, connectors_and_tasks=share)
                for each, share in shares.items()
            ),
        )
        return await self.asks(CONNECT_INSTALL, message)


def speaking(folder: Path, play: Callable[[Spoken, Served], Awaitable[Any]]) -> None:
    """Play against a listener whose workers' group has the connector A."""

    async def run() -> None:
        async with listening(folder) as served:
            served.workers.configure("A")
            await play(Spoken(await served.dial()), served)

    asyncio.run(run())


def test_a_member_joins_computes_is_given_work_and_leaves(tmp_path: Path) -> None:
    a = wire.ConnectorsAndTasks(connectors=("A",))

    async def play(spoken: Spoken, served: Served) -> None:
        joined = await spoken.beats(incarnation="i", sequence=1, coordinator_epoch=7)
        assert (joined.error_code, joined.member_epoch) == (20_000, 0), "COMPUTE_ASSIGNMENT"
        assert (joined.member_id, joined.incarnation, joined.sequence) == ("m1", "i", 1)
        assert (joined.heartbeat_interval_ms, joined.session_timeout_ms) == (3_000, 10_000)
        told = await spoken.prepares(0)
        assert (told.error_code, told.group_epoch, told.assignor_name) == (0, 1, "mine")
        assert told.configured == a
        assert [each.member_id for each in told.members] == ["m1"]
        assert (await spoken.installs(0, 1, m1=a)).error_code == 0
        who = {"incarnation": "i", "coordinator_epoch": joined.coordinator_epoch}
        granted = await spoken.beats(0, **who, sequence=2)
        assert (granted.error_code, granted.member_epoch) == (0, 1)
        assert granted.assignment.connectors_and_tasks == a
        left = await spoken.beats(-1, **who, sequence=3)
        assert (left.error_code, left.member_epoch) == (0, -1)
        assert served.workers.group.members == {}

    speaking(tmp_path, play)


def test_a_join_makes_a_connect_group_of_any_id(tmp_path: Path) -> None:
    async def play(spoken: Spoken, served: Served) -> None:
        told: dict[str, Any] = {"client_assignors": None, "server_assignor": "uniform"}
        told |= {"configured": A_AND_TASKS, "config_offset": 3}
        joined = await spoken.beats(group_id="crew", **told)
        assert (joined.error_code, joined.member_epoch, joined.config_offset) == (0, 1, 3)
        assert joined.assignment.connectors_and_tasks == A_AND_TASKS
        assert served.workers.group.members == {}
        late = await spoken.beats(-1, group_id="crew")
        assert (late.error_code, late.member_epoch) == (0, -1)

    speaking(tmp_path, play)


def test_the_group_names_a_member_that_has_no_id(tmp_path: Path) -> None:
    async def play(spoken: Spoken, _: Served) -> None:
        assert (await spoken.beats(member_id="")).member_id == "made-here"

    speaking(tmp_path, play)


TASK_BELOW = wire.ConnectorsAndTasks(tasks=(wire.ConnectorTasks(connector="A", tasks=(-1,)),))
TWICE = wire.ConnectorsAndTasks(connectors=("A", "A"))
LARGE = replace(ASSIGNOR, metadata=b"x" * 65_537)
REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "what another group is to run": (42, {"configured": A_AND_TASKS, "config_offset": 1}),
    "a group id without end": (42, {"group_id": "\U0001f600" * 200_000}),
    "no group": (42, {"group_id": ""}),
    "an unknown member": (25, {"epoch": 4}),
    "no assignor": (42, {"client_assignors": ()}),
    "no rebalance timeout": (42, {"rebalance_timeout_ms": 0}),
    "both kinds of assignors": (42, {"server_assignor": "uniform"}),
    "an unknown server assignor": (112, {"server_assignor": "no", "client_assignors": None}),
    "a join that owns something": (42, {"connectors_and_tasks": A_AND_TASKS}),
    "a join that owns a task below 0": (42, {"connectors_and_tasks": TASK_BELOW}),
    "an empty rack": (42, {"rack_id": ""}),
    "a url without end": (42, {"url": "h" * 1_025}),
    "metadata without end": (42, {"client_assignors": (LARGE,)}),
    "a member id without end": (42, {"member_id": "m" * 201}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_heartbeat_is_refused_and_changes_nothing(tmp_path: Path, name: str) -> None:
    error, told = REFUSED[name]

    async def play(spoken: Spoken, served: Served) -> None:
        answer = await spoken.beats(**told)
        assert answer.error_code == error
        assert 0 < len(answer.error_message) < 1_000
        assert served.workers.group.members == {}

    speaking(tmp_path, play)


def test_what_a_member_owns_is_refused_if_it_is_none(tmp_path: Path) -> None:
    async def play(spoken: Spoken, _: Served) -> None:
        await spoken.beats()
        for owned in (TASK_BELOW, TWICE):
            assert (await spoken.beats(1, connectors_and_tasks=owned)).error_code == 42
        assert (await spoken.beats(9)).error_code == 110, "FENCED_MEMBER_EPOCH"
        again = await spoken.beats(incarnation="another", coordinator_epoch=7)
        assert again.error_code == 111, "UNRELEASED_INSTANCE_ID"

    speaking(tmp_path, play)


def test_who_is_not_asked_to_compute_hands_nothing_in(tmp_path: Path) -> None:
    async def play(spoken: Spoken, _: Served) -> None:
        await spoken.beats()
        await spoken.beats(member_id="m2")
        assert (await spoken.prepares(0, "m2")).error_code == 25
        assert (await spoken.prepares(0, "m3")).error_code == 25
        assert (await spoken.prepares(5)).error_code == 110
        assert (await spoken.installs(0, 1)).error_code == 25, "there is no snapshot yet"
        told = await spoken.prepares(0)
        unknown = wire.ConnectorsAndTasks(connectors=("B",))
        answer = await spoken.installs(0, told.group_epoch, m1=unknown)
        assert answer.error_code == 20_001, "INVALID_ASSIGNMENT"
        assert "B is not configured" in answer.error_message

    speaking(tmp_path, play)


def test_a_member_defers_moves_and_names_the_snapshot_that_it_computed_from(
    tmp_path: Path,
) -> None:
    a = wire.ConnectorsAndTasks(connectors=("A",))

    async def play(spoken: Spoken, served: Served) -> None:
        await spoken.beats()
        told = await spoken.prepares(0)
        assert told.snapshot_id
        again_at_ms = told.now_ms + 60_000
        install = wire.ConnectGroupInstallAssignmentRequest(
            group_id="connect",
            member_id="m1",
            member_epoch=0,
            group_epoch=told.group_epoch,
            members=(wire.InstalledMember(member_id="m1", connectors_and_tasks=a),),
            again_at_ms=again_at_ms,
            snapshot_id="another",
        )
        refused = await spoken.asks(CONNECT_INSTALL, install)
        assert refused.error_code == 25, "UNKNOWN_MEMBER_ID: drop this computation"
        done = await spoken.asks(CONNECT_INSTALL, replace(install, snapshot_id=told.snapshot_id))
        assert (done.error_code, done.throttle_time_ms, told.throttle_time_ms) == (0, 0, 0)
        assert served.workers.group.schedule.again_at_ms == again_at_ms

    speaking(tmp_path, play)


def test_a_failed_computation_says_so() -> None:
    frame = framed(CONNECT_INSTALL, replace(INSTALL, error=3))
    asked = asked_by(frame)
    assert isinstance(asked, Install)
    assert asked.assignment is None
    assert "code 3" in asked.error


def test_classic_clients_hear_that_the_group_is_of_another_type(tmp_path: Path) -> None:
    async def play(_: Spoken, served: Served) -> None:
        fields = {
            "GroupId": "connect",
            "SessionTimeoutMs": 10_000,
            "RebalanceTimeoutMs": 10_000,
            "MemberId": "",
            "ProtocolType": "connect",
            "Protocols": [{"Name": "default", "Metadata": "hex:00"}],
        }
        answer = await ask_kafka(await served.dial(), JOIN_GROUP, 5, **fields)
        assert answer["ErrorCode"] == 23, "INCONSISTENT_GROUP_PROTOCOL"

    speaking(tmp_path, play)


def test_tools_list_and_describe_the_workers_group(tmp_path: Path) -> None:
    async def play(spoken: Spoken, served: Served) -> None:
        client = await served.dial()
        joined = await spoken.beats(
            client_assignors=None, server_assignor="uniform", url="http://m1/"
        )
        assert joined.error_code == 0
        answer = await ask_kafka(client, LIST_GROUPS, 5, StatesFilter=[], TypesFilter=[])
        (listed,) = answer["Groups"]
        assert (listed["GroupId"], listed["ProtocolType"]) == ("connect", "connect")
        assert (listed["GroupState"], listed["GroupType"]) == ("Stable", "connect")
        asked = {"Groups": ["connect"], "IncludeAuthorizedOperations": False}
        answer = await ask_kafka(client, DESCRIBE_GROUPS, 6, **asked)
        (described,) = answer["Groups"]
        assert (described["ErrorCode"], described["GroupState"]) == (0, "Stable")
        assert (described["ProtocolType"], described["ProtocolData"]) == ("connect", "sessioned")
        (member,) = described["Members"]
        assert member["MemberId"] == "m1"
        data = bytes.fromhex(member["MemberAssignment"].removeprefix("hex:"))
        assert decode_assignment(data, 2).assigned == (Resource("A"),)

    speaking(tmp_path, play)
