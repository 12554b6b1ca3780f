"""Writes the flights as one file per day into a directory, like an external system.

A file is written under a hidden name and then renamed, so a reader that lists the directory sees a
complete file or none. It is not fsynced: so a killed process leaves no partial file, but a loss of
power may; the next run refuses such a file by its size.

`python -m fairlead.runtime.demo.feeder --out DIR --seconds 30` ends after the last file, on SIGINT,
SIGTERM or SIGHUP after the current file, and with the process that started it. Exit codes: 0 all
files are there, 1 failure, 2 usage, 128 + n stopped by signal n.
"""

import argparse
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...actors.tether import die_with
from .flights import PACKAGE, FlightsError, find_flights, read_flights

DEFAULT_SECONDS = 30.0

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HIDDEN = ".{name}.part"


class FeedError(Exception):
    """The files cannot be written; those written before are complete."""


def split_by_day(csv: bytes) -> dict[str, bytes]:
    """Return the files to write, oldest day first: `2013-01-01.csv` and its content.

    Each has the header of `csv`, whose first three columns must be year, month and day.
    """
    header, *rows = csv.splitlines(keepends=True)
    days: defaultdict[tuple[bytes, ...], list[bytes]] = defaultdict(list)
    for row in rows:
        days[tuple(row.split(b",", 3)[:3])].append(row)
    files = {_file_name(day): header + b"".join(lines) for day, lines in days.items()}
    return dict(sorted(files.items()))


def feed(
    files: Mapping[str, bytes], out: Path, *, seconds: float, wait: Callable[[float], bool]
) -> int:
    """Write the files that are not in `out` yet, one every `seconds / len(files)`.

    `wait(seconds)` pauses and returns whether to stop (as `threading.Event().wait` does); it is
    called before every file. Returns how many of `files` are there: fewer than all if it was
    stopped.

    Raises FeedError if `out` is not a directory or not writable, the disk is full, another feeder
    is writing to it, or a file of the same name has another size.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with _claimed(out):
            missing = _missing(files, out)
            interval = seconds / max(1, len(files))
            start = time.monotonic()
            for done, name in enumerate(missing):
                if wait(max(0.0, start + done * interval - time.monotonic())):
                    return len(files) - len(missing) + done
                _land(out, name, files[name])
    except OSError as error:
        raise FeedError(
            f"Cannot land the flights in {out}: {error.strerror or error}. The files that are "
            "there are whole; started again, the feeder goes on after them."
        ) from error
    return len(files)


def start_feeder(out: Path, *, seconds: float = DEFAULT_SECONDS) -> "subprocess.Popen[str]":
    """Start the feeder as a child process, which writes an error as one line to `stderr`.

    The kernel ends the child when the calling *thread* ends: so call this from a thread that lives
    as long as the feeder should.
    """
    command = [sys.executable, "-P", "-m", __name__, "--out", str(out), "--seconds", str(seconds)]
    return subprocess.Popen(  # noqa: S603
        [*command, "--parent", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def main() -> int:
    """Run the feeder as a separate process, and return its exit code."""
    # Signals are blocked and polled: so the feeder stops only between two files.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    options = _options()
    die_with(options.parent, signal.SIGTERM)
    stopped_by: list[int] = []

    def wait(seconds: float) -> bool:
        told = signal.sigtimedwait(_STOPS, seconds)
        if told is not None:
            stopped_by.append(told.si_signo)
        return told is not None

    try:
        feed(_flights_by_day(), options.out, seconds=options.seconds, wait=wait)
    except (FeedError, FlightsError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 128 + stopped_by[0] if stopped_by else 0


def _flights_by_day() -> dict[str, bytes]:
    archive = find_flights()
    if archive is None:
        raise FlightsError(f"{PACKAGE} is not installed: `fairlead demo` does that.")
    return split_by_day(read_flights(archive))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Lands the flights as one CSV file per day.")
    parser.add_argument("--out", type=Path, required=True, help="directory to land the files in")
    parser.add_argument("--seconds", type=_duration, default=DEFAULT_SECONDS, help="to spread over")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process to end with")
    return parser.parse_args()


def _duration(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 86_400:  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 86400 seconds")
    return seconds


@contextmanager
def _claimed(out: Path) -> Generator[None]:
    # Hidden names are the same in every run, so that a run can remove those of a killed one; so
    # only one feeder may run at a time.
    claim = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FeedError(f"Another feeder is at work in {out}: stop it first.") from error
        yield
    finally:
        os.close(claim)


def _missing(files: Mapping[str, bytes], out: Path) -> list[str]:
    missing: list[str] = []
    for name, content in files.items():
        (out / _HIDDEN.format(name=name)).unlink(missing_ok=True)
        try:
            size = (out / name).stat().st_size
        except FileNotFoundError:
            missing.append(name)
            continue
        if size != len(content):
            raise FeedError(
                f"{out / name} has {size} bytes instead of {len(content)}: it is not the file of "
                "that day, or was cut short. Remove it or choose another directory."
            )
    return missing


def _land(out: Path, name: str, content: bytes) -> None:
    hidden = out / _HIDDEN.format(name=name)
    try:
        hidden.write_bytes(content)
        hidden.rename(out / name)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise


def _file_name(day: tuple[bytes, ...]) -> str:
    year, month, day_of_month = (int(part) for part in day)
    return f"{year:04}-{month:02}-{day_of_month:02}.csv"


if __name__ == "__main__":
    sys.exit(main())
