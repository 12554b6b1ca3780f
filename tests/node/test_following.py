"""The threads that keep both copies of a group's logs in step with the store."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fairlead.actors.shards.hosted_logs import LogCopies
from fairlead.events.entries.retention import UNLIMITED
from fairlead.events.stores.port import Claimant
from fairlead.runtime.node.door.following import CopiesMoved, OwnerSeen, StoreFollower
from fairlead_tests.log.memory_store import MemoryStore
from fairlead_tests.log.samples import TIME_MS, member
from fairlead_tests.stores.pairs import Engines, engines

ENTRY = member("W1", 1)
PATIENCE_S = 30.0


@pytest.fixture
def stores() -> Engines:
    return engines()


@pytest.fixture
def owner(tmp_path: Path, stores: Engines) -> Iterator[LogCopies]:
    with closing(stores.copies_at(tmp_path / "n1")) as copies:
        assert copies.claim(Claimant("n1", "n1:9092", "n1"), 0.0)
        yield copies


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_the_control_log_waits_for_the_offsets_that_it_rests_on(
    tmp_path: Path, stores: Engines, owner: LogCopies
) -> None:
    told: list[object] = []
    stores.offsets.is_away = True
    with closing(stores.copies_at(tmp_path / "n2")) as copies:
        follower = StoreFollower(copies, UNLIMITED, told.append, is_unsafe=True)
        try:
            stores.offsets.is_away = False
            owner.offsets.append(0, [ENTRY], TIME_MS)
            stores.offsets.is_away = True
            owner.control.append(0, [ENTRY], TIME_MS)
            for _ in range(50):
                time.sleep(0.001)
                assert copies.control.end <= copies.offsets.end
            stores.offsets.is_away = False
            until(lambda: follower.ends() == (1, 1))
            until(lambda: any(isinstance(each, OwnerSeen) and each.is_whole for each in told))
        finally:
            follower.stop()
    assert any(isinstance(each, CopiesMoved) for each in told)


def test_it_is_known_why_a_copy_does_not_follow(
    tmp_path: Path,
    stores: Engines,
    owner: LogCopies,  # noqa: ARG001  # there is something to follow
) -> None:
    with closing(stores.copies_at(tmp_path / "n2")) as copies:
        follower = StoreFollower(copies, UNLIMITED, lambda _: None, is_unsafe=True)
        try:
            stores.offsets.is_away = True
            until(lambda: follower.flaw != "")
            stores.offsets.is_away = False
            until(lambda: follower.flaw == "")
        finally:
            follower.stop()


def test_the_threads_end_while_one_waits_for_the_other(
    tmp_path: Path, stores: Engines, owner: LogCopies
) -> None:
    owner.offsets.append(0, [ENTRY], TIME_MS)
    owner.control.append(0, [ENTRY], TIME_MS)
    stores.offsets.is_away = True
    with closing(stores.copies_at(tmp_path / "n2")) as copies:
        StoreFollower(copies, UNLIMITED, lambda _: None, is_unsafe=True).stop()
        assert copies.control.end == 0
        stores.offsets.is_away = False
        assert copies.claim(Claimant("n2", "n2:9092", "n2"), 0.0)
        assert (copies.control.end, copies.offsets.end) == (1, 1)


def test_the_owner_is_asked_for_once_all_is_read(
    tmp_path: Path, stores: Engines, owner: LogCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(5):
        owner.control.append(at, [ENTRY], TIME_MS)
    stores.control.most, asked = 1, list[int]()
    with closing(stores.copies_at(tmp_path / "n2")) as copies:
        monkeypatch.setattr(MemoryStore, "owner", lambda _: asked.append(copies.control.end))
        follower = StoreFollower(copies, UNLIMITED, lambda _: None, is_unsafe=True)
        until(lambda: bool(asked))
        follower.stop()
    assert {*asked} == {5}
