"""Programs of Python that are started as forks of a process which has imported them already."""

import atexit
import contextlib
import ctypes
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from fairlead_tests import TESTS

PR_SET_CHILD_SUBREAPER = 36
STDERR = 2


class Fork:
    """A program that runs, with what `subprocess.Popen` has of it."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for and return the exit code; raises `subprocess.TimeoutExpired`."""
        deadline = time.monotonic() + (timeout or float("inf"))
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal to it while it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


@functools.cache
def fork_server() -> socket.socket:
    """Start the server of this process, and return the line to it; both end together."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # forks come to this process
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "fairlead_tests.cluster.fork_server", str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        mine.close()
        server.wait()

    atexit.register(end)
    return mine


def fork(
    module: str,
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stderr: int = STDERR,
) -> Fork:
    """Run a module as `python -m` does, in a folder; `stdin` and `stdout` are pipes.

    `stderr` is a file descriptor; without it that of this process.
    """
    order = {
        "module": module,
        "arguments": list(arguments),
        "folder": str(folder),
        "environment": dict(environment),
    }
    theirs_in, mine_in = os.pipe()
    mine_out, theirs_out = os.pipe()
    line = fork_server()
    streams = [theirs_in, theirs_out, stderr]
    socket.send_fds(line, [json.dumps(order).encode()], streams)
    with contextlib.ExitStack() as stack:
        for each in streams[:2]:
            stack.callback(os.close, each)
        pid = int(line.recv(32))
    return Fork(pid, os.fdopen(mine_in, "wb"), os.fdopen(mine_out, "rb"))
