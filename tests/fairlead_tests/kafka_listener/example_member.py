"""The example of a member in any language, in a process of its own."""

import subprocess
import sys
from pathlib import Path

from fairlead_tests import TESTS

EXAMPLE = TESTS.parent / "deploy" / "member-over-kafka" / "member.py"


class Example:
    """The member, and what it says."""

    def __init__(self, port: int, said: Path, group: str = "connect") -> None:
        self._said = said
        command = [sys.executable, str(EXAMPLE), "127.0.0.1", str(port), group]
        with said.open("w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)

    def dies(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()

    def leaves(self) -> None:
        """Let it leave the group."""
        self.process.terminate()
        assert self.process.wait() == 0

    def said(self) -> list[list[str]]:
        """Return the words of each line that it has said."""
        return [line.split() for line in self._said.read_text().splitlines()]

    def runs(self) -> set[str]:
        """Return what it has begun and not ended."""
        found = set[str]()
        for what, name, *_ in self.said():
            if what in {"begins", "ends"}:
                (found.add if what == "begins" else found.remove)(name)
        return found
