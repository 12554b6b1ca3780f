"""The real REST process."""

import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

TIMEOUT_SECONDS = 30


def arguments(data_dir: Path, *more: str) -> list[str]:
    return ["--data-dir", str(data_dir), "--listener", "http://127.0.0.1:0", *more]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "fairlead.runtime.interfaces.rest", *arguments]


@contextmanager
def running(data_dir: Path, *more: str) -> Generator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """Run the REST process of a data folder, on a port that is free."""
    process = subprocess.Popen(command(*arguments(data_dir, *more)), cwd=data_dir)
    try:
        with httpx.Client(base_url=listening(data_dir), timeout=TIMEOUT_SECONDS) as client:
            yield process, client
    finally:
        process.kill()
        process.wait()


def listening(data_dir: Path) -> str:
    """Wait until a process logs its address, and return that."""
    log, deadline = data_dir / "logs" / "rest.log", time.monotonic() + TIMEOUT_SECONDS
    while True:
        told = log.read_text() if log.exists() else ""
        if found := re.search(r"listening at (\S+)\n", told):
            return found[1]
        assert time.monotonic() < deadline, told
        time.sleep(0.01)
