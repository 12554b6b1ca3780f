# pyright: basic
"""Kafka's tools and Connect's workers, from the jars of Maven Central."""

import fcntl
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from fairlead_tests.java_peer import QUICK, compile_java, kafka_jars, tool
from fairlead_tests.kafka.broker import KEPT, VERSION

MODULES = ("kafka-tools", "connect-runtime", "connect-json", "connect-file")
SMALL = ("-Xmx96m", *QUICK, "-Xshare:auto")


def java_command(name: str, *words: str) -> list[str]:
    """Return how a class of those is run; raises `NoPeer` if it is not available."""
    return [tool("java"), *SMALL, "-cp", classpath(), name, *words]


def classpath() -> str:
    """Return the class path, found once for all runs; raises `NoPeer`."""
    KEPT.mkdir(exist_ok=True)
    kept = KEPT / "classpath-tools"
    with (KEPT / "lock-tools").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes of the same run want it, too
        if not (kept.exists() and all(Path(jar).exists() for jar in kept.read_text().split(":"))):
            with TemporaryDirectory() as work:
                jars = kafka_jars(Path(work), MODULES, VERSION, is_whole=True)
            kept.write_text(":".join(jars))
    return kept.read_text()


class Tools:
    """Kafka's command-line tools for one bootstrap address."""

    def __init__(self, streams: tuple[IO[str], IO[str]], bootstrap: str) -> None:
        self._asks, self._says = streams
        self._bootstrap = bootstrap

    def consumer_groups(self, *words: str) -> list[list[str]]:
        """Return the output of `kafka-consumer-groups` as words, without empty lines."""
        return self._run("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", words)

    def groups(self, *words: str) -> list[list[str]]:
        """Return the output of `kafka-groups`."""
        return self._run("org.apache.kafka.tools.GroupsCommand", words)

    def configs(self, *words: str) -> list[list[str]]:
        """Return the output of `kafka-configs`, which is one of a broker's classes."""
        return self._run("kafka.admin.ConfigCommand", words)

    def _run(self, name: str, words: Sequence[str]) -> list[list[str]]:
        told = "\t".join((name, "--bootstrap-server", self._bootstrap, *words))
        self._asks.write(f"{told}\n")
        self._asks.flush()
        lines = iter(self._says.readline, "\0\n")
        return [each.split() for each in lines if each.strip()]


@contextmanager
def tools(folder: Path, bootstrap: str, more: str = "") -> Generator[Tools]:
    """Have a process that runs them, compiled into the folder; raises `NoPeer`.

    `more` are further jars, such as those of a broker.
    """
    jars = ":".join(filter(None, (classpath(), more)))
    source = Path(__file__).with_name("ToolsPeer.java")
    compile_java(source, jars, folder)
    command = [tool("java"), *SMALL, "-cp", f"{folder}:{jars}", "fairlead.tests.ToolsPeer"]
    pipe = subprocess.PIPE
    with (
        (folder / "errors").open("w") as errors,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True) as ran,
    ):
        assert ran.stdin
        assert ran.stdout
        yield Tools((ran.stdin, ran.stdout), bootstrap)
        ran.stdin.close()
