"""What a request counts has to be in its frame before room is made for it: else a process ends."""
# pyright: basic

import re
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from fairlead.runtime.kafka.wire import connect_messages as wire
from fairlead.runtime.kafka.wire.bounds import FrameRefused
from fairlead.runtime.kafka.wire.frames import (
    Head,
    Request,
    item_class,
    make,
    read_head,
    read_request,
    request_class,
    write_request,
)
from fairlead.runtime.kafka.wire.lengths import MOST_ITEMS, CountedFrame
from fairlead.runtime.kafka.wire.served import (
    CONNECT_HEARTBEAT,
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_GROUPS,
    JOIN_GROUP,
    METADATA,
    OFFSET_COMMIT,
)

SECOND = timedelta(seconds=1)
FEW_ITEMS = 1_000
OWNED = wire.ConnectorsAndTasks(
    connectors=("A",), tasks=(wire.ConnectorTasks(connector="A", tasks=(0, 1)),)
)
HUGE = [bytes.fromhex(each) for each in ("ffffffff7f", "ffffffff0f", "ffffff7f", "7fffffff")]


def frame(api: int, version: int, **told: Any) -> bytes:
    message = make(request_class(api, version), **told)
    return write_request(Request(Head(api, version, 1), "c", message))


def item(api: int, version: int, of: str, /, **told: Any) -> Any:
    return make(item_class(request_class(api, version), of), **told)


def requests() -> dict[str, bytes]:
    """Requests with arrays, strings, bytes and tags, in flexible versions and in others."""
    names = {"group_id": "g", "member_id": "m", "member_epoch": 1, "generation_id": 1}
    times = {"session_timeout": SECOND, "rebalance_timeout": SECOND}
    found: dict[str, bytes] = {}
    for version in (5, 9):
        offered = item(JOIN_GROUP, version, "protocols", name="range", metadata=b"x")
        told = {**names, **times, "protocol_type": "consumer", "protocols": (offered,)}
        found[f"JoinGroup {version}"] = frame(JOIN_GROUP, version, **told)
    for version in (2, 9):
        place = item(OFFSET_COMMIT, version, "topics", name="t", partitions=())
        told = {**names, "generation_id_or_member_epoch": 1, "topics": (place,)}
        found[f"OffsetCommit {version}"] = frame(OFFSET_COMMIT, version, **told)
    groups = {"groups": ("g", "h"), "include_authorized_operations": False}
    found["DescribeGroups 6"] = frame(DESCRIBE_GROUPS, 6, **groups)
    read = {"subscribed_topic_names": ("t",), "server_assignor": None, "topic_partitions": None}
    beat = {**names, **read, "instance_id": None, "rack_id": None, "rebalance_timeout": SECOND}
    found["ConsumerGroupHeartbeat 1"] = frame(
        CONSUMER_GROUP_HEARTBEAT, 1, **beat, subscribed_topic_regex=None
    )
    own = {"connectors_and_tasks": OWNED, "url": "http://w/", "incarnation": "i"}
    found["ConnectGroupHeartbeat 0"] = frame(CONNECT_HEARTBEAT, 0, **names, **own)
    asked = {"topics": None, "allow_auto_topic_creation": False}
    found["Metadata 4"] = frame(METADATA, 4, **asked)
    return found


REQUESTS = requests()


@pytest.mark.parametrize("name", REQUESTS)
def test_no_count_has_room_made_that_its_frame_cannot_fill(name: str) -> None:
    sound = REQUESTS[name]
    assert read_request(read_head(sound), sound).client_id == "c"
    for at in range(8, len(sound) + 1):
        for huge in HUGE:
            for behind in (at, at + 1, at + len(huge)):
                with suppress(FrameRefused):
                    other = sound[:at] + huge + sound[behind:]
                    read_request(read_head(other), other)


def test_null_is_refused_where_a_structure_in_another_has_an_array() -> None:
    sound = REQUESTS["ConnectGroupHeartbeat 0"]
    owned = bytes.fromhex("02024102024103")
    (found,) = (each.start() for each in re.finditer(re.escape(owned), sound))
    for place in (0, 3, 6):
        null = sound[: found + place] + b"\0" + sound[found + place + 1 :]
        with pytest.raises(FrameRefused, match="malformed"):
            read_request(read_head(null), null)


def test_a_tag_is_as_long_as_it_says() -> None:
    sound = REQUESTS["ConnectGroupHeartbeat 0"]
    short = sound.replace(b"\x01\x02\x02i", b"\x01\x01\x02i")
    assert short != sound
    with pytest.raises(FrameRefused, match="tag 1 is not as long as it says"):
        read_request(read_head(short), short)


def owning(tasks: int, numbers: tuple[int, ...] = ()) -> bytes:
    """Return a heartbeat that names so many tasks' connectors, each with these numbers."""
    owned = (wire.ConnectorTasks(connector="", tasks=numbers),) * tasks
    own = wire.ConnectorsAndTasks(connectors=(), tasks=owned)
    names = {"group_id": "g", "member_id": "m", "member_epoch": 1, "url": "", "incarnation": "i"}
    return frame(CONNECT_HEARTBEAT, 0, **names, connectors_and_tasks=own)


def test_a_request_of_more_items_than_it_may_have_is_refused_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CountedFrame, "items_left", FEW_ITEMS)
    tags = 2  # the heartbeat itself has tagged fields
    most = owning(FEW_ITEMS - tags)
    read = read_request(read_head(most), most).message
    assert len(read.connectors_and_tasks.tasks) == FEW_ITEMS - tags
    tiny = owning(FEW_ITEMS + 1 - tags)
    with pytest.raises(FrameRefused, match="too many items"):
        read_request(read_head(tiny), tiny)
    numbers = owning(1, tuple(range(2 * FEW_ITEMS)))  # of a fixed size: they are not counted
    read = read_request(read_head(numbers), numbers).message
    assert len(read.connectors_and_tasks.tasks[0].tasks) == 2 * FEW_ITEMS


def test_a_request_may_have_ten_thousand_topics_and_a_hundred_thousand_partitions() -> None:
    assert CountedFrame.items_left == MOST_ITEMS == 110_000


@pytest.mark.parametrize("place", [-1, 11])  # behind the message, behind the header
def test_unknown_tagged_fields_count_as_items(place: int) -> None:
    sound = REQUESTS["DescribeGroups 6"]
    place %= len(sound)
    assert sound[place] == 0
    tags = bytes.fromhex("b1db06") + b"\x7f\0" * (MOST_ITEMS + 1)
    tiny = sound[:place] + tags + sound[place + 1 :]
    with pytest.raises(FrameRefused, match="too many items"):
        read_request(read_head(tiny), tiny)
