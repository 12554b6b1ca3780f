# pyright: basic
"""Pairs of connectors in a real worker of Connect, kept busy by a writer, and their import."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

import httpx

from fairlead.runtime.interfaces.cli.importing.properties import read_properties
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

PAUSE_S: Final = 0.02
"""Between two lines of the writer."""
PROGRAM: Final = """\
import sys
from fairlead.runtime.interfaces.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
SECRET_KEY: Final = "producer.override.ssl.truststore.password"
SECRET: Final = "not-for-everybody"
FILE: Final = "org.apache.kafka.connect.file.FileStream"


class LinePair:
    """A source that writes a file's lines to a topic exactly once, and a sink to a file."""

    def __init__(self, name: str, folder: Path) -> None:
        self.names = f"{name}-source", f"{name}-sink"
        self.source, self.target = folder / f"{name}.in", folder / f"{name}.out"
        self.topic = f"{name}-lines"
        self.source.touch()

    def create(self, connect: httpx.Client) -> None:
        """Create both in Connect."""
        reads, writes = self.names
        source = {"connector.class": "FileStreamSource", "file": str(self.source)}
        sink = {"connector.class": f"{FILE}SinkConnector", "file": str(self.target)}
        configs = {
            reads: {**source, "topic": self.topic, SECRET_KEY: SECRET, **ONE_REPLICA},
            writes: {
                **sink,
                "topics": self.topic,
                "consumer.override.isolation.level": "read_committed",
            },
        }
        for name, config in configs.items():
            answer = connect.post("/connectors", json={"name": name, "config": config})
            assert answer.is_success, answer.text

    def written(self) -> list[str]:
        """Return the lines of the sink's file."""
        return self.target.read_text().splitlines() if self.target.exists() else []


class BusyPairs:
    """Pairs in a worker of Connect, all of which get the same lines."""

    def __init__(self, connect: httpx.Client, folder: Path, names: Sequence[str]) -> None:
        self.connect = connect
        self.pairs = [LinePair(each, folder) for each in names]
        self.connectors = [name for pair in self.pairs for name in pair.names]
        self.lines: list[str] = []
        self._is_over = Event()

    @contextmanager
    def running(self) -> Generator[None]:
        """Have all at work in Connect in the context; they are deleted there at its end."""
        for pair in self.pairs:
            pair.create(self.connect)
        writer = Thread(target=self._write)
        writer.start()
        try:
            self.flow()
            yield
        finally:
            self._is_over.set()
            writer.join()
            for name in self.connectors:
                self.connect.delete(f"/connectors/{name}")

    def states(self, rest: httpx.Client) -> dict[str, str]:
        """Return the state of each of the connectors on one side, if it is there."""
        found = rest.get("/connectors?expand=status").json()
        states = {name: each["status"]["connector"]["state"] for name, each in found.items()}
        return {name: states[name] for name in self.connectors if name in states}

    def flow(self) -> None:
        """Wait until what is written now has come through all pairs."""
        until(lambda: self.lines, "the writer writes")
        last = self.lines[-1]
        until(lambda: all(last in each.written()[-5000:] for each in self.pairs), "lines flow")

    def finish(self) -> None:
        """Write no more, and wait until all has come through each pair."""
        self._is_over.set()
        until(lambda: all({*self.lines} <= {*each.written()} for each in self.pairs), "the end")

    def verify(self) -> None:
        """Write no more; each line has to come through each pair once."""
        self.finish()
        for each in self.pairs:
            assert each.written() == self.lines, each.names

    def _write(self) -> None:
        files = [pair.source.open("a", buffering=1) for pair in self.pairs]
        while not self._is_over.is_set():
            line = f"{len(self.lines):08}"
            self.lines.append(line)
            for file in files:
                file.write(f"{line}\n")
            self._is_over.wait(PAUSE_S)
        for file in files:
            file.close()


class ImportCommand:
    """The command `import` between a worker and a node, as a process of its own."""

    def __init__(self, node: ConnectNode, properties: Path) -> None:
        """Import from the worker with these properties."""
        self._node, self._properties = node, properties
        self.record = properties.parent / "import.jsonl"

    def run(self, *words: str, until_line: str = "", code: int = 0) -> str:
        """Run it, and return its output; kill it once it has printed a line with this end."""
        with self._process(*words) as process:
            assert process.stdout is not None
            printed: list[str] = []
            for line in process.stdout:
                printed.append(line)
                if until_line and line.rstrip().endswith(until_line):
                    process.kill()
                    break
        output = "".join(printed)
        print(output, flush=True)
        assert process.returncode == (-signal.SIGKILL if until_line else code), output
        return output

    def run_for(self, seconds: float, *words: str) -> None:
        """Run it, and kill it after a time, unless it has ended before."""
        with self._process(*words) as process:
            try:
                output, _ = process.communicate(timeout=seconds)
                assert process.returncode == 0, output
            except subprocess.TimeoutExpired:
                process.kill()

    def _process(self, *words: str) -> "subprocess.Popen[str]":
        given = {
            "--from": read_properties(self._properties)["listeners"],
            "--worker-config": self._properties,
            "--url": self._node.rest.base_url,
            "--record": self.record,
        }
        options = [str(word) for each in given.items() for word in each]
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "import", *words, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
