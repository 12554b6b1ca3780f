"""What `history` and `explain` tell of the generations of a classic group, from its log alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.events.entries.codec import encode
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, ClassicMember, Why
from fairlead.events.records import (
    ClassicGroup,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from fairlead.projections.explain.cache import EpochCache
from fairlead.runtime.interfaces.cli.output.printing import FactList, Table
from fairlead.runtime.interfaces.cli.tables.epochs import tabulate_explanation, tabulate_history
from fairlead.runtime.interfaces.replies.epochs import describe_epoch


def generation(number: int, why: Why, subject: str, time_ms: int, members: str) -> ClassicGroup:
    """A generation as it is before its leader, the first of its members, has assigned."""
    seats = tuple(ClassicMember(name, 10_000, 60_000, ()) for name in members)
    protocol = "chess" if members else None
    return ClassicGroup(number, Cause(why, subject), time_ms, "game", protocol, members[:1], seats)


def synced(formed: ClassicGroup, time_ms: int) -> ClassicGroup:
    return replace(formed, time_ms=time_ms, is_synced=True)


SECOND = generation(2, Why.MEMBER_JOINED, "b", 2_000, "ab")
THIRD = generation(3, Why.SESSION_EXPIRED, "a", 5_000, "b")
LIFE: list[Record] = [
    GroupMetadata(1, Cause(Why.CONNECTOR_ADDED, "flights"), 1_000),
    SECOND,
    synced(SECOND, 2_300),
    synced(SECOND, 2_900),  # a static member that came back: nobody assigned anew
    THIRD,
    generation(4, Why.MEMBER_LEFT, "b", 6_000, ""),
    Tombstone(ClassicGroup, ()),
    MemberMetadata("W1", joined_epoch=5, url="http://w1"),
    GroupMetadata(5, Cause(Why.MEMBER_JOINED, "http://w1"), 7_000),
    TargetAssignment(5, {}, "balanced", computed_by="W1", time_ms=7_100),
]


@pytest.fixture
def told(tmp_path: Path) -> Iterator[EpochCache]:
    with GroupLog.open_writer(tmp_path / "control", "connect") as log:
        log.append(log.end, [encode(record) for record in LIFE], 9_000)
    with LogReader.open(tmp_path / "control") as reader:
        yield EpochCache(reader)


def test_each_generation_is_an_epoch_of_the_history_with_its_cause_and_who_leads(
    told: EpochCache,
) -> None:
    history = told.history()
    (table,) = tabulate_history(history)
    assert isinstance(table, Table)
    assert [(row[0], row[2], row[-1]) for row in table.rows] == [
        ("1", "connector-added flights", "unanswered"),
        ("2", "member-joined b: 2 members, game chess, led by a", "0.300 s"),
        ("3", "session-expired a: 1 member, game chess, led by b", "overtaken"),
        ("4", "member-left b: nobody is left", "0.000 s"),
        ("5", "member-joined w1", "not yet"),
    ]


def facts(told: EpochCache, epoch: int) -> dict[str, str]:
    first, phases, *_ = tabulate_explanation(describe_epoch(told.explain(epoch)))
    assert isinstance(first, FactList)
    assert isinstance(phases, Table)
    return dict(first.pairs) | {row[0]: " ".join(row[1:]).strip() for row in phases.rows}


def test_a_generation_is_explained_by_its_members_its_leader_and_when_that_assigned(
    told: EpochCache,
) -> None:
    second = facts(told, 2)
    assert (second["Members"], second["Protocol"], second["Led by"]) == ("a, b", "game chess", "a")
    assert (second["assign"], second["total"]) == ("0.300 s", "0.300 s")
    third = facts(told, 3)
    assert (third["Assigned"], third["assign"]) == ("not yet", "its leader did not assign")
    assert facts(told, 4)["Members"] == "nobody"


def test_no_target_answers_a_generation(told: EpochCache) -> None:
    answers = {each: told.explain(each).report.target_change for each in range(1, 6)}
    assert [each for each, change in answers.items() if change is not None] == [5]
    assert "Target" not in facts(told, 4)
