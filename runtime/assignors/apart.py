"""What sets the assignor process apart from the others of its node.

It leads a process group of its own. What its assignors print or log goes to a log of its own, and
so does the stack of where it is when it is told to abort (`SIGABRT`) or crashes. Its title tells
what it is doing.
"""

import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from setproctitle import getproctitle, setproctitle

from ..cluster.process_group import DOING

OWNER_ONLY = 0o600
FATAL = (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS, signal.SIGILL)


def set_apart(log_file: Path, known_as: int) -> None:
    """Set this process apart; its part of the log begins with the id that it is known by."""
    os.setpgid(0, 0)
    _write_to(log_file, known_as)
    _log_to_stderr()
    for number in FATAL:
        signal.signal(number, signal.SIG_DFL)  # an actor's own handler would have it crash for ever
    faulthandler.enable(2)


@contextmanager
def doing(what: str) -> Generator[None]:
    """Tell in the title of this process what it does.

    Code of others may fork there. Its child would come back as well, as a second assignor
    process that answers to the same address: it goes no further.
    """
    usual, me = getproctitle(), os.getpid()
    setproctitle(f"{usual}{DOING}{what}")
    try:
        yield
    finally:
        if os.getpid() != me:
            os._exit(0)
        setproctitle(usual)


def _write_to(log_file: Path, known_as: int) -> None:
    """Have all that this process and its children print go to a file, or else nowhere."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        found = os.open(log_file, flags, OWNER_ONLY)
    except OSError:
        found = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(found, 1)
    os.dup2(found, 2)
    os.close(found)
    with suppress(OSError):
        os.write(2, f"-- process {known_as}\n".encode())
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _log_to_stderr() -> None:
    """Have what assignors log go where they print, of which there is never too much."""
    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s")
    )
    logging.root.handlers[:] = [to_stderr]
