"""The guard of a sandbox limits it, keeps its log small, and ends all that it has started."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fairlead.runtime.processes import guard
from fairlead_tests.actor_system import eventually, runs, title_of


def test_the_end_of_a_log_that_is_too_large_is_put_aside_and_writers_begin_anew(
    tmp_path: Path,
) -> None:
    log = tmp_path / "assignor.log"
    with log.open("ab", buffering=0) as writer:
        for text in (b"older", b"-", b"newer"):
            writer.write(text)
        guard.rotate_log(log, 11)
        assert log.read_bytes() == b"older-newer"
        guard.rotate_log(log, 5)
        writer.write(b"newest")
    found = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert found == {"assignor.log": b"newest", "assignor.log.1": b"newer"}
    assert {each.stat().st_mode & 0o077 for each in tmp_path.glob("*.1")} == {0}


def test_a_log_is_emptied_also_where_there_is_no_room_beside_it(tmp_path: Path) -> None:
    log = tmp_path / "assignor.log"
    log.write_bytes(b"too much")
    (tmp_path / "assignor.log.1").mkdir()
    guard.rotate_log(log, 5)
    assert log.read_bytes() == b""


def test_a_log_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    guard.rotate_log(tmp_path / "assignor.log", 0)
    assert list(tmp_path.iterdir()) == []


def guarded(tmp_path: Path, code: str, most_mib: int = 64) -> subprocess.Popen[bytes]:
    """A guard of a Python program, which can say `told` what it wants to be known."""
    program = f"import os, subprocess, sys, time\nfrom pathlib import Path\n{TOLD}\n{code}"
    command = [sys.executable, "-c", program, str(tmp_path / "told")]
    command = guard.guarded(command, tmp_path / "log", most_mib << 20)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)


TOLD = """
def told(*numbers):
    made = Path(sys.argv[1] + ".new")
    made.write_text(" ".join(map(str, numbers)))
    made.rename(sys.argv[1])
"""


def started(tmp_path: Path) -> list[psutil.Process]:
    """The processes that a guarded program has named."""
    file = tmp_path / "told"
    eventually(file.exists, "it has told")
    return [psutil.Process(int(each)) for each in file.read_text().split()]


ESCAPES = {
    "setsid": "told(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)",
    "double fork": """
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    told(os.getpid())
    time.sleep(600)
""",
    "double fork without environment": """
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    told(os.getpid())
    os.execve("/bin/sleep", ["sleep", "600"], {})
""",
    "deaf to signals": """
import ctypes, signal
if not os.fork():
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    for each in range(1, 65):
        try: signal.signal(each, signal.SIG_IGN)
        except (OSError, ValueError): pass
    told(os.getpid())
    time.sleep(600)
""",
}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("how", ["told to end", "program ended"])
def test_what_a_program_has_started_ends_with_it_wherever_it_went(
    tmp_path: Path, escape: str, how: str
) -> None:
    wait = "time.sleep(600)" if how == "told to end" else "time.sleep(0.5); sys.exit(3)"
    with guarded(tmp_path, f"{escape}\n{wait}") as process:
        left = started(tmp_path)
        if how == "told to end":
            process.terminate()
        assert process.wait(60) == (0 if how == "told to end" else 3)
        assert not any(map(runs, left))


def test_what_forks_without_end_is_ended(tmp_path: Path) -> None:
    bomb = """
told(os.getpid())
first, generation = os.getpid(), 0
while True:
    time.sleep(0.04)
    generation += 1
    if not os.fork():
        os.setsid()
    elif generation > 6:  # 64 are enough, each of which leaves another in its place
        time.sleep(600) if os.getpid() == first else os._exit(0)
"""
    with guarded(tmp_path, f"import resource\n{LIMITED}\n{bomb}", 4_000) as process:
        started(tmp_path)
        time.sleep(0.4)
        process.terminate()
        assert process.wait(60) == 0
        mark = str(tmp_path / "told")
        assert not [each for each in psutil.process_iter() if mark in title_of(each)]


LIMITED = """
end = time.monotonic() + 5  # should it get away
real = os.fork
def fork():
    if time.monotonic() > end: os._exit(0)
    return real()
os.fork = fork
"""


def test_all_ends_with_who_started_the_guard(tmp_path: Path) -> None:
    code = ESCAPES["setsid"] + "\ntime.sleep(600)"
    parent = f"""
import subprocess, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from processes.test_guard import guarded
guarded(Path({str(tmp_path)!r}), {code!r}).wait()
"""
    with subprocess.Popen([sys.executable, "-c", parent]) as starter:
        left = started(tmp_path)
        below = psutil.Process(starter.pid).children(recursive=True)
        starter.kill()
        eventually(lambda: not any(map(runs, [*left, *below])), "all are gone")


HOARDS = {
    "own": "kept = bytearray(b'x' * (200 << 20))",
    "shared": "import mmap\nkept = mmap.mmap(-1, 200 << 20)\nkept.write(b'x' * (200 << 20))",
    "a file in memory, written and not mapped": """
file = os.memfd_create("kept")
for _ in range(200): os.write(file, b"x" * (1 << 20))
""",
    "of a child that went away": """
if not os.fork():
    os.setsid()
    kept = bytearray(b"x" * (200 << 20))
    time.sleep(600)
""",
    "of many, each a little": """
for _ in range(8):
    if not os.fork():
        kept = bytearray(os.urandom(25 << 20))
        time.sleep(600)
""",
}


@pytest.mark.parametrize("hoard", HOARDS.values(), ids=HOARDS)
def test_what_is_kept_in_memory_counts_however_it_was_come_by(tmp_path: Path, hoard: str) -> None:
    with guarded(tmp_path, f"{hoard}\ntime.sleep(600)") as process:
        assert process.wait(60) == guard.TOO_MUCH


def test_pages_that_several_processes_have_count_once(tmp_path: Path) -> None:
    shared = """
import mmap
kept = mmap.mmap(-1, 40 << 20)
kept.write(b"x" * (40 << 20))
for _ in range(4):
    if not os.fork():
        sum(kept[::4096])
        time.sleep(600)
told(os.getpid())
time.sleep(600)
"""
    with guarded(tmp_path, shared) as process:
        started(tmp_path)
        time.sleep(1)
        assert process.poll() is None
        process.terminate()


def test_descendants_are_found_also_where_the_kernel_tells_parents_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nested = "import subprocess; subprocess.run(['sleep', '600'])"
    with subprocess.Popen([sys.executable, "-c", nested]) as child:
        eventually(lambda: len(guard.descendants(child.pid)) == 1, "it has a child")
        found = guard.descendants(os.getpid())
        monkeypatch.setattr(guard, "HAS_CHILDREN", False)
        assert sorted(guard.descendants(os.getpid())) == sorted(found)
        for each in guard.descendants(child.pid):
            os.kill(each, 9)
        child.kill()
