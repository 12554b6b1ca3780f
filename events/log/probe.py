"""Checking a log that may kill the process that opens it.

LMDB answers damage with SIGBUS or SIGABRT as often as with an error. So a child process does the
checking, and its death by a signal is a finding like any other.
"""

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from . import errors as log_errors
from .check import Report
from .errors import CorruptLogError, LogError
from .files import find_problems
from .owner import recorded_owner
from .process import is_alive
from .reader import LogReader
from .tables import LogKind

PROBE_TIMEOUT_S: Final = 600.0


def probe(
    path: Path,
    log_id: str | None = None,
    kind: LogKind | None = None,
    *,
    timeout_s: float = PROBE_TIMEOUT_S,
) -> Report:
    """Check the log at `path` as thoroughly as can be, in a child process.

    Raises what opening and `verify()` raise; `CorruptLogError` also if the child is killed by a
    signal or does not finish in `timeout_s` seconds.
    """
    expected = json.dumps([log_id, kind and [kind.name, kind.other, sorted(kind.foreign)]])
    command = [sys.executable, "-P", "-m", __name__, str(path), expected]
    try:
        child = subprocess.run(  # noqa: S603  (this very module)
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CorruptLogError(
            f"checking {path} did not finish in {timeout_s:.0f} s: keep the files, restore the"
            " newest backup"
        ) from error
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        raise CorruptLogError(
            f"{path} is damaged: checking it ended in {name}. Keep the files and restore the"
            " newest backup"
        )
    return _answer(path, child.stdout, child.stderr)


def _answer(path: Path, stdout: bytes, stderr: bytes) -> Report:
    try:
        answer = json.loads(stdout)
    except ValueError as error:
        tail = stderr.decode(errors="replace").strip()[-200:]
        raise LogError(f"the check of {path} could not be run: {tail}") from error
    if "report" in answer:
        return Report(*answer["report"])
    kind = getattr(log_errors, answer["error"], LogError)
    raise kind(answer["message"])


def _check(path: Path, log_id: str | None, kind: LogKind | None) -> Report:
    with LogReader.open(path, log_id, kind) as log:
        report = log.verify()
        owner = recorded_owner(path)
        # A walk over the pages means something only while nobody writes to them.
        if (owner is None or not is_alive(owner)) and (found := find_problems(path)):
            raise CorruptLogError(f"{path} has unsound pages: {found[0]} ({len(found)} in all)")
        return report


def main(path: str, expected: str) -> None:
    """Print the report, or the error, as JSON: the child's part of `probe`."""
    log_id, told = json.loads(expected)
    kind = LogKind(told[0], told[1], frozenset(told[2])) if told else None
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer: dict[str, object] = {"report": _check(Path(path), log_id, kind)}
    except LogError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
