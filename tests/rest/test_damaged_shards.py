"""A shard whose logs cannot be read takes nothing from the other groups of the node."""

import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rest.conftest import service_over

from fairlead.events.catalogue import TYPE_OF
from fairlead.events.commits import ConsumerOffset
from fairlead.events.entries.codec import CONTROL
from fairlead.events.entries.group_keys import (
    SHARED_CONTROL,
    SHARED_OFFSETS,
    name_shard,
    shard_of_group,
)
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.tables import LogKind
from fairlead.events.log.writer import GroupLog
from fairlead.events.records import GroupMetadata
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.reading import shards
from fairlead.runtime.interfaces.rest.reading.shards import FollowedShard
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.shards.recorded import live

PATHS = ("/groups/connect", "/groups/billing", "/groups/billing/history", "/groups/pay/explain/2")


def overwrite(shard: Path) -> None:
    """Damage the first pages of a control log, as a disk may."""
    path = shard / "control" / "data.mdb"
    found = bytearray(path.read_bytes())
    found[:8192] = b"\xff" * 8192
    path.write_bytes(found)


def append(path: Path, kind: LogKind, record: type) -> None:
    """Write an entry to a log of a shard whose key names no group."""
    number = TYPE_OF[record].number
    with GroupLog.open_writer(path, name_shard(0, 2), kind, reserve_bytes=0) as log:
        log.append(log.end, [NewEntry(number, 1, b"\xff\xfe\0", b"v")], 1)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "pages": overwrite,
    "control": lambda shard: append(shard / "control", SHARED_CONTROL, GroupMetadata),
    "offsets": lambda shard: append(shard / "offsets", SHARED_OFFSETS, ConsumerOffset),
}


@dataclass
class Damaged:
    """A node with a group of its own, a sound shard, and another whose logs cannot be read."""

    client: Client
    shard: Path
    """The folder of the other one."""


@pytest.fixture(params=DAMAGES.values(), ids=list(DAMAGES))
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Damaged]:
    live(tmp_path, shards=2)
    GroupLog.open_writer(tmp_path / "groups" / "connect" / "control", "connect", CONTROL).close()
    shard = tmp_path / "shards" / "1"
    shutil.copytree(tmp_path / "shards" / "0", shard)
    request.param(shard)
    service = service_over(tmp_path, FakeGateway(None))
    yield Damaged(Client(make_app(service)), shard)
    service.logs.close()


def test_all_groups_that_can_be_read_are_told(
    damaged: Damaged, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    for _ in range(2):
        listed = [each["group_id"] for each in damaged.client.get("/groups").json()]
        assert listed == ["connect", "billing", "pay", "registry", "resets"]
        assert [damaged.client.get(each).status_code for each in PATHS] == [200] * len(PATHS)
        page = damaged.client.get("/metrics").text
        assert 'fairlead_kafka_group_members{shard="0",type="classic"} 2.0' in page
        assert 'shard="1"' not in page
    (logged,) = caplog.messages
    assert logged.startswith("the groups of shard 1 cannot be read: ")


ELSEWHERE, NOWHERE = "elsewhere", "nowhere"
"""Ids of groups that nobody has heard of; the unreadable shard would have the first."""


@pytest.mark.parametrize("path", ["", "/history", "/config"])
def test_a_group_that_may_be_in_the_other_shard_is_answered_with_why(
    damaged: Damaged, path: str
) -> None:
    reply = damaged.client.get(f"/groups/{ELSEWHERE}{path}")
    assert reply.status_code == 503
    why = f"group {ELSEWHERE} may be in a shard whose logs cannot be read; shard 1: "
    assert reply.json()["message"].startswith(why)
    assert shard_of_group(NOWHERE, 2) == 0
    assert damaged.client.get(f"/groups/{NOWHERE}{path}").status_code == 404


def test_while_no_shard_can_be_read_any_of_them_may_have_a_group(damaged: Damaged) -> None:
    overwrite(damaged.shard)
    overwrite(damaged.shard.with_name("0"))
    for group in (ELSEWHERE, NOWHERE, "billing"):
        assert damaged.client.get(f"/groups/{group}").status_code == 503


def test_a_sound_shard_stays_open_and_the_other_is_read_once_it_is_mended(
    damaged: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "RETRY_SECONDS", 600)
    damaged.client.get("/groups")
    loaded: list[int] = []
    load = FollowedShard.__init__

    def noted(shard: FollowedShard, number: int, folder: Path) -> None:
        loaded.append(number)
        load(shard, number, folder)

    monkeypatch.setattr(FollowedShard, "__init__", noted)
    assert damaged.client.get("/groups/billing").status_code == 200
    assert loaded == []
    monkeypatch.setattr(shards, "RETRY_SECONDS", 0)
    assert damaged.client.get("/groups/billing").status_code == 200
    assert loaded == [1]
    shutil.rmtree(damaged.shard)
    shutil.copytree(damaged.shard.with_name("0"), damaged.shard)
    listed = damaged.client.get("/groups").json()
    assert [each["shard"] for each in listed if each["group_id"] == "pay"] == [0, 1]
    assert damaged.client.get(f"/groups/{ELSEWHERE}").status_code == 404


@pytest.mark.parametrize("left", ["", "control"])
def test_a_shard_that_was_taken_away_holds_up_nobody(
    damaged: Damaged, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "RETRY_SECONDS", 0)
    assert damaged.client.get(f"/groups/{ELSEWHERE}").status_code == 503
    shutil.rmtree(damaged.shard / left)
    assert damaged.client.get(f"/groups/{ELSEWHERE}").status_code == 404
