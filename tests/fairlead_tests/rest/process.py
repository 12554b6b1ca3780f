"""The real REST process."""

import os
import re
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from fairlead.runtime.config.references.rest_brief import RestBrief
from fairlead_tests.cluster.forks import Fork, fork

MODULE = "fairlead.runtime.interfaces.rest.__main__"
TIMEOUT_SECONDS = 90


def arguments(data_dir: Path, *more: str) -> list[str]:
    return ["--data-dir", str(data_dir), "--listener", "http://127.0.0.1:0", *more]


@contextmanager
def running(
    data_dir: Path, *more: str, brief: RestBrief | None = None, module: str = MODULE
) -> Generator[tuple[Fork, httpx.Client]]:
    """Run the REST process of a data folder, on a port that is free."""
    words = [*more, *(("--brief",) if brief else ())]
    process = fork(module, arguments(data_dir, *words), data_dir, os.environ)
    with process.stdin as pipe:
        pipe.write(brief.encode() if brief else b"")
    process.stdout.close()
    try:
        with httpx.Client(base_url=listening(data_dir), timeout=TIMEOUT_SECONDS) as client:
            yield process, client
    finally:
        process.kill()
        process.wait()


class EndedProcess(NamedTuple):
    """How a process ended that could not start."""

    code: int
    out: bytes
    err: str


def ended(*arguments: str) -> EndedProcess:
    """Run the REST process to its end."""
    with tempfile.TemporaryFile() as errors:
        process = fork(MODULE, arguments, Path.cwd(), os.environ, errors.fileno())
        process.stdin.close()
        with process.stdout:
            out = process.stdout.read()
        code = process.wait(TIMEOUT_SECONDS)
        errors.seek(0)
        return EndedProcess(code, out, errors.read().decode())


def listening(data_dir: Path) -> str:
    """Wait until a process logs its address, and return that."""
    log, deadline = data_dir / "logs" / "rest.log", time.monotonic() + TIMEOUT_SECONDS
    while True:
        told = log.read_text() if log.exists() else ""
        if found := re.search(r"listening at (\S+)\n", told):
            return found[1]
        assert time.monotonic() < deadline, told
        time.sleep(0.01)
