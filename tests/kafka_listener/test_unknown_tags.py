"""Tagged fields that are not known are passed over: newer clients may send them (KIP-482)."""
# pyright: basic

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from fairlead.runtime.kafka.wire import connect_messages as wire
from fairlead.runtime.kafka.wire.bounds import FrameRefused
from fairlead.runtime.kafka.wire.frames import (
    Head,
    Request,
    item_class,
    make,
    read_head,
    read_request,
    read_response,
    request_class,
    response_class,
    write_request,
    write_response,
)
from fairlead.runtime.kafka.wire.served import (
    API_VERSIONS,
    CONNECT_HEARTBEAT,
    CONNECT_INSTALL,
    CONNECT_PREPARE,
    CONSUMER_GROUP_HEARTBEAT,
    JOIN_GROUP,
)

WORK = wire.ConnectorsAndTasks(
    connectors=("A",), tasks=(wire.ConnectorTasks(connector="A", tasks=(0, 1)),)
)
WHO: dict[str, Any] = {"group_id": "g", "member_id": "w1", "member_epoch": 3}
BEAT = wire.ConnectGroupHeartbeatRequest(
    **WHO, connectors_and_tasks=WORK, incarnation="i1", sequence=7
)
INSTALL = wire.ConnectGroupInstallAssignmentRequest(
    **WHO,
    group_epoch=4,
    members=(wire.InstalledMember(member_id="w1", connectors_and_tasks=WORK, metadata=b"x"),),
    parked=(wire.Deadline(deadline_ms=9, connectors_and_tasks=WORK),),
    unplaceable=(wire.Unplaceable(reason="why", connectors_and_tasks=WORK),),
)
UNKNOWN = bytes.fromhex("01 ac02 03 616263")
"""One tagged field, 300, of three bytes."""


def of_kafka(api: int, version: int) -> Any:
    kind, second = request_class(api, version), timedelta(seconds=1)
    told: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 1}
    if api == JOIN_GROUP:
        offered = make(item_class(kind, "protocols"), name="range", metadata=b"x")
        told |= {"session_timeout": second, "protocol_type": "consumer", "protocols": (offered,)}
    else:
        told |= {"server_assignor": None, "topic_partitions": None, "instance_id": None}
        told |= {"subscribed_topic_names": ("t",), "subscribed_topic_regex": None, "rack_id": None}
    return make(kind, **told, rebalance_timeout=second)


MESSAGES: dict[str, tuple[int, int, Any]] = {
    "a heartbeat": (CONNECT_HEARTBEAT, 0, BEAT),
    "a heartbeat without work": (CONNECT_HEARTBEAT, 0, replace(BEAT, connectors_and_tasks=None)),
    "prepare": (CONNECT_PREPARE, 0, wire.ConnectGroupPrepareAssignmentRequest(**WHO)),
    "install": (CONNECT_INSTALL, 0, INSTALL),
    "a heartbeat of a consumer": (CONSUMER_GROUP_HEARTBEAT, 1, of_kafka(68, 1)),
    "a join": (JOIN_GROUP, 9, of_kafka(JOIN_GROUP, 9)),
}


def framed(api: int, version: int, message: Any) -> bytes:
    return write_request(Request(Head(api, version, 1), "c", message))


def read(frame: bytes) -> Request:
    return read_request(read_head(frame), frame)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_request_is_read_without_the_tags_that_are_not_known(name: str) -> None:
    frame = framed(*MESSAGES[name])
    header, message = frame[:11], frame[12:]  # between them: no tags
    newer = header + UNKNOWN + message
    assert read(newer) == read(frame), "in the header"
    if name in {"a heartbeat of a consumer", "a join", "prepare"}:
        assert read(frame[:-1] + UNKNOWN) == read(frame)


def test_tags_that_are_not_known_stand_beside_those_that_are_and_in_structures() -> None:
    frame = framed(CONNECT_HEARTBEAT, 0, BEAT)
    tasks, tags = bytes.fromhex("00000000 00000001 00 00"), bytes.fromhex("02 01 03 036931")
    assert frame.count(tasks + tags) == 1
    newer_tasks = tasks[:-2] + UNKNOWN + UNKNOWN
    newer = frame.replace(tasks + tags, newer_tasks + b"\x03" + tags[1:]) + UNKNOWN[1:]
    assert read(newer) == read(frame)


def test_tags_in_the_structures_of_a_tagged_field_are_passed_over() -> None:
    frame = framed(CONNECT_INSTALL, 0, INSTALL)
    at = frame.index(bytes.fromhex("0000000000000009"))
    end = frame.index(b"\x01", frame.index(b"\x41\x03", at) + 11)  # where the next tag begins
    size, parked = frame[at - 2], frame[at:end]
    assert len(parked) + 1 == size
    newer = bytes([size + len(UNKNOWN) - 1]) + frame[at - 1 : at] + parked[:-1] + UNKNOWN
    assert read(frame[: at - 2] + newer + frame[end:]) == read(frame)


def test_a_tag_that_ends_beyond_its_frame_is_refused() -> None:
    frame = framed(*MESSAGES["prepare"])
    for flawed in ("01 ac02 04 616263", "02 ac02 03 616263", "01 ac02", "01"):
        with pytest.raises(FrameRefused, match="malformed"):
            read(frame[:-1] + bytes.fromhex(flawed))


def test_the_answer_of_a_newer_broker_is_read() -> None:
    kind = response_class(API_VERSIONS, 4)
    named = item_class(kind, "api_keys")(api_key=3, min_version=0, max_version=13)
    told = {"error_code": ErrorCode.none, "api_keys": (named,), "throttle_time": timedelta()}
    head = Head(API_VERSIONS, 4, 1)
    frame = write_response(head, make(kind, **told))[4:]
    assert frame.endswith(b"\0")
    assert read_response(head, frame[:-1] + UNKNOWN) == read_response(head, frame)
