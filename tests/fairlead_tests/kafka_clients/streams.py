# pyright: basic
"""An application of Kafka Streams that counts the records of each key, exactly once."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from fairlead.actors.tether import tied
from fairlead_tests.java_peer import compile_java, kafka_jars, tool
from fairlead_tests.kafka.broker import VERSION
from fairlead_tests.kafka_clients.jars import SMALL, classpath


class Application:
    """One process of it, and the next one after a crash."""

    def __init__(self, command: list[str], said: Path) -> None:
        self._command, self._said = command, said
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._said.open("ab") as said:
            pipe = subprocess.PIPE
            return subprocess.Popen(self._command, stdin=pipe, stdout=said, stderr=said)

    def crash(self) -> None:
        """End the process with SIGKILL, and start it again."""
        self._process.kill()
        self._process.communicate()
        self._process = self._start()

    def close(self) -> None:
        """Close its input, which ends it."""
        assert self._process.stdin
        self._process.stdin.close()
        if self._process.wait(30):
            raise AssertionError(self._said.read_text())


@contextmanager
def counting(
    bootstrap: str, application_id: str, source: str, target: str, folder: Path
) -> Generator[Application]:
    """Count the records of a topic, in a store in memory; raises `NoPeer`."""
    jars = ":".join([*kafka_jars(folder, ["kafka-streams"], VERSION), classpath()])
    compile_java(Path(__file__).with_name("StreamsPeer.java"), jars, folder)
    words = [bootstrap, application_id, source, target, str(folder / "state")]
    name = "fairlead.tests.StreamsPeer"
    command = tied([tool("java"), *SMALL, "-cp", f"{folder}:{jars}", name, *words])
    application = Application(command, folder / "said")
    try:
        yield application
    finally:
        application.close()
