"""Copies of the repository, and pytest in them."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

HOUSE: Final = Path(__file__).parents[3]


def known_files() -> list[str]:
    """Return the paths of what git knows of the repository and is there."""
    known = subprocess.run(["git", "ls-files", "-z"], cwd=HOUSE, capture_output=True, check=True)
    return [each for each in known.stdout.decode().split("\0") if each and (HOUSE / each).exists()]


def copied(scratch: Path) -> Path:
    """Copy what git knows of the repository to a new folder, which is its package as well."""
    to = scratch / "fairlead"
    for name in known_files():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HOUSE / name, to / name, follow_symlinks=False)
    return to


@contextmanager
def pytest_in(
    copy: Path, options: Sequence[str], told: Mapping[str, str], handed: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Start pytest in a copy, with a folder for its files beside it; at the end kill all of it."""
    env = {**os.environ, "PYTEST_DEBUG_TEMPROOT": str(copy.parent), **told}
    env["PYTHONPATH"] = f"{copy.parent}:{copy}/tests"
    quiet = ["-q", "--no-header", "--tb=no", "-p", "fairlead_tests.mutants.plugin"]
    started = subprocess.Popen(
        [sys.executable, "-m", "pytest", *quiet, *options],
        cwd=copy,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=handed,
    )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)  # what a test left behind
        started.wait()
