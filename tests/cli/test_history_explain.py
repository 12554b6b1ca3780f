"""`history` and `explain`, of a cluster that runs and of files that nobody has open."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.conftest import Asked, Cluster, Run

from fairlead_tests.cli import written

HISTORY = """\
EPOCH  TIME                  CAUSE                    BY    MOVED  NEW  KEPT  SETTLED
1      2013-01-01T00:26:40Z  member-joined w1                                 with 2
2      2013-01-01T00:26:40Z  connector-added flights  rest  0      5    0     overtaken
3      2013-01-01T00:26:40Z  session-expired w2                               unanswered
"""
PLACED = """\
Epoch:        2
Time:         2013-01-01T00:26:40.000Z
Cause:        connector-added flights
Asked by:     rest
Target:       assignment epoch 2
Assignor:     balanced
Computed by:  w1(1b9d6bcd)
Kept:         0

PHASE    TOOK     NOTE
detect   0.000 s
compute  0.000 s
revoke            nobody had to give up anything
release           4 of 5 so far
start             1 of 4 so far
total

RESOURCE   REASON  FROM  TO            DOWN
flights    new           w1(1b9d6bcd)
flights-0  new           w1(1b9d6bcd)
flights-1  new           w1(1b9d6bcd)
flights-2  new           w2(9b1deb4d)
flights-3  new           w2(9b1deb4d)
"""
LOST = """\
Epoch:   3
Time:    2013-01-01T00:26:40.000Z
Cause:   session-expired w2
Target:  none

PHASE    TOOK  NOTE
detect         when the member was last heard of is not in the log; its last record is 0.000 s older
compute        not answered
revoke
release
start
total

nothing moved
"""
W1 = {"worker": "127.0.0.1:8083/w1", "member_id": written.W1}
W2 = {"worker": "127.0.0.1:8083/w2", "member_id": written.W2}
NO_TIMES: dict[str, Any] = dict.fromkeys(
    (
        *(f"{each}_ms" for each in ("asked", "stopped", "gone", "revoked", "granted", "running")),
        *("first_batch_ms", "downtime_ms", "downtime_at_least_ms", "downtime_at_most_ms"),
        "superseded_by",
    )
)


def handover(name: str, reason: str, detail: str, **more: object) -> dict[str, Any]:
    """Return a resource that w2 had, and that w1 has now unless it is said otherwise."""
    moved = {"id": name, "reason": reason, "detail": detail, "from": W2, "to": W1}
    return {**moved, **NO_TIMES, **more}


MOVED: dict[str, Any] = {
    "group_epoch": 7,
    "cause": "from-the-future",
    "subject": "x",
    "changed": "capacity 1 > 2",
    "actor": "rest 127.0.0.1",
    "time_ms": 1_357_000_000_000,
    "took_ms": 1_000,
    "attempts": [{"assignment_epoch": 6, "time_ms": 1_357_000_000_500, "error": "no luck\nat x"}],
    "target_change": {
        "assignment_epoch": 7,
        "time_ms": 1_357_000_001_000,
        "settled_ms": None,
        "assignor": "uniform",
        "computed_by": None,
        "kept": [{"seat": W1, "resources": ["a", "a-0"]}],
        "moved": [],
        "returned": [],
        "placed": [],
        "parked": [{"id": f"b-{n}", "deadline_ms": 1_357_000_300_000} for n in range(2)],
        "unplaceable": [{"id": "c", "reason": "pinned to w9"}],
        "displaced": [],
        "retired": [],
        "next_moves_at_ms": 1_357_000_030_000,
    },
    "total_ms": 2_500,
    "phases": [{"phase": "detect", "from_ms": None, "until_ms": None, "took_ms": 0, "note": ""}],
    "handovers": [
        handover("a-1", "departure", "session-expired", downtime_at_least_ms=1_250),
        handover("a-2", "balance", "", downtime_ms=250, superseded_by=8),
        handover("c", "constraint", "drain", to=None),
        handover("d", "deleted", "", to=None),
    ],
    "waits": [],
    "owners": [
        {"epoch": 1, "node": "n1", "since_ms": 1_357_000_000_000, "silence_ms": 0},
        {"epoch": 2, "node": "n2", "since_ms": 1_357_000_004_000, "silence_ms": 3_400},
    ],
}
MOVED_TABLE = """\
Epoch:        7
Time:         2013-01-01T00:26:40.000Z
Cause:        from-the-future x
Changed:      capacity 1 > 2
Asked by:     rest 127.0.0.1
Failed:       2013-01-01T00:26:40.500Z: no luck
Target:       assignment epoch 7
Assignor:     uniform
Computed by:  the coordinator
Kept:         2 (w1(1b9d6bcd) 2)
Parked:       b-0 b-1 until 2013-01-01T00:31:40.000Z
More moves:   at 2013-01-01T00:27:10.000Z
Left out:     c: pinned to w9

PHASE   TOOK     NOTE
detect  0.000 s
total   2.500 s

RESOURCE  REASON                      FROM          TO                             DOWN
a-1       departure, session-expired  w2(9b1deb4d)  w1(1b9d6bcd)                   at least 1.250 s
a-2       balance                     w2(9b1deb4d)  w1(1b9d6bcd), superseded by 8  0.250 s
c         constraint, drain           w2(9b1deb4d)  nobody
d         deleted                     w2(9b1deb4d)

OWNER  NODE  SINCE                 AFTER SILENCE
1      n1    2013-01-01T00:26:40Z  0.000 s
2      n2    2013-01-01T00:26:44Z  3.400 s
"""


def test_the_history_of_a_group_is_read_from_its_files(run: Run, data_dir: Path) -> None:
    assert run("history", "--data-dir", data_dir) == (0, HISTORY, "")


def test_in_a_narrow_terminal_only_causes_and_who_asked_are_folded(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "88")
    heading, *lines = run("history", "--data-dir", data_dir).out.splitlines()
    assert heading.split() == HISTORY.split()[:8]
    begun = [line for line in lines if line[:1].strip()]
    assert [line.split()[:2] for line in begun] == [
        [epoch, "2013-01-01T00:26:40Z"] for epoch in "123"
    ]
    assert [line.rsplit("  ", 1)[1].strip() for line in begun] == [
        "with 2",
        "overtaken",
        "unanswered",
    ]
    assert max(map(len, lines)) <= 88


def test_where_there_is_no_terminal_an_epoch_is_a_line_however_long(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    endless = run("history", "--data-dir", data_dir).out
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr("fairlead.runtime.interfaces.cli.output.printing.WIDTH", 60)
    assert run("history", "--data-dir", data_dir).out == endless


def test_where_a_terminal_is_too_narrow_for_the_columns_an_epoch_is_told_line_by_line(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    told = run("history", "--limit", "2", "--data-dir", data_dir).out
    assert (
        told
        == """\
EPOCH:    2
TIME:     2013-01-01T00:26:40Z
CAUSE:    connector-added flights
BY:       rest
MOVED:    0
NEW:      5
KEPT:     0
SETTLED:  overtaken

EPOCH:    3
TIME:     2013-01-01T00:26:40Z
CAUSE:    session-expired w2
SETTLED:  unanswered
"""
    )


def test_what_waits_and_what_was_left_out_is_told_where_there_is_anything(
    run: Run, cluster: Cluster
) -> None:
    line = {
        "group_epoch": 1,
        "time_ms": 1_357_000_000_000,
        "cause": "worker-drained",
        "subject": "127.0.0.1:8083/w1",
        "actor": "rest",
        "assignment_epoch": 1,
        "settled_after_ms": 24,
        "moved": 0,
        "returned": 0,
        "placed": 0,
        "kept": 2,
        "parked": 1,
        "unplaceable": 3,
        "failed_attempts": 0,
        "displaced": 0,
        "retired": 0,
    }
    found: dict[str, object] = {
        "group_id": "connect",
        "first_epoch": 1,
        "last_epoch": 1,
        "is_trimmed": False,
        "epochs": [line],
    }
    cluster.answer("GET", "/groups/connect/history?limit=50", found)
    heading, told = run("history", "--url", cluster.url).out.splitlines()
    assert heading.split("KEPT")[1].split() == ["PARKED", "LEFT", "OUT", "SETTLED"]
    assert told.split()[-6:] == ["0", "2", "1", "3", "0.024", "s"]


def test_the_history_can_be_as_short_as_wanted(run: Run, data_dir: Path) -> None:
    ended = run("history", "--limit", "1", "--data-dir", data_dir, "-o", "yaml")
    assert [each["group_epoch"] for each in yaml.safe_load(ended.out)["epochs"]] == [3]


def test_the_latest_epoch_is_explained_by_default_and_any_other_on_demand(
    run: Run, data_dir: Path
) -> None:
    assert run("explain", "--data-dir", data_dir) == (0, LOST, "")
    assert run("explain", "2", "--data-dir", data_dir) == (0, PLACED, "")


def test_programs_are_told_the_same(run: Run, data_dir: Path) -> None:
    in_json = run("explain", "2", "--data-dir", data_dir, "-o", "json")
    in_yaml = run("explain", "2", "--data-dir", data_dir, "-o", "yaml")
    told = json.loads(in_json.out)
    assert told == yaml.safe_load(in_yaml.out)
    assert [each["phase"] for each in told["phases"]] == [
        "detect",
        "compute",
        "revoke",
        "release",
        "start",
    ]
    assert {each["reason"] for each in told["handovers"]} == {"new"}


def test_an_epoch_that_is_not_in_the_log_is_an_error_that_says_what_is(
    run: Run, data_dir: Path
) -> None:
    assert run("explain", "9", "--data-dir", data_dir) == (
        1,
        "",
        "fairlead: there is no epoch 9 in the log of group connect: it tells of the epochs 1 to"
        " 3\n",
    )


def test_a_cluster_is_asked_where_its_address_is_given(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/groups/connect/explain/7", MOVED)
    cluster.answer("GET", "/groups/connect/explain/latest", MOVED)
    assert run("explain", "7", "--url", cluster.url) == (0, MOVED_TABLE, "")
    assert run("explain", "--url", cluster.url) == (0, MOVED_TABLE, "")


def test_another_group_and_a_limit_are_handed_on(run: Run, cluster: Cluster) -> None:
    trimmed: dict[str, object] = {
        "group_id": "g",
        "first_epoch": 5,
        "last_epoch": 5,
        "is_trimmed": True,
        "epochs": [],
    }
    cluster.answer("GET", "/groups/g/history?limit=9", trimmed)
    ended = run("history", "--group", "g", "--limit", "9", "--url", cluster.url)
    assert ended == (
        0,
        "no epochs: nobody has joined the group yet\n\n"
        "Trimmed:  what was before epoch 5 is not in the log any more\n",
        "",
    )
    assert cluster.asked == [Asked("GET", "/groups/g/history?limit=9", None)]


@pytest.fixture
def configured(data_dir: Path) -> Path:
    """A settings file that names the data folder."""
    path = data_dir.parent / "node.properties"
    path.write_text(f"data.dir={data_dir}\n")
    return path


def leave_word(data_dir: Path, url: str) -> None:
    note = data_dir / "run" / "node.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({"rest": url}))


def test_a_node_that_runs_is_asked_but_for_those_who_name_the_folder(
    run: Run, cluster: Cluster, configured: Path, data_dir: Path
) -> None:
    cluster.answer("GET", "/groups/connect/explain/latest", MOVED)
    leave_word(data_dir, cluster.url)
    assert run("explain", "--config", configured) == (0, MOVED_TABLE, "")
    assert run("explain", "--data-dir", data_dir) == (0, LOST, "")


def test_without_a_node_that_answers_the_files_are_read(
    run: Run, configured: Path, data_dir: Path
) -> None:
    assert run("explain", "--config", configured) == (0, LOST, "")
    leave_word(data_dir, "http://127.0.0.1:9")
    assert run("explain", "--config", configured) == (0, LOST, "")


def test_without_files_and_without_a_node_both_ways_out_are_named(run: Run) -> None:
    alone = run("history", "--set", "data.dir=nowhere", "--set", "listeners=http://127.0.0.1:9")
    assert (alone.code, alone.out) == (3, "")
    assert alone.err.startswith("fairlead: no cluster answers at http://127.0.0.1:9 ")
    files = run("history", "--data-dir", "nowhere")
    assert files.code == 1
    assert files.err.startswith("fairlead: there is no log at ")


def test_what_waits_for_who_is_away_is_told_and_an_outage_once(run: Run, cluster: Cluster) -> None:
    kept = {"seat": W2, "resources": ["a-1"], "since_ms": 1_357_000_000_000}
    still = {**kept, "until_ms": None, "is_back": False, "superseded_by": None}
    until = {"until_ms": 1_357_000_060_000}
    waits = [
        still,
        {**still, **until, "is_back": True},
        {**still, **until},
        {**still, **until, "superseded_by": 9},
    ]
    told = {**MOVED, "handovers": [handover("a-1", "return", "", freed_by=6)], "waits": waits}
    cluster.answer("GET", "/groups/connect/explain/7", told)
    out = run("explain", "7", "--url", cluster.url).out
    assert "see 6" in out
    ends = [line for line in out.splitlines() if "2013-01-01T00:26:40" in line and "a-1" in line]
    assert ["waits still" in ends[0], "it was back" in ends[1]] == [True, True]
    assert ["others were given it" in ends[2], "goes on in 9" in ends[3]] == [True, True]


NOBODY = ("--set", "listeners=http://127.0.0.1:9")
WORKERS = """\
Key:      workers
Of:       a node's settings
Type:     int
Default:  2
Meaning:  How many workers `fairlead up` runs and keeps running. Allowed: a whole number, from 0 to
          1000.
"""


def test_several_epochs_and_resources_are_explained_one_after_the_other(
    run: Run, data_dir: Path
) -> None:
    alone = [run("explain", each, "--data-dir", data_dir).out for each in ("2", "flights-0")]
    both = run("explain", "2", "flights-0", "--data-dir", data_dir)
    assert both == (0, "\n".join(alone), "")
    as_json = [
        json.loads(run("explain", *each, "--data-dir", data_dir, "-o", "json").out)
        for each in (["2"], ["flights-0"], ["2", "flights-0"])
    ]
    assert as_json[2] == as_json[:2]


def test_a_setting_is_explained_without_a_node_and_without_a_log(run: Run, data_dir: Path) -> None:
    for folder in (data_dir, "nowhere"):
        assert run("explain", "workers", "--data-dir", folder, *NOBODY) == (0, WORKERS, "")
        told = run("explain", "log.level", "--data-dir", folder, *NOBODY)
        assert (told.code, told.out.splitlines()[0], told.err) == (0, "Key:      log.level", "")


def test_what_neither_moved_nor_is_a_setting_may_be_a_key_that_a_node_tells_of(
    run: Run, data_dir: Path, cluster: Cluster
) -> None:
    told = run("explain", "sink.path", "--data-dir", data_dir, *NOBODY)
    moved = "fairlead: nothing of the name sink.path changed hands in the epochs 1 to 3 of group"
    asked = "; what a key of a config means is told by a running node\n"
    assert (told.code, told.out) == (1, "")
    assert (told.err.startswith(moved), told.err.endswith(asked)) == (True, True)
    leave_word(data_dir, cluster.url)
    cluster.answer("GET", "/connector-plugins", [])
    told = run("explain", "sink.path", "--data-dir", data_dir)
    assert told.code == 1
    assert told.err.endswith("; and no key and no setting is called so\n")
