"""`log compact` against real log files; no cluster runs."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.conftest import Cluster, Run

from fairlead.events.entries.codec import CONTROL, OFFSETS, encode
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead_tests.golden.fixtures import FOLDER, read_lines

DAY_MS = 86_400_000
AT_MS = 1_700_000_000_000


def write(data: Path, group: str = "connect", epochs: int = 30) -> Path:
    """Leave the logs of a group whose epochs are old, one a day."""
    folder = data / "groups" / group
    with GroupLog.open_writer(folder / "control", group, CONTROL) as log:
        for epoch in range(1, epochs + 1):
            at_ms = AT_MS + epoch * DAY_MS
            record = GroupMetadata(epoch, Cause(Why.MEMBER_JOINED, "h/w1"), at_ms)
            log.append(log.end, [encode(record)], at_ms)
    GroupLog.open_writer(folder / "offsets", group, OFFSETS).close()
    return folder


def compact(run: Run, data: Path, *words: str) -> Sequence[dict[str, object]]:
    ended = run("log", "compact", "--data-dir", str(data), "-o", "json", *words)
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)  # type: ignore[no-any-return]


def test_what_is_compacted_is_told_by_every_view_of_the_history(run: Run, tmp_path: Path) -> None:
    write(tmp_path)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    told = (
        f"epochs 1 to 25 were compacted on {today}: 25 rebalances (25 by member-joined) in 25"
        " records of 2023-11-15 to 2023-12-09"
    )
    plan = compact(run, tmp_path, "--keep-epochs", "5", "--dry-run")
    assert [(each["log"], each["trimmed"], each["history"]) for each in plan] == [
        ("connect control", 25, told),
        ("connect offsets", 0, None),
    ]
    done = compact(run, tmp_path, "--keep-epochs", "5")
    assert [(each["log"], each["trimmed"], each["history"]) for each in done] == [
        ("connect control", 25, told),
        ("connect offsets", 0, None),
    ]
    sizes = [each["bytes_before"] for each in plan]
    assert sizes[1] == done[1]["bytes_before"], "both are the size of the file"
    story = run("log", "story", "--data-dir", str(tmp_path)).out.splitlines()
    assert story[0] == told
    assert story[1].startswith("epoch 26 ")
    history = run("history", "-o", "json", "--data-dir", str(tmp_path))
    assert json.loads(history.out)["compacted"]["rebalances"] == {"member-joined": 25}
    table = run("history", "--data-dir", str(tmp_path)).out
    assert " ".join(table.split()).endswith(f"Before: {told}")
    explained = run("explain", "3", "--data-dir", str(tmp_path))
    assert explained.err == (
        "fairlead: there is no epoch 3 in the log of group connect: it tells of the epochs 26 to"
        f" 30; {told}\n"
    )
    replayed = run("log", "replay", "--until", "3", "--data-dir", str(tmp_path))
    assert replayed.code == 1
    assert told in replayed.err
    again = compact(run, tmp_path, "--keep-epochs", "5")
    assert [each["trimmed"] for each in again] == [0, 0]


def test_files_become_smaller(run: Run, tmp_path: Path) -> None:
    write(tmp_path, epochs=600)
    (control, _) = compact(run, tmp_path, "--keep-epochs", "5")
    assert int(str(control["bytes"])) < int(str(control["bytes_before"])) // 2
    with LogReader.open(tmp_path / "groups" / "connect" / "control", "connect", CONTROL) as log:
        assert log.verify().low == 595


def test_by_default_the_settings_of_the_node_hold(run: Run, tmp_path: Path) -> None:
    write(tmp_path)
    words = ("log", "compact", "--data-dir", str(tmp_path), "-o", "json", "--set")
    kept = run(*words, "log.retention.ms=-1")
    assert [each["trimmed"] for each in json.loads(kept.out)] == [0, 0]
    done = run(*words, "log.retention.ms=86400000")
    assert [each["trimmed"] for each in json.loads(done.out)] == [20, 0], "ten epochs stay"


def test_all_groups_are_compacted_and_one_that_cannot_be_holds_up_no_other(
    run: Run, tmp_path: Path
) -> None:
    write(tmp_path, "a b%2Fc")
    broken = write(tmp_path, "broken") / "control" / "data.mdb"
    broken.write_bytes(broken.read_bytes()[:5000])
    ended = run("log", "compact", "--all", "--keep-epochs", "5", "--data-dir", str(tmp_path))
    assert ended.code == 1
    assert "a b/c control" in ended.out
    assert "broken control: " in ended.err
    assert "Traceback" not in ended.err


def test_a_node_that_runs_is_left_alone(run: Run, tmp_path: Path) -> None:
    folder = write(tmp_path)
    node = RunFolder(tmp_path)
    node.claim()  # a POSIX lock of this process keeps only other ones out
    with GroupLog.open_writer(folder / "control", "connect", CONTROL):
        ended = run("log", "compact", "--keep-epochs", "5", "--data-dir", str(tmp_path))
    node.release()
    assert ended.code == 1
    assert "is open" in ended.err


def test_a_running_node_compacts_its_history_itself(run: Run, cluster: Cluster) -> None:
    path = "/groups/connect/compaction"
    state = {"group_id": "connect", "state": "done", "trimmed": 25, "message": ""}
    history = {"group_id": "connect", "first_epoch": 26, "last_epoch": 30, "is_trimmed": True}
    compacted = {
        "compacted_ms": AT_MS,
        **dict.fromkeys(("first_ms", "last_ms"), AT_MS),
        "first_epoch": 1,
        "last_epoch": 25,
        "records": 25,
        "rebalances": {"worker-lost": 25},
    }
    cluster.answer("PUT", f"{path}?keep_ms=86400000&keep_epochs=5", {**state, "state": "running"})
    cluster.answer("GET", path, state)
    told = {**history, "epochs": [], "compacted": compacted}
    cluster.answer("GET", "/groups/connect/history?limit=1", told)
    words = ("log", "compact", "--keep-days", "1", "--keep-epochs", "5", "--url", cluster.url)
    ended = run(*words, "--all", "-o", "json")
    assert (ended.code, ended.err) == (0, "")
    summary = (
        "epochs 1 to 25 were compacted on 2023-11-14: 25 rebalances (25 by worker-lost) in 25"
        " records of 2023-11-14 to 2023-11-14"
    )
    (done,) = json.loads(ended.out)
    assert done == {"log": "connect control", "trimmed": 25, "history": summary}
    cluster.answer("GET", path, {**state, "state": "none"})
    assert run(*words).err == (
        "fairlead: the history of connect was compacted in part only: the process of the group was"
        " started again. Nothing is lost; the same command does the rest\n"
    )
    assert run("log", "compact", "--dry-run", "--url", cluster.url).code == 2


def test_there_must_be_logs(run: Run, tmp_path: Path) -> None:
    for words in ((), ("other",), ("--all",)):
        ended = run("log", "compact", *words, "--data-dir", str(tmp_path / "none"))
        assert (ended.code, ended.out) == (1, "")
        assert "there" in ended.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("keep", "first", "gap"),
    [
        (12, 22, "what epoch 21 moved"),
        (8, 24, "what epoch 23 moved"),
        (1, None, "what later epochs moved"),
    ],
)
def test_epochs_whose_moves_cannot_be_told_are_named(
    run: Run, tmp_path: Path, keep: int, first: int | None, gap: str
) -> None:
    folder = tmp_path / "groups" / "connect"
    with GroupLog.open_writer(folder / "control", "connect", CONTROL) as log:
        for each in read_lines(FOLDER / "11" / "storm.control"):
            entry = NewEntry(each.type, each.version, each.key, each.value)
            log.append(log.end, [entry], each.timestamp_ms)
    GroupLog.open_writer(folder / "offsets", "connect", OFFSETS).close()
    compact(run, tmp_path, "--keep-epochs", str(keep))
    words = ("--data-dir", str(tmp_path))
    assert json.loads(run("history", "-o", "json", *words).out)["first_epoch"] == first
    for verb in (("history",), ("log", "story")):
        told = " ".join(run(*verb, *words).out.split())
        assert f"; {gap} cannot be told, as the target before is compacted:" in told
