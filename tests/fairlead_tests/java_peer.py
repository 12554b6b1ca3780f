"""Runs Kafka's real classes in a separate process, as a peer for comparison.

Their jars come from Maven Central, through the Ivy that is part of Spark, into Ivy's cache; the
program that calls them is compiled at run time. Both need the network or a cache, and a `javac`.
"""

import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyspark

KAFKA = "org.apache.kafka"
BESIDE = ("slf4j-api-*", "jackson-core-2*", "jackson-databind-2*", "jackson-annotations-2*")
"""Dependencies of Kafka that Spark includes."""

SPARK_JARS = Path(pyspark.__file__).parent / "jars"
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Of JVMs that live for seconds: the quick compiler alone takes half of what both do."""
FETCH_SECONDS = 150
LAST_LINES = 5
"""How many lines of a failed tool's output are shown."""


class NoPeer(Exception):  # noqa: N818  # what is the case, not what went wrong
    """The peer is not available; the message says why."""


@contextmanager
def running(
    folder: Path, source: Path, modules: Sequence[str], version: str, *options: str
) -> Generator[tuple[IO[str], IO[str]]]:
    """Run a Java program, compiled into the folder, and yield its input and its output.

    `modules` are artifacts of the group `org.apache.kafka`, or `group:artifact:version`; `options`
    those of the JVM. Raises `NoPeer` if it is not available.
    """
    classpath = _compiled(folder, source, [*kafka_jars(folder, modules, version), *_beside()])
    name = f"{_package(source)}.{source.stem}"
    command = [tool("java"), *options, "-cp", classpath, name]
    quiet = subprocess.DEVNULL
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, encoding="utf-8") as ran:
        assert ran.stdin
        assert ran.stdout
        yield ran.stdin, ran.stdout


def kafka_jars(
    folder: Path, modules: Sequence[str], version: str, *, is_whole: bool = False
) -> list[str]:
    """Return the jars of modules and their dependencies, fetched unless Ivy has them.

    Raises `NoPeer` if they are not available.
    """
    how = 'conf="default-&gt;default"' if is_whole else 'transitive="false"'
    places = [(each if ":" in each else f"{KAFKA}:{each}:{version}").split(":") for each in modules]
    modules = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" {how}/>' for org, name, rev in places
    )
    wanted = folder / "ivy.xml"
    wanted.write_text(
        '<ivy-module version="2.0"><info organisation="none" module="peer"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{modules}</dependencies></ivy-module>"
    )
    settings = folder / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="central"/>'
        '<caches lockStrategy="artifact-lock-nio"/>'  # others fetch at the same time
        '<resolvers><ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>'
    )
    found = folder / "classpath"
    (ivy,) = SPARK_JARS.glob("ivy-*.jar")
    command = [tool("java"), *QUICK, "-jar", str(ivy), "-ivy", str(wanted)]
    command += ["-settings", str(settings)]
    command += ["-types", "jar", "bundle", "-cachepath", str(found)]
    run_tool(command, "Kafka's jars could not be had")
    return found.read_text().strip().split(":")


def _beside() -> list[str]:
    return [str(jar) for pattern in BESIDE for jar in SPARK_JARS.glob(f"{pattern}.jar")]


def _compiled(folder: Path, source: Path, jars: list[str]) -> str:
    """Return the class path with the peer on it."""
    classes = folder / "classes"
    compile_java(source, ":".join(jars), classes)
    return ":".join([str(classes), *jars])


def compile_java(source: Path, classpath: str, classes: Path) -> None:
    """Compile a program into a folder; raises `NoPeer`."""
    command = [tool("javac"), *(f"-J{each}" for each in QUICK), "-cp", classpath]
    run_tool([*command, "-d", str(classes), str(source)], "the peer does not compile")


def run_tool(command: list[str], trouble: str) -> None:
    """Run a tool; raises `NoPeer` with the end of its output if it fails."""
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoPeer(f"{trouble}: no answer in {FETCH_SECONDS} s") from error
    if ran.returncode:
        lines = [line.strip(": \t") for line in (ran.stdout + ran.stderr).splitlines()]
        raise NoPeer("; ".join([trouble, *list(filter(None, lines))[-LAST_LINES:]]))


def tool(name: str) -> str:
    """Return the path of a program; raises `NoPeer` if it is not installed."""
    if found := shutil.which(name):
        return found
    raise NoPeer(f"PATH has no {name}")


def _package(source: Path) -> str:
    first = source.read_text().splitlines()[0]
    return first.removeprefix("package ").removesuffix(";")
