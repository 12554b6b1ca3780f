"""Samples of the rows of configs, read by a process of their own, one at a time.

The process has a small JVM, and goes on for a while: the first sample waits for its start, the next
ones do not. One that takes too long is killed with its process.
"""

import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from threading import Lock, Timer
from typing import IO, Final, cast

import msgspec
from msgspec import Struct

from ....node.sampling.brief import SampleRequest, SamplingNode
from ...replies.connectors import SampleDescription
from ..server.errors import ApiError

LONGEST_SECONDS: Final = 75.0
"""How long a sample may take: clients time out after 90 s."""
TURN_SECONDS: Final = 5.0
"""How long a request waits for the sample of another."""
IDLE_SECONDS: Final = 120.0
"""How long the process waits for another request: it takes half a gigabyte."""
_COMMAND: Final = (sys.executable, "-m", "fairlead.runtime.node.sampling")


class _Answer(Struct, frozen=True):
    """A line of the process."""

    sample: SampleDescription | None = None
    """None: it was refused."""
    refusal: str = ""
    """Why there is no sample, for users."""


class Samples:
    """Reads samples; usable from any thread."""

    def __init__(self, node: SamplingNode, seconds: float = LONGEST_SECONDS) -> None:
        """Start no process yet; `seconds` is the time limit of a sample."""
        self._node = node
        self._seconds = seconds
        self._lock = Lock()
        """Held while a sample is read."""
        self._process: subprocess.Popen[bytes] | None = None
        """None until a sample is wanted, and after it was idle."""
        self._idle: Timer | None = None
        """Ends the process when it was idle for `IDLE_SECONDS`."""

    def read(self, name: str, config: Mapping[str, str]) -> SampleDescription:
        """Return the first rows of a config with sealed secrets; raises `ApiError`."""
        if not self._lock.acquire(timeout=TURN_SECONDS):
            busy = "a sample for somebody else is being read: try again in a moment"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
        try:
            answer = self._ask(SampleRequest(name, config))
        finally:
            self._end_when_idle()
            self._lock.release()
        if answer.sample is None:
            raise ApiError(HTTPStatus.BAD_REQUEST, f"no sample was read: {answer.refusal}")
        return answer.sample

    def close(self) -> None:
        """End the process, if there is one."""
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:  # closes its pipes, and waits
                pass

    def _ask(self, request: SampleRequest) -> _Answer:
        begun = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            self.close()  # it has ended while it was idle
        process = self._process = self._process or self._start()
        late = Timer(self._seconds, process.kill)
        late.daemon = True
        late.start()
        try:
            to, of = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
            to.write(request.encode())
            to.flush()
            return msgspec.json.decode(of.readline(), type=_Answer)
        except (OSError, ValueError, msgspec.DecodeError):  # its pipes may be closed
            self.close()
            reason = f"its process has ended (exit code {process.wait()})"
            if time.monotonic() - begun >= self._seconds:
                reason = f"that takes longer than {self._seconds:.0f} s"
            text = f"no sample was read: {reason}; nothing was written"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, text) from None
        finally:
            late.cancel()

    def _start(self) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(  # noqa: S603  # our own command line
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        cast("IO[bytes]", process.stdin).write(self._node.encode())
        return process

    def _end_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = Timer(IDLE_SECONDS, self._end_if_idle)
        self._idle.daemon = True
        self._idle.start()

    def _end_if_idle(self) -> None:
        if self._lock.acquire(blocking=False):
            self.close()
            self._lock.release()
