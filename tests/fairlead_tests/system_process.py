"""The first process of an isolated actor system; `actor_system` starts it.

Processes of nodes under test begin by `watch_files` too, so nothing here imports pytest.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import IO, Any

from fairlead.actors.transport.ports import SystemAddress
from fairlead.actors.transport.system import start_system

OUTSIDE = "written-outside"
"""The file that lists files written outside the system's folder."""


def watch_files(folder: Path) -> None:
    """Record every file that this process and its forks write outside a folder."""
    home, null = str(folder), os.open(folder / OUTSIDE, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if (writes or event in {"os.mkdir", "os.rename"}) and isinstance(args[0], str | bytes):
            path = os.path.realpath(os.fsdecode(args[0]))
            if not path.startswith((home, "/dev/", "/proc/")):
                os.write(null, f"{event} {path}\n".encode())

    sys.addaudithook(hook)


def main(orders: IO[str], answers: IO[str]) -> None:
    """Start a system as ordered, and shut it down when there are no more orders."""
    order = json.loads(orders.readline())
    folder = Path.cwd().resolve()
    watch_files(folder)
    from fairlead.actors.transport import tcp  # noqa: PLC0415

    for name, value in order["settings"].items():
        setattr(tcp, name, value)
    address = SystemAddress(
        order["host"], order["port"], bytes.fromhex(order["key"]), order["node"]
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    system = start_system(address, log_file=folder / "logs" / "actors.log", name="test")
    answers.write("ready\n")
    answers.flush()
    orders.read()
    system.shutdown()


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
