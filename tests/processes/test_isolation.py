"""A process with third-party code has a log, a group and memory of its own, and stays one."""

import subprocess
import sys
from pathlib import Path

import pytest

APART = """
import logging, os, sys
from pathlib import Path
from fairlead.runtime.processes.isolation import isolate, show_in_title
isolate(Path(sys.argv[1]), 17)
print("printed")
logging.getLogger("shop").warning("logged")
os.system("echo told by a child")
with show_in_title("forking"):
    forked = os.fork()
if not forked:
    print("a fork came back")
    os._exit(0)
print(os.waitpid(forked, 0) == (forked, 0), os.getpgrp() == os.getpid())
"""


def test_what_is_printed_and_logged_goes_to_the_log_and_a_fork_goes_no_further(
    tmp_path: Path,
) -> None:
    log = tmp_path / "assignor.log"
    done = subprocess.run(
        [sys.executable, "-c", APART, str(log)], check=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    first, *rest = log.read_text().splitlines()
    assert first == "-- process 17"
    assert rest[0] == "printed"
    assert rest[1].endswith(" shop: logged")
    assert rest[2:] == ["told by a child", "True True"]


LIMITED = """
import resource, sys
from fairlead.runtime.processes.isolation import limit_memory
born_with, asked = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_DATA, (born_with, born_with))
limit_memory(asked, is_for_children=True)
print(*resource.getrlimit(resource.RLIMIT_DATA))
"""


@pytest.mark.parametrize(
    ("born_with", "asked", "gets"), [(512, 1024, 512), (1024, 512, 512), (-1, 512, 512)]
)
def test_the_lower_of_two_limits_holds(born_with: int, asked: int, gets: int) -> None:
    in_bytes = (str(max(-1, each << 20)) for each in (born_with, asked))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *in_bytes], check=True, capture_output=True, text=True
    )
    assert done.stdout == f"{gets << 20} {gets << 20}\n"


FILLED = """
from fairlead.runtime.processes.isolation import has_room, limit_memory
limit_memory(256 << 20, is_for_children=True)
told, hoard = [has_room(256 << 20)], []
try:
    while True:
        hoard.append(bytearray(1 << 20))
except MemoryError:
    told.append(has_room(256 << 20))
hoard.clear()
print(*told, has_room(256 << 20))
"""


def test_a_process_knows_whether_its_memory_is_full() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLED], check=True, capture_output=True, text=True
    )
    assert done.stdout == "True False True\n"
