"""A request is followed from file to file; who reads the code opens few of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.messages.members import HeartbeatReply
from fairlead.events.model import Resource
from fairlead_tests.coordination.driver import CoordinatorDriver
from fairlead_tests.shards.driver import ShardDriver, joining
from fairlead_tests.translation.driver import AT_ONCE
from fairlead_tests.visits import visits

GROUP = "g"


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CoordinatorDriver]:
    driver = CoordinatorDriver.at(tmp_path)
    driver.settings, driver.assignors = AT_ONCE, ()
    driver.open()
    yield driver
    driver.close()


def test_a_heartbeat_that_is_granted_something_visits_20_files(driver: CoordinatorDriver) -> None:
    join = replace(driver.joining("w"), assignors=None, server_assignor="uniform")
    driver.asks(join)
    driver.put("A")
    beat, shard = driver.request("w", owned=()), driver.coordinator
    with visits() as visited:
        shard.submit(beat, "w", driver.now)
        ready = shard.ready(driver.now)
        shard.advance(ready)
    (answer,) = ready.answers
    assert isinstance(answer.reply, HeartbeatReply)
    assert answer.reply.assignment == frozenset({Resource("A")})
    assert len(visited.files) <= 20, visited.files
    assert visited.changes <= 45, visited.order


def test_a_join_group_of_a_known_group_visits_15_files(tmp_path: Path) -> None:
    driver = ShardDriver(tmp_path)
    driver.member_of(GROUP)
    with visits() as visited:
        driver.groups.submit(replace(joining(GROUP), number=99), 1, driver.now)
        driver.groups.advance(driver.groups.ready(driver.now))
    driver.close()
    assert len(visited.files) <= 15, visited.files
