"""Injects the faults of a schedule into a node, its servers and the disk of its sinks."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import httpx

from fairlead_tests.chaos.crew import Crew, frozen
from fairlead_tests.chaos.harsh_faults import Disk
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.matrix.schedule import Step
from fairlead_tests.postgres_server import PostgresServer

NO_DISK = " (there is no disk of our own to fill: passed over)"


class Disks(NamedTuple):
    """Small disks that may fill up."""

    sinks: Disk
    broker: Disk


class Faults:
    """Runs the steps of a schedule one after another; each repairs what it has broken."""

    def __init__(
        self,
        node: Crew,
        points: Path,
        database: PostgresServer,
        broker: Broker,
        disks: Disks | None,
        connectors: Sequence[str],
    ) -> None:
        self._node = node
        self._points = points
        self._database = database
        self._broker = broker
        self._disks = disks
        self._connectors = connectors
        self.happened: Counter[str] = Counter()
        self._done: Mapping[str, Callable[[Step], str]] = {
            "move": self._move,
            "kill worker": self._kill_worker,
            "kill at": self._kill_at,
            "freeze": self._freeze,
            "freeze at": self._freeze_at,
            "cut at": self._cut_at,
            "kill JVM": self._kill_jvm,
            "kill Python": self._kill_python,
            "kill group": self._kill_group,
            "kill node": self._kill_node,
            "kill database": self._kill_database,
            "kill broker": self._kill_broker,
            "fill": self._fill,
            "fill broker": self._fill_broker,
        }

    def inject(self, step: Step) -> None:
        """Run one step; return the recovery time, if the step waits for it."""
        began = time.monotonic()
        self._node.eventually(self._node.answers, "the node takes commands")
        told = self._done[step.event](step)
        self.happened[step.event] += 1
        if step.is_awaited:
            self.wait_running(str(step))
        took = time.monotonic() - began
        print(f"{time.strftime('%T')} {step}{told}: {took:.1f} s", flush=True)

    def wait_running(self, what: str) -> None:
        """Wait until every task of every pair runs."""
        runs = lambda: self._node.is_running(*self._connectors)  # noqa: E731
        self._node.eventually(runs, f"all runs again after: {what}")

    def _move(self, step: Step) -> str:
        worker = step.worker
        if not self._node.held(worker):  # one that is not warm again yet has nothing to give
            worker = "w1" if worker == "w2" else "w2"
        count = len(self._node.held(worker))
        self._order("drain", worker)
        left = lambda: not self._node.held(worker) or not self._node.members(worker)  # noqa: E731
        self._node.eventually(left, f"{worker} has given up what it had")
        self._order("uncordon", worker)
        return f" ({count} of {worker})"

    def _order(self, what: str, worker: str) -> None:
        """Send an order, as soon as the group knows the worker."""

        def is_given() -> bool:
            with suppress(httpx.HTTPError):
                asked = f"{self._node.rest}/workers/{worker}/{what}"
                return httpx.put(asked, timeout=10).is_success
            return False

        self._node.eventually(is_given, f"{what} {worker} is taken")

    def _kill_worker(self, step: Step) -> str:
        seats = self._seats()
        pid = self._node.hit(f"worker {step.worker}")
        self._wait_lost(seats.get(pid, set()))
        return f" (pid {pid})"

    def _kill_at(self, step: Step) -> str:
        seats = self._seats()
        self.ask(step.pair, step.point, "kill")
        pid = self.wait_taken(step.pair, step.point)
        self._wait_lost(seats.get(pid, set()))
        return f" (pid {pid})"

    def _freeze(self, step: Step) -> str:
        seats = self._seats()
        pid = self._node.pid(f"worker {step.worker}")
        with frozen(pid):
            self._wait_taken_over(seats.get(pid, set()), step)
        return f" (pid {pid})"

    def _freeze_at(self, step: Step) -> str:
        seats = self._seats()
        self.ask(step.pair, step.point, "stop")
        pid = self.wait_taken(step.pair, step.point)
        self._wait_taken_over(seats.get(pid, set()), step)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        return f" (pid {pid})"

    def _cut_at(self, step: Step) -> str:
        self.ask(step.pair, step.point, "cut")
        self.wait_taken(step.pair, step.point)
        return ""

    def _kill_jvm(self, step: Step) -> str:
        with suppress(ProcessLookupError):
            os.kill(self._node.jvm(step.worker), signal.SIGKILL)
        return ""

    def _kill_python(self, step: Step) -> str:
        """Kill a process that runs Python code for Spark, or that they are forked from."""
        found = self._node.python_workers(step.worker)
        if not found:
            return " (there is none)"
        chosen = random.Random(step.seconds).choice(found)
        with suppress(ProcessLookupError):
            os.kill(chosen, signal.SIGKILL)
        return f" (pid {chosen} of {found})"

    def _kill_group(self, step: Step) -> str:
        del step
        return f" (pid {self._node.hit(f'group {self._node.group.group_id}')})"

    def _kill_node(self, step: Step) -> str:
        seats = {each for mine in self._seats().values() for each in mine}
        self._node.crash()
        time.sleep(step.seconds)
        self._node.up(workers=2)
        self._wait_lost(seats)
        return ""

    def _kill_database(self, step: Step) -> str:
        self._database.kill()
        time.sleep(step.seconds)
        self._database.start()
        return ""

    def _kill_broker(self, step: Step) -> str:
        self._broker.kill()
        time.sleep(step.seconds)
        self._broker.up()
        return ""

    def _fill(self, step: Step) -> str:
        """Fill the disk of file sinks, table sinks and staging folders of Kafka sinks."""
        if self._disks is None:
            return NO_DISK
        self._disks.sinks.keep_full(step.seconds)
        return ""

    def _fill_broker(self, step: Step) -> str:
        """Fill the disk of the broker's log: the broker then exits."""
        if self._disks is None:
            return NO_DISK
        self._disks.broker.keep_full(step.seconds)
        told = " (it had ended itself)" if self._broker.has_ended() else ""
        self._broker.kill()
        self._broker.up()
        return told

    def ask(self, connector: str, point: str, what: str) -> None:
        """Request `kill`, `stop` or `cut` at a point of the connector's next batch."""
        for each in self._points.glob(f"{connector}.{point}.*"):
            each.unlink()
        asked = self._points / f".{connector}.{point}"
        asked.write_text(what)
        asked.rename(self._points / f"{connector}.{point}")

    def wait_taken(self, connector: str, point: str) -> int:
        """Wait for and return the process that has reached a point."""
        found = list[Path]()

        def is_taken() -> bool:
            found[:] = self._points.glob(f"{connector}.{point}.*")
            return bool(found)

        self._node.eventually(is_taken, f"a batch of {connector} is {point}")
        return int(found[0].suffix[1:])

    def _seats(self) -> dict[int, set[str]]:
        """Return the seats of the running workers, by process."""
        self._node.look()
        running = self._node.workers()
        return {self._node.pid(f"worker {each}"): self._node.members(each) for each in running}

    def _wait_lost(self, seats: set[str]) -> None:
        lost = lambda: seats.isdisjoint(self._node.look().members)  # noqa: E731
        self._node.eventually(lost, f"{seats} are lost")

    def _wait_taken_over(self, seats: set[str], step: Step) -> None:
        """Wait until a suspended worker has lost its seat, and others run its work."""
        self._wait_lost(seats)
        self.wait_running(f"the takeover while {step}")
        time.sleep(step.seconds)
