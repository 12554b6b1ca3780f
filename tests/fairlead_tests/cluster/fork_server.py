"""Starts programs of Python as forks of a process that has imported them already.

A node imports for longer than most tests have it run. This process has one thread, and imports
a program before it forks for it; the fork then runs it as `python -m` does. A fork has no parent
of its own, so that it comes to the test's process, which is a subreaper.
"""

import gc
import importlib
import json
import os
import runpy
import socket
import sys
import threading
import time
from typing import Any

from setproctitle import getproctitle

LARGEST_ORDER = 1 << 17
"""The most bytes of an order; most of them are the program's environment."""


def serve(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for each order; return the order in each fork, with the three standard streams."""
    while True:
        told, streams, _, _ = socket.recv_fds(line, LARGEST_ORDER, 3)
        if not told:
            sys.exit(0)
        order = json.loads(told)
        importlib.import_module(order["module"])
        assert threading.active_count() == 1, "a fork would lack the other threads"
        gc.freeze()  # a fork would spend most of its time on looking through what is imported
        reading, writing = os.pipe()
        between = os.fork()
        if not between:
            me, child = os.getpid(), os.fork()
            if child:
                os.write(writing, str(child).encode())
                os._exit(0)
            line.close()
            os.close(reading)
            os.close(writing)
            while os.getppid() == me:
                time.sleep(0.001)
            return order, streams
        os.waitpid(between, 0)
        line.send(os.read(reading, 32))
        for each in (*streams, reading, writing):
            os.close(each)


def main() -> None:
    """Serve; in a fork, run the program."""
    getproctitle()  # else a fork with another environment does not find where its title is
    order, streams = serve(socket.socket(fileno=int(sys.argv[1])))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # those of the server are of other files
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    paths = order["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [order["folder"], *(each for each in paths if each not in sys.path)]
    importlib.invalidate_caches()
    sys.argv = [order["module"], *order["arguments"]]
    del sys.modules[order["module"]]  # it is run anew, what it has imported is not
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
