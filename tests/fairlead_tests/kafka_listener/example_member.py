"""The examples of workers in any language, each in a process of its own."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

from fairlead_tests import TESTS

EXAMPLES = TESTS.parent / "deploy" / "member-over-kafka"
SEAT = (sys.executable, str(TESTS / "fairlead_tests" / "kafka_listener" / "seat_over_kafka.py"))
"""A member of any group that computes, and runs nothing."""
PYTHON = (sys.executable, str(EXAMPLES / "member.py"))


def compiled(folder: Path) -> tuple[str, ...]:
    """Compile the worker in Java, without any warning, and return how it is run."""
    java, source = shutil.which("java") or "java", str(EXAMPLES / "Worker.java")
    lint = ("--release", "17", "-Xlint:all", "-Werror")
    subprocess.run([shutil.which("javac") or "javac", *lint, "-d", str(folder), source], check=True)
    return java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(folder), "Worker"


class Example:
    """The worker, and what it says."""

    def __init__(
        self, port: int, said: Path, group: str = "connect", program: tuple[str, ...] = SEAT
    ) -> None:
        self._said = said
        with said.open("w") as out:
            command = [*program, "127.0.0.1", str(port), group]
            self.process = subprocess.Popen(command, stdout=out, stderr=out)

    def dies(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()

    def leaves(self) -> int:
        """Let it leave the group; return its exit code."""
        self.process.terminate()
        return self.process.wait(30)

    def freezes(self) -> None:
        """Stop its process for a while."""
        self.process.send_signal(signal.SIGSTOP)

    def goes_on(self) -> None:
        """Let its process go on."""
        self.process.send_signal(signal.SIGCONT)

    def text(self) -> str:
        """Return all that it has said."""
        return self._said.read_text()

    def said(self) -> list[list[str]]:
        """Return the words of each line that it has said."""
        return [line.split() for line in self.text().splitlines()]

    def runs(self) -> set[str]:
        """Return what it has begun, and neither ended nor lost."""
        found = set[str]()
        for what, name, *_ in self.said():
            if what == "begins":
                found.add(name)
            elif what in {"ends", "fenced"}:
                found.discard(name)
            elif (what, name) == ("has", "lost"):
                found.clear()
        return found
