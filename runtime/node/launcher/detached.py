"""`up --detach`: a node in a session of its own, which goes on when the terminal is closed.

The node is a fork of this process, before anything of it was opened. It reports as it would to
a service manager, through a socket in a folder of this user's alone, so "ready" has one meaning.
This process waits until the node is ready or has ended, and prints what it wrote until then.
"""

import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ....events.log.files import make_directory
from ...cluster.node_files import OWNER_ONLY
from ...processes.guard import rotate_log
from ...processes.liveness import ENDING
from ...processes.service_manager import SOCKET

OUTPUT: Final = "up.out"
"""The file with what a detached node would print, beside the logs."""
LARGEST: Final = 1 << 20
"""A file that is longer is put aside as `.1`."""
LOOK_SECONDS: Final = 0.2
_MESSAGE_BYTES: Final = 4_096


def run_detached(data_path: Path, run: Callable[[], int]) -> int:
    """Run a node in a process of its own; return 0 when it is ready, else its exit code.

    A signal to this process before that ends the node as well. Raises `OSError` if its output
    has no place.
    """
    output, begin = _open_output(data_path / "logs")
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        address = str(Path(folder) / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reports:
            reports.bind(address)
            os.environ[SOCKET] = address
            child = os.fork()
            if not child:
                _become_node(output, run)
            code = _wait(child, reports)
    sys.stderr.write(os.pread(output, LARGEST, begin).decode("utf-8", "replace"))
    sys.stderr.flush()
    os.close(output)
    return code


def _open_output(logs: Path) -> tuple[int, int]:
    """Open the file for the node's output; return its descriptor, and where this run begins."""
    make_directory(logs.parent.parent, mode=0o777)
    make_directory(logs)
    rotate_output(logs)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    output = os.open(logs / OUTPUT, flags, OWNER_ONLY)
    return output, os.fstat(output).st_size


def rotate_output(logs: Path) -> None:
    """Put aside what a detached node has printed, if that is much; the node has the file open."""
    rotate_log(logs / OUTPUT, LARGEST)


def _become_node(output: int, run: Callable[[], int]) -> None:
    """Run the node in this fork, in a new session, with its output in a file; never returns."""
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(descriptor, target)
        os.closerange(3, max(nothing, output, 64) + 1)
        code = run()
    except Exception as error:  # noqa: BLE001  # nobody above this fork tells it
        what = f"{type(error).__name__}: {error}"
        sys.stderr.write(f"the node has ended: {what}; what was done before stays\n")
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, reports: socket.socket) -> int:
    """Wait until a node is ready or has ended; return the exit code of this process."""
    reports.settimeout(LOOK_SECONDS)
    former = {number: signal.signal(number, _pass_on(child)) for number in ENDING}
    try:
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return max(0, os.waitstatus_to_exitcode(status)) or 1
            try:
                if b"READY=1" in reports.recv(_MESSAGE_BYTES).splitlines():
                    return 0
            except TimeoutError:
                pass
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _pass_on(child: int) -> Callable[[int, object], None]:
    """Return a signal handler that ends the node too, which is in another process group."""

    def end(*_: object) -> None:
        os.kill(child, signal.SIGTERM)

    return end
