"""A service manager as a program sees it: the socket that it reports to, and how it is started."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlead_tests.cluster.remains import environment_in

WAIT_SECONDS = 60.0
NOOP = ("--set", "engine=noop", "--set", "listeners=http://127.0.0.1:0", "--set", "workers=1")


@dataclass
class Reports:
    """The messages of a service, in their order."""

    socket: socket.socket
    messages: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def wait_for(self, name: str, text: str = "") -> dict[str, str]:
        """Return the next message that has a name, with this text in its value."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            self.socket.settimeout(max(0.01, deadline - time.monotonic()))
            received = self.socket.recv(4096).decode()
            self.messages.append(dict(line.split("=", 1) for line in received.splitlines()))
            if name in self.messages[-1] and text in self.messages[-1][name]:
                return self.messages[-1]

    def drop(self) -> None:
        """Drop what has come by now."""
        self.socket.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.socket.recv(4096)


@contextlib.contextmanager
def listening(address: str) -> Generator[Reports]:
    """Listen at the address of a NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(address.replace("@", "\0", 1))
        yield Reports(bound)


@contextlib.contextmanager
def running(
    command: Sequence[str], folder: Path, **variables: str
) -> Generator["subprocess.Popen[str]"]:
    """Run a program, and end it with all that it started."""
    environment: Mapping[str, str] = {**environment_in(folder), **variables}
    with (folder / "output").open("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(WAIT_SECONDS)
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, 9)
            process.wait()
