"""A node started by `fairlead up`, observed from outside: its REST interface and its cost."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from fairlead.actors.transport.ports import free_port

PATIENCE_SECONDS = 180.0
_SAID_CHARACTERS = 8_000
"""How much of a failed node's output is shown."""


class Cost(NamedTuple):
    """The resource use of processes; shared pages of memory count once."""

    cpu_s: float
    pss_mib: float


class BenchNode:
    """A running node, and a client of its REST interface."""

    def __init__(self, process: psutil.Process, port: int) -> None:
        self._process = process
        self._rest = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def create(self, name: str, config: Mapping[str, str]) -> float:
        """Create a connector, and return the duration in milliseconds."""
        body = json.dumps({"name": name, "config": config})
        begun = time.perf_counter()
        status, said = self._ask("POST", "/connectors", body)
        assert status == http.client.CREATED, said
        return (time.perf_counter() - begun) * 1000

    def delete(self, name: str) -> None:
        """Delete a connector."""
        status, said = self._ask("DELETE", f"/connectors/{name}")
        assert status == http.client.NO_CONTENT, said

    def running_tasks(self) -> int:
        """Count the tasks that are RUNNING."""
        _, said = self._ask("GET", "/connectors?expand=status")
        told = json.loads(said).values()
        tasks = [task for each in told for task in each["status"]["tasks"]]
        return sum(task["state"] == "RUNNING" for task in tasks)

    def cost(self) -> Cost:
        """Return the resource use of all its running processes."""
        cpu_s = pss = 0.0
        for each in (self._process, *self._process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = each.cpu_times()
                cpu_s += times.user + times.system
                pss += each.memory_full_info().pss
        return Cost(cpu_s, pss / (1 << 20))

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        self._rest.close()  # servers close what was idle for a while
        self._rest.request(method, path, body, {"content-type": "application/json"})
        answer = self._rest.getresponse()
        return answer.status, answer.read()


@contextmanager
def started(folder: Path, settings: Mapping[str, str]) -> Generator[BenchNode]:
    """Start a node in a folder, wait until it answers, and stop it at the end."""
    port, data = free_port(), folder / "data"
    given = {"data.dir": str(data), "listeners": f"http://127.0.0.1:{port}", **settings}
    options = [part for each in given.items() for part in ("--set", "=".join(each))]
    command = [sys.executable, "-m", "fairlead.runtime", "up", *options]
    with (
        (folder / "said").open("w+b") as said,
        subprocess.Popen(command, stderr=said, stdout=said) as process,
    ):
        try:
            wait_until(lambda: _answers(process, port), "the node is up")
            yield BenchNode(psutil.Process(process.pid), port)
        except (ChildProcessError, TimeoutError) as error:
            files = (folder / "said", data / "logs/actors.log")
            words = [each.read_text()[-_SAID_CHARACTERS:] for each in files if each.exists()]
            error.add_note("\n".join(["the node said:", *words]))
            raise
        finally:
            process.terminate()
            process.wait()


def wait_until(
    holds: Callable[[], bool], what: str, step_s: float = 0.05, seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until a condition holds; raises `TimeoutError`."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"not in {seconds:g} s: {what}")
        time.sleep(step_s)


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    if process.poll() is not None:
        raise ChildProcessError(f"the node ended with {process.returncode}")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()
