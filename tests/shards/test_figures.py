"""What the process of groups counts of its own work."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import AddressedReply, Traffic
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import ListGroups, RemoveGroupReply
from fairlead.actors.messages.offsets import OffsetCommit, OffsetDelete, TopicOffset
from fairlead.actors.shards.actor import OpenShard, ShardActor, ShardOpened
from fairlead.actors.shards.figures import (
    BOUNDS,
    Figure,
    FiguresFile,
    FiguresRead,
    WorkPhase,
    read_figures,
)
from fairlead_tests.actor_system import Running, eventually
from fairlead_tests.shards.driver import AT_ONCE, ShardDriver, joining
from fairlead_tests.shards.host import stream_host

RETENTION_MS, LOOK_MS = 600_000, 10_000
EXPIRING = GroupSettings(
    initial_delay_ms=0, offsets_retention_ms=RETENTION_MS, offsets_check_interval_ms=LOOK_MS
)


def counts(read: FiguresRead, phase: WorkPhase) -> dict[float, float]:
    """Return the counts of a phase that are not 0, by bound."""
    bounds = (*BOUNDS, float("inf"))
    told = zip(bounds, read.durations[phase][0], strict=True)
    return {bound: count for bound, count in told if count}


def test_durations_and_refusals_are_counted_and_the_next_process_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "metrics" / "shard-0.figures"
    first = FiguresFile(file)
    first.begin(0.25)
    first.observe(WorkPhase.QUEUE, 0.0001, 3)
    first.observe(WorkPhase.QUEUE, 7.0)
    refused = RemoveGroupReply(Error.NON_EMPTY_GROUP, "")
    first.count_answers([AddressedReply(1, refused), AddressedReply(1, replace(refused))])
    first.set_traffic(Traffic(9, 9, 2, 5))
    later = FiguresFile(file)
    later.count_answers([AddressedReply(1, RemoveGroupReply(Error.NONE, ""))])
    later.observe(WorkPhase.QUEUE, 0.3)
    later.set_traffic(Traffic(0, 0, 1, 1))
    read = read_figures(file)
    assert read is not None
    assert counts(read, WorkPhase.QUEUE) == {0.0001: 3, 0.5: 1, float("inf"): 1}
    assert read.durations[WorkPhase.QUEUE][1] == pytest.approx(7.3003)
    assert counts(read, WorkPhase.APPEND) == {}
    assert read.refusals == {Error.NON_EMPTY_GROUP: 2}
    assert read.figures[Figure.LOAD_SECONDS] == 0.25
    assert (read.figures[Figure.EXPIRED_OFFSETS], read.figures[Figure.DELETED_OFFSETS]) == (3, 6)


def test_work_within_work_counts_once(tmp_path: Path) -> None:
    figures = FiguresFile(tmp_path / "group-a.figures")
    with figures.working():
        with figures.working():
            pass
        inner = read_figures(tmp_path / "group-a.figures")
    outer = read_figures(tmp_path / "group-a.figures")
    assert inner is not None
    assert outer is not None
    assert 0 < inner.figures[Figure.BUSY_SECONDS] < outer.figures[Figure.BUSY_SECONDS]
    with figures.working():
        pass
    after = read_figures(tmp_path / "group-a.figures")
    assert after is not None
    assert after.figures[Figure.BUSY_SECONDS] > outer.figures[Figure.BUSY_SECONDS]


def test_a_file_of_another_size_is_not_read_and_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "group-a.figures"
    assert read_figures(file) is None
    file.write_bytes(b"\xff" * 100)
    assert read_figures(file) is None
    FiguresFile(file).observe(WorkPhase.ANSWER, 0.01)
    read = read_figures(file)
    assert read is not None
    assert counts(read, WorkPhase.ANSWER) == {0.01: 1}
    assert sum(read.figures.values()) == 0


def test_without_a_place_for_the_file_the_process_works_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "metrics").write_text("not a folder")
    figures = FiguresFile(tmp_path / "metrics" / "group-a.figures")
    figures.observe(WorkPhase.DECIDE, 0.01)
    figures.set_traffic(Traffic(0, 0, 1, 1))
    assert figures.traffic == Traffic(0, 0, 1, 1)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ShardDriver]:
    driven = ShardDriver(tmp_path, EXPIRING)
    yield driven
    driven.close()


def test_expired_offsets_are_told_apart_from_those_that_somebody_deletes(
    driver: ShardDriver,
) -> None:
    for group in ("a", "b"):
        driver.asks(OffsetCommit(group, (TopicOffset("t", 0, 7), TopicOffset("t", 1, 7))))
    driver.asks(OffsetDelete("a", {"t": (0,)}))
    assert driver.groups.traffic() == Traffic(3, 0, 0, 1)
    driver.passes(RETENTION_MS + 2 * LOOK_MS)
    assert driver.groups.traffic() == Traffic(3, 0, 3, 4)


def has_answered_all(file: Path) -> bool:
    """Return whether all is counted: the time of an answer is, once it is sent."""
    read = read_figures(file)
    if read is None or read.figures[Figure.REQUESTS] < 3:
        return False
    decided, answered = (
        sum(read.durations[phase][0]) for phase in (WorkPhase.DECIDE, WorkPhase.ANSWER)
    )
    return decided == answered


@pytest.mark.cluster
def test_a_shard_tells_of_its_appends_its_load_and_its_refusals(actor_system: Running) -> None:
    folder = actor_system.folder
    file = folder / "metrics" / "shard-0.figures"
    order = OpenShard(0, 1, folder / "shards" / "0", AT_ONCE, figures=file)
    shard = actor_system.system.create(ShardActor, f"counting {folder.name}")
    assert isinstance(actor_system.system.ask(shard, order, 10.0), ShardOpened)
    with stream_host(actor_system, shard) as host:
        host.asks(joining("g", number=1))
        host.asks(joining("g", "a-stranger", number=2))
        host.asks(ListGroups(number=3))
    eventually(lambda: has_answered_all(file), "what was decided is answered")
    read = read_figures(file)
    assert read is not None
    assert read.refusals == {Error.UNKNOWN_MEMBER_ID: 1}
    assert read.figures[Figure.REQUESTS] == 3
    assert sum(read.durations[WorkPhase.QUEUE][0]) == 3
    assert sum(read.durations[WorkPhase.APPEND][0]) == 1
    assert 0 < read.figures[Figure.LOAD_SECONDS] < read.figures[Figure.STARTED_AT]
    assert sum(read.durations[WorkPhase.DECIDE][0]) >= 3
