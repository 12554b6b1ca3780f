"""Looks for what connectors have to read that do not tell: their lag grows with their source.

A task tells its lag when it commits a batch; while it is paused, stopped, has failed or hangs it
commits none. So this process asks the type of the source, rarely: a look may list a large folder.
"""

import logging
import time
from collections.abc import Generator, Hashable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Event, Thread
from typing import Final

from .....events.commits import Lag
from .....events.entries.codec import CodecError
from .....events.log.errors import LogError
from .....events.records import ConnectorConfig
from .....projections.progress import is_lag_outdated
from .....projections.views import Progress, connector_names, connector_progress
from ....pipeline.spi.offsets import PartitionOffset
from ..commands.service import Service
from ..reading.logs import FollowedGroup
from ..server.errors import ApiError

LOGGER = logging.getLogger(__name__)
LOOK_SECONDS: Final = 60.0
REST_FACTOR: Final = 20
"""By how much a pause is longer than the looks before it, if they take long."""


class LagWatch:
    """Keeps the lag of the connectors of a node's own group that commit nothing."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._is_over = Event()
        self._open: set[Hashable] = set()
        """The configs whose sources are being looked at: one that hangs is not looked at again."""

    def start(self) -> None:
        """Start to poll, on a thread of its own."""
        Thread(target=self._run, name="lag", daemon=True).start()

    def stop(self) -> None:
        """Stop polling."""
        self._is_over.set()

    def _run(self) -> None:
        pause = LOOK_SECONDS / 4
        while not self._is_over.wait(pause):
            began = time.monotonic()
            try:
                self.look()
            except (LogError, CodecError):
                pass  # it is tried again
            except Exception:
                LOGGER.exception("the lag of connectors that commit nothing is not known")
            pause = max(LOOK_SECONDS, REST_FACTOR * (time.monotonic() - began))

    def look(self) -> None:
        """Read the lag of each connector whose last plans are outdated; raises `LogError`."""
        logs, group_id = self._service.logs, self._service.group_id
        now_ms = time.time_ns() // 1_000_000
        with logs.reading(group_id) as group_logs:
            group = group_logs.group
            silent = [
                (group.connectors[name], group_logs.offsets(name), progress)
                for name in connector_names(group)
                if is_lag_outdated(group, name, progress := _progress(group_logs, name), now_ms)
            ]
        unread: dict[str, Lag] = {}
        for config, offsets, progress in silent:
            known = [PartitionOffset(each.partition, each.offset) for each in offsets]
            if (lag := self._lag(config, known)) is not None:
                unread[config.connector] = with_bytes(lag, progress)
        with logs.reading(group_id) as group_logs:
            group_logs.unread = unread

    def _lag(self, config: ConnectorConfig, known: Sequence[PartitionOffset]) -> Lag | None:
        name = config.connector, frozenset(config.config.items())
        if name in self._open:
            return None
        with suppress(ApiError):
            return self._service.judge_of(config).lag(known, self._looking(name))
        return None

    @contextmanager
    def _looking(self, name: Hashable) -> Generator[None]:
        self._open.add(name)
        try:
            yield
        finally:
            self._open.discard(name)


def _progress(logs: FollowedGroup, name: str) -> Progress:
    return connector_progress(logs.task_progress(name), logs.group.task_numbers(name))


def with_bytes(lag: Lag, progress: Progress) -> Lag:
    """Return a lag of records alone with the bytes that as many had so far."""
    if lag.bytes or not lag.records or not progress.rows_in:
        return lag
    return replace(lag, bytes=lag.records * progress.cost.bytes_in // progress.rows_in)
