"""Looks at the processes of the node for its page, on a thread of its own.

The supervisor and the group's actor are asked every two seconds while somebody follows the page,
else rarely. One that does not answer holds up this thread alone, and is asked rarely, too, so that
commands need not wait behind these questions. The group is asked while it takes commands: nobody
else knows how old the heartbeats of its workers are, and it knows without looking anywhere.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from http import HTTPStatus
from threading import Event, Thread
from typing import Final

import psutil

from ......actors.messages.commands import Traffic
from ......actors.worker.instructions import REQUEST_GRACE_MS
from .....cluster.messages import ProcessView
from .....cluster.node_files import read_engines
from .....security.rights import FULL
from ....replies.building.page.facts import NodeFacts, ProcessUsage
from ....replies.node import Health
from ...commands.service import Service
from ...routes.connectors.descriptions import explain_hold
from ...routes.node.health import refuse_commands
from ...server.errors import Unanswered

LOGGER = logging.getLogger(__name__)
WATCHED_SECONDS: Final = 2.0
IDLE_SECONDS: Final = 15.0
MS: Final = 1000
NO_TRAFFIC: Final = Traffic(0, 0)


class NodeLooks:
    """The node at the last look."""

    def __init__(self, service: Service, is_watched: Callable[[], bool]) -> None:
        self._service = service
        self._is_watched = is_watched
        self._is_over = Event()
        self._processes: dict[int, psutil.Process] = {}
        """By process id; each knows how much time it had used at the last look."""
        self._answers = True
        """Whether supervisor and group answered last, as far as they were asked."""
        self.facts = NodeFacts(workers_wanted=service.workers)

    def start(self) -> None:
        """Begin to look."""
        Thread(target=self._run, name="page node", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self.look()
            except Exception:
                LOGGER.exception("the page shows the node as it was; it is tried again")
            is_quick = self._answers and self._is_watched()
            self._is_over.wait(WATCHED_SECONDS if is_quick else IDLE_SECONDS)

    def look(self) -> None:
        """Read the processes of the node, and what they use."""
        service = self._service
        engines = read_engines(service.run_folder)
        refusal, workers, traffic = asyncio.run(self._ask())
        pids = [*(each.pid for each in workers), *(each.pid for each in engines.values())]
        self.facts = NodeFacts(
            refusal,
            tuple(sorted(workers, key=lambda each: each.url)),
            engines.get(""),
            explain_hold(service),
            service.read_folder(),
            self._usage(pid for pid in pids if pid is not None),
            psutil.virtual_memory().total,
            service.workers,
            traffic.heartbeat_ages,
            traffic.heartbeat_interval_ms + REQUEST_GRACE_MS,
        )

    async def _ask(self) -> tuple[Health | None, Sequence[ProcessView], Traffic]:
        """Return why commands are refused, the processes of the workers, and the group's counts.

        What is not answered is empty.
        """
        service, commands = self._service, self._service.commands
        refusal: Health | None = None
        workers: Sequence[ProcessView] = ()
        self._answers = True
        try:
            locate = partial(commands.locate, service.group_id)
            answer = await refuse_commands(service, locate, FULL)
            refusal = answer.body if answer else None
            workers = (await commands.describe_node()).workers
            if answer is None or answer.status is HTTPStatus.OK:
                return refusal, workers, await commands.traffic(service.group_id)
        except Unanswered:
            self._answers = False
        return refusal, workers, NO_TRAFFIC

    def _usage(self, pids: Iterable[int]) -> dict[int, ProcessUsage]:
        before, self._processes = self._processes, {}
        usage: dict[int, ProcessUsage] = {}
        for pid in pids:
            try:
                process = before.get(pid) or psutil.Process(pid)
                is_first = pid not in before
                cpu = process.cpu_percent() / 100
                started_ms = int(process.create_time() * MS)
                memory = process.memory_info().rss
            except psutil.Error:
                continue
            self._processes[pid] = process
            usage[pid] = ProcessUsage(None if is_first else round(cpu, 3), memory, started_ms)
        return usage
