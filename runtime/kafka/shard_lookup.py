"""Looks up the process of a shard with actor messages, and opens a stream to it."""

import logging
from pathlib import Path
from typing import Final, NamedTuple

from ...actors.messages.groups import FindStream, StreamAt
from ...actors.transport.stream import MessageStream, StreamEndedError, dial
from ...actors.transport.system import UnreachableError, connect
from ..cluster.messages import SUPERVISOR, ShardsAt, Whereabouts, WhereAreShards, WhereIs
from ..cluster.run_folder import KeyRefusedError, NoNodeError, RunFolder

LOGGER = logging.getLogger(__name__)
LOOKUP_SECONDS: Final = 2.0
"""The timeout of each question, and of the connection."""


class OpenStream(NamedTuple):
    """A stream to the process of a shard, and the epoch of that process."""

    stream: MessageStream
    epoch: int


class ShardLookup:
    """Finds the current actor of one shard, which a restart replaces by another."""

    def __init__(self, data_dir: Path, shard: int | str) -> None:
        """`shard` is the number of a shard, or the id of the workers' group."""
        self._folder, self._shard = RunFolder(data_dir), shard

    def open(self) -> OpenStream | None:
        """Return a new stream; None: the shard is not running, or does not answer. It may block."""
        try:
            return self._find()
        except (
            KeyRefusedError,
            NoNodeError,
            UnreachableError,
            StreamEndedError,
            OSError,
            ValueError,
        ) as error:
            LOGGER.debug("shard %s cannot be reached: %s", self._shard, error)
        return None

    def _find(self) -> OpenStream | None:
        address, shard = self._folder.system_address(), self._shard
        system = connect(address)
        try:
            supervisor = system.named(SUPERVISOR)
            if supervisor is None:
                return None
            with system.private() as to:
                where = WhereIs(shard) if isinstance(shard, str) else WhereAreShards()
                found, actor = to.ask(supervisor, where, LOOKUP_SECONDS), None
                if isinstance(found, Whereabouts):
                    actor = found.address
                elif isinstance(found, ShardsAt) and isinstance(shard, int):
                    actor = found.addresses[shard] if shard < len(found.addresses) else None
                at = to.ask(actor, FindStream(), LOOKUP_SECONDS) if actor is not None else None
        finally:
            system.close()
        if not isinstance(at, StreamAt):
            return None
        return OpenStream(dial(at.port, address.key, address.host, LOOKUP_SECONDS), at.epoch)
