"""`log story` against real log files; no cluster runs."""

import json
from pathlib import Path

from cli import written
from cli.conftest import Run

from fairlead.events.codec import TYPES
from fairlead.events.records import Tombstone
from fairlead.runtime.cli.log_words import TELL

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
            "answer": None,
        }
    ]
    ended = run("log", "story", "--from", "2", "--until", "2", "--data-dir", data_dir, "-o", "json")
    answer = json.loads(ended.out)[0]["answer"]
    assert answer["computed_by"] == {"worker": written.URL_1, "member_id": written.W1}
    assert [each["id"] for each in answer["placed"]] == [
        str(each) for each in (written.FLIGHTS, *written.TASKS)
    ]


def test_every_kind_of_record_has_its_words() -> None:
    assert set(TELL) == {*TYPES, Tombstone}
