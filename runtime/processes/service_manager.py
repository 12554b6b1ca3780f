"""Messages to the service manager that started this process, as systemd reads them (sd_notify).

The protocol is one datagram of `NAME=value` lines to the Unix socket that `NOTIFY_SOCKET` names;
a name that begins with `@` is in Linux's abstract namespace. No descriptor stays open, and an error
is ignored: a service manager that does not listen is no reason to end.
"""

import os
import socket
import time
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Final

SOCKET: Final = "NOTIFY_SOCKET"
_VARIABLES: Final = (SOCKET, "WATCHDOG_USEC", "WATCHDOG_PID")
_START_USEC: Final = 60_000_000
"""By how much a start that goes on is extended with each message."""
_START_SECONDS: Final = 5.0
"""How often it is."""
_PINGS: Final = 3
"""How many messages a watchdog gets in the time in which it needs one."""


class ServiceManager:
    """Where the state of this process is reported; nowhere, if nobody asked for it."""

    def __init__(
        self, environ: MutableMapping[str, str] | None = None, pid: int | None = None
    ) -> None:
        """Read and remove the variables of the service manager: they are not for child processes.

        Without an environment there is no service manager.
        """
        variables = {name: environ.pop(name, "") for name in _VARIABLES} if environ else {}
        self._address = variables.get(SOCKET, "")
        if self._address.startswith("@"):
            self._address = f"\0{self._address[1:]}"
        self._pause_seconds = _pause_seconds(variables, os.getpid() if pid is None else pid)
        """The pause between two messages to the watchdog; 0: there is none."""
        self._next = 0.0
        """When the next repeated message is due, on the monotonic clock."""
        self._status = ""
        """The last line that was sent for people."""

    def tell_starting(self, status: str) -> None:
        """Report that the start goes on: a long log may take longer than any time limit."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _START_SECONDS
            self._send(f"EXTEND_TIMEOUT_USEC={_START_USEC}", f"STATUS={status}")

    def tell_ready(self, status: str) -> None:
        """Report that the start is over."""
        self._next, self._status = 0.0, status
        self._send("READY=1", f"STATUS={status}")

    def tell_alive(self, status: str, *, is_well: bool) -> None:
        """Report the state; the watchdog hears only of one that is well."""
        if status != self._status:
            self._status = status
            self._send(f"STATUS={status}")
        now = time.monotonic()
        if is_well and self._pause_seconds and now >= self._next:
            self._next = now + self._pause_seconds
            self._send("WATCHDOG=1")

    def tell_stopping(self, status: str) -> None:
        """Report that the end has begun."""
        self._send("STOPPING=1", f"STATUS={status}")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        message = "\n".join(" ".join(line.splitlines()) for line in lines)
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)  # a full queue must not hold the node up
            sender.sendto(message.encode(errors="replace"), self._address)


def _pause_seconds(variables: MutableMapping[str, str], pid: int) -> float:
    """Return how often the watchdog is to be told; 0: there is none for this process."""
    if variables.get("WATCHDOG_PID") not in {None, "", str(pid)}:
        return 0.0
    try:
        return int(variables.get("WATCHDOG_USEC") or 0) / 1e6 / _PINGS
    except ValueError:
        return 0.0
