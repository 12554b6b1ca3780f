"""`log story` against real log files; no cluster runs."""

import json
from dataclasses import replace
from pathlib import Path

from cli.conftest import Run

from fairlead.events.catalogue import TYPE_OF
from fairlead.events.model import Cause, Resource, Scope, Why
from fairlead.events.records import GroupMetadata, Operator, Tombstone
from fairlead.projections.explain.causes.detection import Detection
from fairlead.projections.explain.diff import Owner, TargetChange
from fairlead.projections.explain.epochs import EpochReading, EpochReport
from fairlead.runtime.interfaces.cli.logs.narrator import TELL, Narrator
from fairlead.runtime.interfaces.cli.verbs.group.log import tell
from fairlead_tests.cli import written

TOLD = """\
epoch 1  2013-01-01T00:26:40.000Z  member-joined w1
    answered by assignment epoch 2 after 0.000 s, balanced at w1(1b9d6bcd)
epoch 2  2013-01-01T00:26:40.000Z  connector-added flights (asked by rest)
    answered by assignment epoch 2 after 0.000 s, balanced at w1(1b9d6bcd)
    placed    flights flights-0..1 at w1(1b9d6bcd)
    placed    flights-2..3 at w2(9b1deb4d)
    kept      0
epoch 3  2013-01-01T00:26:40.000Z  session-expired w2
    not answered
"""


def test_each_epoch_is_told_with_its_cause_and_what_it_led_to(run: Run, data_dir: Path) -> None:
    assert run("log", "story", "--data-dir", data_dir) == (0, TOLD, "")


def test_what_stopped_because_nobody_may_run_it_is_told_with_who_had_it() -> None:
    a, seat = Resource("a"), Owner(written.URL_1, written.W1)
    answer = TargetChange(4, 2_000, "balanced", seat, {}, (), (), (), {}, {a: "no"}, frozenset())
    bump = GroupMetadata(4, Cause(Why.WORKER_DRAINED, written.URL_1), 1_000, "rest")
    report = EpochReport(bump, (), replace(answer, displaced={a: seat}))
    assert list(tell(EpochReading(report, Detection(), "", {}))) == [
        "epoch 4  1970-01-01T00:00:01.000Z  worker-drained w1 (asked by rest)",
        "    answered by assignment epoch 4 after 1.000 s, balanced at w1(1b9d6bcd)",
        "    stopped   a at w1(1b9d6bcd)",
        "    left out  a: no",
        "    kept      0",
    ]


def test_a_story_can_begin_and_end_at_an_epoch(run: Run, data_dir: Path) -> None:
    lines = TOLD.splitlines(keepends=True)
    ended = run("log", "story", "--from", "2", "--until", "2", "--data-dir", data_dir)
    assert ended == (0, "".join(lines[2:7]), "")


def test_programs_get_the_whole_story(run: Run, data_dir: Path) -> None:
    ended = run("log", "story", "--from", "3", "--data-dir", data_dir, "-o", "json")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == [
        {
            "group_epoch": 3,
            "cause": "session-expired",
            "subject": "127.0.0.1:8083/w2",
            "actor": None,
            "time_ms": 1_357_000_000_000,
            "took_ms": None,
            "attempts": [],
            "target_change": None,
        }
    ]
    ended = run("log", "story", "--from", "2", "--until", "2", "--data-dir", data_dir, "-o", "json")
    answer = json.loads(ended.out)[0]["target_change"]
    assert answer["computed_by"] == {"worker": written.URL_1, "member_id": written.W1}
    assert [each["id"] for each in answer["placed"]] == [
        str(each) for each in (written.FLIGHTS, *written.TASKS)
    ]


def test_the_end_of_an_order_names_whom_it_was_for_as_the_order_did() -> None:
    ended = [
        (Scope.WORKER.value, written.URL_1, -1),
        (Scope.RESOURCE.value, "a", -1),
        (Scope.RESOURCE.value, "a", 3),
    ]
    told = [Narrator().tell(Tombstone(Operator, key)) for key in ended]
    assert told == ["gone: worker w1", "gone: resource a", "gone: resource a-3"]


def test_every_kind_of_record_has_its_words() -> None:
    assert set(TELL) == {*TYPE_OF, Tombstone}
