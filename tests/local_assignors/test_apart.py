"""What sets an assignor process apart: its log, its group, and that it stays one process."""

import subprocess
import sys
from pathlib import Path

APART = """
import logging, os, sys
from pathlib import Path
from fairlead.runtime.assignors.apart import doing, set_apart
set_apart(Path(sys.argv[1]), 17)
print("printed")
logging.getLogger("shop").warning("logged")
os.system("echo told by a child")
with doing("forking"):
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
