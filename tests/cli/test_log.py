"""`log` against real log files; no cluster runs."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cli.conftest import Run

from fairlead.events.catalogue import GENERATION
from fairlead.events.entries.codec import encode
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata
from fairlead_tests.cli import written

AT = "2013-01-01T00:26:40.000Z"
CONTROL = [
    "GroupMetadata            group epoch 1: member-joined w1",
    "MemberMetadata           w1(1b9d6bcd) joined for epoch 1, at 127.0.0.1:8083/w1,"
    " assignors balanced, rebalance timeout 60000 ms",
    "ConnectorConfig          flights version 1, SparkPipeline, 2 keys",
    "ConnectorsTasksMetadata  configured: flights flights-0..3",
    "GroupMetadata            group epoch 2: connector-added flights (asked by rest)",
    "TaskConfigs              flights generation 1: 4 tasks",
    "MemberMetadata           w2(9b1deb4d) joined for epoch 2, at 127.0.0.1:8083/w2,"
    " assignors balanced, rebalance timeout 60000 ms",
    "TargetAssignment         assignment epoch 2 by balanced:"
    " w1(1b9d6bcd) = flights flights-0..1; w2(9b1deb4d) = flights-2..3",
    "CurrentAssignment        w1(1b9d6bcd) epoch 0 -> 2 STABLE: holds flights flights-0..1",
    "CurrentAssignment        w2(9b1deb4d) epoch 0 -> 1 UNREVOKED: holds flights-2,"
    " gives up flights-3",
    "TaskStatus               flights-0 RUNNING at w1, token 2-1",
    "TaskStatus               flights-1 FAILED at w1, token 2-1: no such column",
    "CurrentAssignment        gone: w2(9b1deb4d)",
    "MemberMetadata           gone: w2(9b1deb4d)",
    "Loss                     w2(9b1deb4d) lost flights-2: session-expired w2,"
    " parked at most until 2013-01-01T00:31:40.000Z",
    "GroupMetadata            group epoch 3: session-expired w2",
    "ScheduledRebalance       parked: flights-2, the first until 2013-01-01T00:31:40.000Z",
    "TargetAssignment         assignment epoch 2 keeps the old target: attempt 1 failed,"
    " assignor failed",
    "type 99                  (this version does not know the type; skipped)",
]
OFFSETS = [
    "Committed                flights-0 batch 7, token 2-1: 842 rows in, 842 rows out,"
    " 10240 bytes in 3 files",
    "Offset                   flights file='a.csv': row=842",
    "TaskProgress             flights-0 in all: 8 batches, 6700 rows in, 6700 rows out,"
    " 81920 bytes",
    "Committed                gone: flights 0 2 1 7",
]
REPLAYED = """\
Group:             connect
Type:              connect
State:             Assigning
Group epoch:       3
Assignment epoch:  2
Last rebalance:    session-expired w2, 2013-01-01T00:26:40.000Z
Assignor's error:  assignor failed
Configured:        flights flights-0..3
Unassigned:        flights-2..3
Parked:            flights-2 until 2013-01-01T00:31:40.000Z
Log end:           19
Unknown records:   1

MEMBER  STATE   EPOCH  HOLDS                 GIVES UP  MEMBER ID
w1      STABLE  2      flights flights-0..1            1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed

Losses
LOST WORKER  CAUSE            RESOURCES  PARKED UNTIL
w2           session-expired  flights-2  2013-01-01T00:31:40.000Z
"""
REPLAYED_UNTIL_10 = """\
Group:             connect
Type:              connect
State:             Reconciling
Group epoch:       2
Assignment epoch:  2
Last rebalance:    connector-added flights, 2013-01-01T00:26:40.000Z
Assignor:          balanced
Configured:        flights flights-0..3
Log end:           10

MEMBER  STATE      EPOCH  HOLDS                 GIVES UP   MEMBER ID
w1      STABLE     2      flights flights-0..1             1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed
w2      UNREVOKED  1      flights-2             flights-3  9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d
"""


def numbered(records: list[str], start: int = 0) -> str:
    return "".join(f"{offset:>6}  {AT}  {said}\n" for offset, said in enumerate(records, start))


def test_every_record_is_one_line_in_the_words_of_the_protocol(run: Run, data_dir: Path) -> None:
    assert run("log", "show", "--data-dir", data_dir) == (0, numbered(CONTROL), "")
    assert run("log", "show", "--offsets", "--data-dir", data_dir) == (0, numbered(OFFSETS), "")


def test_a_part_can_be_shown_and_members_keep_their_names(run: Run, data_dir: Path) -> None:
    ended = run("log", "show", "--from", "8", "--limit", "1", "--data-dir", data_dir)
    assert ended == (0, numbered(CONTROL[8:9], 8), "")
    assert run("log", "show", "--from", "19", "--data-dir", data_dir) == (0, "", "")


def test_programs_get_whole_records(run: Run, data_dir: Path) -> None:
    here = ("--from", "15", "--limit", "2", "--data-dir", data_dir, "-o")
    wanted: list[object] = [
        {
            "offset": 15,
            "time": AT,
            "time_ms": written.TIME_MS,
            "kind": "GroupMetadata",
            "type": 3,
            "version": 1,
            "value": {
                "group_epoch": 3,
                "cause": {"why": "session-expired", "subject": "127.0.0.1:8083/w2"},
                "time_ms": written.TIME_MS,
                "actor": None,
                "since_ms": 0,
            },
        },
        {
            "offset": 16,
            "time": AT,
            "time_ms": written.TIME_MS,
            "kind": "ScheduledRebalance",
            "type": 21,
            "version": 1,
            "value": {
                "parked": {"flights-2": written.TIME_MS + 300_000},
                "fired": [],
                "again_at_ms": 0,
            },
        },
    ]
    as_json = run("log", "show", *here, "json").out.splitlines()
    assert [json.loads(line) for line in as_json] == wanted
    assert list(yaml.safe_load_all(run("log", "show", *here, "yaml").out)) == wanted


def test_every_kind_of_record_is_told_whole(run: Run, data_dir: Path) -> None:
    shown = run("log", "show", "--data-dir", data_dir, "-o", "json").out.splitlines()
    told = {each["offset"]: each for each in map(json.loads, shown)}
    assert told[8]["value"]["assigned"] == {"flights": 2, "flights-0": 2, "flights-1": 2}
    assert (told[9]["value"]["state"], told[10]["value"]["token"]) == ("UNREVOKED", "2-1")
    assert (told[12]["key"], told[12]["value"]) == ([written.W2], None)
    assert told[18] == {
        "offset": 18,
        "time": AT,
        "time_ms": written.TIME_MS,
        "kind": "type 99",
        "type": 99,
        "version": 1,
        "flaw": "this version does not know the type; skipped",
        "key_base64": "a2V5AA==",
        "value_base64": "AQ==",
    }


def test_what_this_version_can_not_read_is_told_and_passed_over(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "d" / "groups" / "connect" / "control"
    sound = encode(GroupMetadata(1, Cause(Why.OPERATOR), 0))
    written.write(folder, (), [sound._replace(version=9), sound._replace(value=b"\x01"), sound])
    shown = run("log", "show", "--data-dir", "d")
    assert shown.code == 0
    first, second, third = shown.out.splitlines()
    assert "GroupMetadata            (offset 0 holds a GroupMetadata of version 9, " in first
    assert "GroupMetadata            (offset 1 holds no readable GroupMetadata " in second
    assert third.endswith("GroupMetadata            group epoch 1: operator")
    replayed = run("log", "replay", "--data-dir", "d")
    assert (replayed.code, replayed.out) == (1, "")
    assert replayed.err.startswith("fairlead: offset 0 holds a GroupMetadata of version 9, ")


def test_a_replay_tells_the_group_as_it_is_and_as_it_was(run: Run, data_dir: Path) -> None:
    assert run("log", "replay", "--data-dir", data_dir) == (0, REPLAYED, "")
    ended = run("log", "replay", "--until", "10", "--data-dir", data_dir)
    assert ended == (0, REPLAYED_UNTIL_10, "")
    as_json = json.loads(run("log", "replay", "--data-dir", data_dir, "-o", "json").out)
    assert (as_json["group_id"], as_json["log_end"]) == ("connect", 19)


def test_a_trimmed_log_is_replayed_from_its_latest_values(run: Run, data_dir: Path) -> None:
    with GroupLog.open_writer(data_dir / "groups/connect/control", "connect") as log:
        log.trim(12)
    assert run("log", "replay", "--data-dir", data_dir) == (0, REPLAYED, "")
    first = run("log", "show", "--limit", "1", "--data-dir", data_dir)
    assert first == (0, f"    12  {AT}  CurrentAssignment        gone: 9b1deb4d\n", "")
    assert run("log", "replay", "--until", "13", "--data-dir", data_dir) == (
        1,
        "",
        "fairlead: the log holds the offsets from 12 to 19: a replay that stops at 13 needs all of"
        " them up to there, from 0 on\n",
    )


@pytest.mark.parametrize("verb", ["show --from", "replay --until"])
def test_an_offset_behind_the_end_fails(verb: str, run: Run, data_dir: Path) -> None:
    ended = run("log", *verb.split(), "20", "--data-dir", data_dir)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "19" in ended.err


def test_sound_logs_are_verified(run: Run, data_dir: Path) -> None:
    assert run("log", "verify", "--data-dir", data_dir) == (
        0,
        "LOG      STATE  LOW  END  ENTRIES  COMMITS  KEYS\n"
        "control  sound  0    19   19       19       14\n"
        "offsets  sound  0    4    4        4        3\n",
        "",
    )


def test_a_damaged_log_is_found_out(run: Run, data_dir: Path) -> None:
    data = data_dir / "groups/connect/control/data.mdb"
    content = data.read_bytes()
    data.write_bytes(content.replace(b"session-expired", b"session-revived"))
    ended = run("log", "verify", "--data-dir", data_dir, "-o", "json")
    control, offsets = json.loads(ended.out)
    assert (ended.code, control["state"], offsets["state"]) == (1, "unsound", "sound")
    assert ended.err == f"fairlead: {control['error']}\n"


def test_logs_that_were_swapped_are_told_as_such(run: Run, data_dir: Path) -> None:
    folder = data_dir / "groups/connect"
    (folder / "control").rename(folder / "kept")
    (folder / "offsets").rename(folder / "control")
    (folder / "kept").rename(folder / "offsets")
    ended = run("log", "verify", "--data-dir", data_dir)
    assert ended.code == 1
    assert [line.split()[:2] for line in ended.out.splitlines()[1:]] == [
        ["control", "unsound"],
        ["offsets", "unsound"],
    ]
    assert f"{folder}/control is the offsets log of 'connect'" in ended.err
    assert "put each back into its place" in ended.err
    for verb in ("show", "replay", "story"):
        told = run("log", verb, "--data-dir", data_dir)
        assert (told.code, told.out) == (1, "")
        assert "were swapped" in told.err


def test_logs_that_are_not_there_are_missing(run: Run) -> None:
    verified = run("log", "verify")
    assert (verified.code, verified.out) == (
        1,
        "LOG      STATE    LOW  END  ENTRIES  COMMITS  KEYS\ncontrol  missing\noffsets  missing\n",
    )
    here = Path("fairlead-data/groups/connect/control").absolute()
    for verb in ("show", "replay", "backup"):
        ended = run("log", verb, *(["b"] if verb == "backup" else []))
        assert ended == (
            1,
            "",
            f"fairlead: there is no log at {here}: `fairlead up` makes it; or is it another"
            " --data-dir, or another group.id?\n",
        )
    assert not Path("b").exists()


def test_the_log_of_another_group_is_not_taken_for_ours(run: Run, data_dir: Path) -> None:
    (data_dir / "groups" / "connect").rename(data_dir / "groups" / "other")
    ended = run("log", "show", "--data-dir", data_dir, "--set", "group.id=other")
    assert (ended.code, ended.out) == (1, "")
    assert "is the log 'connect', not 'other': nothing was changed" in ended.err


def test_a_backup_is_a_group_that_can_be_put_in_place(
    run: Run, data_dir: Path, tmp_path: Path
) -> None:
    assert run("log", "backup", "saved/a", "--data-dir", data_dir) == (
        0,
        "offsets and control of group connect backed up to saved/a\n",
        "",
    )
    restored = tmp_path / "restored" / "groups" / "connect"
    restored.parent.mkdir(parents=True)
    Path("saved/a").rename(restored)
    assert run("log", "show", "--data-dir", "restored").out == numbered(CONTROL)
    for name in ("control", "offsets"):
        with LogReader.open(restored / name, "connect") as log:
            assert log.verify().low == 0


def test_a_backup_overwrites_nothing_and_leaves_nothing_half_done(
    run: Run, data_dir: Path, tmp_path: Path
) -> None:
    Path("taken").mkdir()
    assert run("log", "backup", "taken", "--data-dir", data_dir) == (
        1,
        "",
        "fairlead: taken exists already; a backup never overwrites, choose a new name\n",
    )
    data = data_dir / "groups/connect/control/data.mdb"
    data.write_bytes(data.read_bytes()[:5000])
    assert run("log", "backup", "half", "--data-dir", data_dir).code == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "taken"]


@pytest.fixture
def follower(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "fairlead.runtime", "log", "show", "--follow"]
    options = ["--from", "18", "--data-dir", str(data_dir)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_following_prints_what_is_written_meanwhile(
    follower: subprocess.Popen[str], data_dir: Path
) -> None:
    assert follower.stdout is not None
    assert follower.stdout.readline() == numbered(CONTROL[18:], 18)
    with GroupLog.open_writer(data_dir / "groups/connect/control", "connect") as log:
        bump = encode(GroupMetadata(4, Cause(Why.DELAY_EXPIRED), 0))
        log.append(log.end, [bump], written.TIME_MS)
    said = f"    19  {AT}  GroupMetadata            group epoch 4: delay-expired\n"
    assert follower.stdout.readline() == said
    follower.send_signal(signal.SIGINT)
    assert follower.stdout.read() == ""
    assert follower.wait(60) == 0


def test_a_reader_that_has_enough_is_no_failure_to_speak_of(data_dir: Path) -> None:
    shell = f"{sys.executable} -m fairlead.runtime log show --data-dir {data_dir} | head -1"
    ended = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == (numbered(CONTROL[:1]), "")


def test_the_logs_of_a_newer_version_are_not_told_by_half(run: Run, data_dir: Path) -> None:
    (data_dir / "run").mkdir(exist_ok=True)
    newer = {"version": "9.8.0", "generation": GENERATION + 1}
    (data_dir / "run" / "version.json").write_text(json.dumps(newer))
    for verb in ("show", "story", "replay", "compact"):
        ended = run("log", verb, "--data-dir", data_dir)
        assert (ended.code, ended.out) == (1, "")
        assert f"{data_dir} was last used by fairlead 9.8.0" in ended.err
    assert run("log", "verify", "--data-dir", data_dir).code == 0, "it decodes nothing"
