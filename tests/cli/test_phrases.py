"""Names and moments as people see them."""

from dataclasses import replace

import pytest

from fairlead.events.catalogue import TYPE_OF
from fairlead.events.model import Cause, Resource, Why
from fairlead.events.records import (
    GroupMetadata,
    OwnerBegan,
    OwnerResigned,
    Record,
    ScheduledRebalance,
    Tombstone,
)
from fairlead.projections.explain.causes.detection import Detection
from fairlead.projections.explain.diff import TargetChange
from fairlead.projections.explain.epochs import EpochReading, EpochReport
from fairlead.runtime.interfaces.cli.logs.narrator import TELL, Narrator
from fairlead.runtime.interfaces.cli.output.phrases import (
    format_resources,
    format_time,
    shorten_worker,
)
from fairlead.runtime.interfaces.cli.verbs.group.log import tell


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([], ""),
        ([("a", None)], "a"),
        ([("a", 0)], "a-0"),
        ([("a", 2), ("a", None), ("a", 0), ("a", 1)], "a a-0..2"),
        ([("a", 0), ("a", 2), ("a", 3), ("b", 1)], "a-0 a-2..3 b-1"),
        (
            [(f"c{n:02}", None) for n in range(14)],
            "c00 c01 c02 c03 c04 c05 c06 c07 c08 c09 c10 c11 and 2 more",
        ),
    ],
)
def test_resources_have_a_short_form(resources: list[tuple[str, int | None]], said: str) -> None:
    assert format_resources(resources) == said


def test_a_worker_is_known_by_the_end_of_its_url() -> None:
    assert [shorten_worker(url) for url in ("127.0.0.1:8083/w1", "w1", "", "a/")] == [
        "w1",
        "w1",
        "",
        "a/",
    ]


def test_a_moment_is_told_in_utc() -> None:
    assert [format_time(each) for each in (1_357_000_000_123, 0, None, 1 << 62)] == [
        "2013-01-01T00:26:40.123Z",
        "",
        "",
        "4611686018427387904 ms",
    ]


def test_there_are_words_for_every_kind_of_record() -> None:
    assert TELL.keys() == {*TYPE_OF, Tombstone}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (ScheduledRebalance(), "nothing is parked"),
        (
            ScheduledRebalance(again_at_ms=1_357_000_000_000),
            "nothing is parked, more moves at 2013-01-01T00:26:40.000Z",
        ),
        (
            ScheduledRebalance({Resource("a"): 1_357_000_001_000}, again_at_ms=1_357_000_000_000),
            "parked: a, the first until 2013-01-01T00:26:41.000Z,"
            " more moves at 2013-01-01T00:26:40.000Z",
        ),
    ],
)
def test_what_a_target_leaves_for_later_is_told(record: ScheduledRebalance, said: str) -> None:
    assert Narrator().tell(record) == said


def test_an_epoch_whose_target_leaves_moves_says_when_they_are_made() -> None:
    bump = GroupMetadata(2, Cause(Why.MOVES_DUE, "incremental"), 1_357_000_000_000)
    answer = TargetChange(2, bump.time_ms, "incremental", None, {}, (), (), (), {}, {}, frozenset())
    answer = replace(answer, next_moves_at_ms=1_357_000_030_000)
    report = EpochReport(bump, target_change=answer)
    assert [*tell(EpochReading(report, Detection(), "", {}))] == [
        "epoch 2  2013-01-01T00:26:40.000Z  moves-due incremental",
        "    answered by assignment epoch 2 after 0.000 s, incremental",
        "    more      moves at 2013-01-01T00:27:10.000Z",
        "    kept      0",
    ]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (OwnerBegan(1, "n1"), "node n1 owns the group as owner 1"),
        (
            OwnerBegan(2, "n2", "h2:9094", "0.4", silence_ms=3_420),
            "node n2 at h2:9094 owns the group as owner 2, after 3.4 s of silence,"
            " with fairlead 0.4",
        ),
        (OwnerResigned(2, "n2", "n1"), "node n2, owner 2, gives the group up to node n1"),
        (OwnerResigned(2, "n2"), "node n2, owner 2, gives the group up to any other"),
    ],
)
def test_who_owns_the_group_is_told_and_after_how_much_silence(record: Record, said: str) -> None:
    assert Narrator().tell(record) == said
