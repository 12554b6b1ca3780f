"""Day files land whole, once, and stop between two files."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fairlead.runtime.demo.feeder import FeedError, feed, split_by_day, start_feeder
from fairlead.runtime.demo.flights import read_flights
from fairlead_tests.actor_system import runs

FILES = {f"2013-01-{day:02}.csv": b"year,month,day\n2013,1,%d\n" % day for day in range(1, 8)}
PARENT = """
import sys, time
from pathlib import Path
from fairlead.runtime.demo.feeder import start_feeder
print(start_feeder(Path(sys.argv[1]), seconds=60).pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def days(archive: Path) -> dict[str, bytes]:
    return split_by_day(read_flights(archive))


def test_every_flight_is_in_the_file_of_its_day(archive: Path, days: dict[str, bytes]) -> None:
    header, *rows = read_flights(archive).splitlines(keepends=True)
    landed: list[bytes] = []
    for name, content in days.items():
        first, *lines = content.splitlines(keepends=True)
        year, month, day = name.removesuffix(".csv").split("-")
        prefix = f"{int(year)},{int(month)},{int(day)},".encode()
        assert first == header
        assert all(line.startswith(prefix) for line in lines)
        landed += lines
    assert (len(days), sorted(landed)) == (365, sorted(rows))
    assert list(days) == sorted(days)


def test_files_land_whole_and_those_that_are_there_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "new" / "in"
    assert feed(FILES, out, seconds=0, wait=_stop_after(3)) == 3
    first = {path.name: path.stat().st_ino for path in out.iterdir()}
    assert sorted(first) == sorted(FILES)[:3]
    assert feed(FILES, out, seconds=0, wait=threading.Event().wait) == len(FILES)
    assert feed(FILES, out, seconds=0, wait=_stop_after(0)) == len(FILES)
    assert _content(out) == FILES
    assert {name: (out / name).stat().st_ino for name in first} == first


def test_files_are_spread_over_the_time_given(tmp_path: Path) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return False

    feed(FILES, tmp_path, seconds=7000, wait=wait)
    assert [round(seconds, -2) for seconds in waits] == [1000 * n for n in range(7)]


def test_what_a_killed_feeder_left_is_swept_and_landed_anew(tmp_path: Path) -> None:
    (tmp_path / ".2013-01-02.csv.part").write_bytes(b"year,mon")
    feed(FILES, tmp_path, seconds=0, wait=threading.Event().wait)
    assert _content(tmp_path) == FILES


def test_a_file_of_another_size_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "2013-01-02.csv").write_bytes(b"")
    with pytest.raises(FeedError, match=r"2013-01-02\.csv has 0 bytes instead of 24"):
        feed(FILES, tmp_path, seconds=0, wait=threading.Event().wait)


def test_only_one_feeder_is_at_work_in_a_directory(tmp_path: Path) -> None:
    claim = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(claim, fcntl.LOCK_EX)
    with pytest.raises(FeedError, match="Another feeder is at work"):
        feed(FILES, tmp_path, seconds=0, wait=threading.Event().wait)
    os.close(claim)
    assert feed(FILES, tmp_path, seconds=0, wait=threading.Event().wait) == len(FILES)


def test_a_disk_that_refuses_leaves_whole_files_only(tmp_path: Path) -> None:
    files = {**FILES, "2013-01-05.csv": bytes(10_000)}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(FeedError, match=r"File too large.*are whole"):
            feed(files, tmp_path, seconds=0, wait=threading.Event().wait)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert _content(tmp_path) == dict(list(FILES.items())[:4])


def test_a_directory_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"")
    with pytest.raises(FeedError, match="Cannot land the flights"):
        feed(FILES, tmp_path / "in", seconds=0, wait=threading.Event().wait)


def test_no_partial_file_is_ever_visible(tmp_path: Path, days: dict[str, bytes]) -> None:
    child = start_feeder(tmp_path, seconds=1)
    seen: dict[str, int] = {}
    while child.poll() is None:
        visible = [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
        sizes = {path.name: path.stat().st_size for path in visible}
        assert sizes == {name: len(days[name]) for name in sizes}
        seen |= sizes
    assert (child.communicate()[1], child.returncode) == ("", 0)
    assert seen
    assert _content(tmp_path) == days


@pytest.mark.parametrize(
    "number",
    [  # the feeder waits for all of them by one call
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.soak),
        pytest.param(signal.SIGHUP, marks=pytest.mark.soak),
    ],
)
def test_a_signal_stops_the_feeder_between_two_files(
    tmp_path: Path, days: dict[str, bytes], number: signal.Signals
) -> None:
    child = start_feeder(tmp_path, seconds=200)
    _until(lambda: any(tmp_path.glob("*.csv")))
    child.send_signal(number)
    assert (child.communicate(timeout=60)[1], child.returncode) == ("", 128 + number)
    landed = _content(tmp_path)
    assert 0 < len(landed) < 365
    assert landed == dict(list(days.items())[: len(landed)])


def test_the_feeder_ends_with_its_parent(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "in")], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        feeder = psutil.Process(int(parent.stdout.readline()))
        _until(lambda: any(tmp_path.glob("in/*.csv")))
        parent.kill()
    _until(lambda: not runs(feeder))
    assert not list((tmp_path / "in").glob(".*"))


def test_a_feeder_whose_parent_is_gone_lands_nothing(tmp_path: Path, archive: Path) -> None:
    assert archive.exists()
    ended = _run("--out", str(tmp_path), "--parent", "1")
    assert (ended.returncode, _content(tmp_path)) == (128 + signal.SIGTERM, {})


def test_the_process_tells_a_failure_in_one_line(tmp_path: Path, archive: Path) -> None:
    assert archive.exists()
    (tmp_path / "in").write_bytes(b"")
    ended = _run("--out", str(tmp_path / "in"))
    assert ended.returncode == 1
    assert ended.stderr.startswith("Cannot land the flights")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon", "1e9"])
def test_a_senseless_time_is_a_usage_error(tmp_path: Path, seconds: str) -> None:
    assert _run("--out", str(tmp_path), f"--seconds={seconds}").returncode == 2


def _run(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fairlead.runtime.demo.feeder", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _stop_after(files: int) -> Callable[[float], bool]:
    asked = iter(range(files))
    return lambda _: next(asked, None) is None


def _content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)
