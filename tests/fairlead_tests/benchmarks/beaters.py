"""Actors that send heartbeats to a group as fast as it replies."""

import time
from dataclasses import dataclass, replace
from typing import Any

from fairlead.actors.messages.members import (
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from fairlead.actors.transport.actor import Actor
from fairlead.events.model import ClientAssignor

ASSIGNORS = (ClientAssignor("balanced"),)


@dataclass(frozen=True, slots=True)
class Beat:
    """To the actor: send heartbeats for so many seconds, as this member."""

    group: Any
    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Beaten:
    """The number of answered heartbeats, and the duration in seconds."""

    heartbeats: int
    seconds: float


class Beater(Actor):
    """Sends one heartbeat at a time: the next one when the reply has come."""

    def receive(self, message: object, sender: Any) -> None:
        """Start, or count a reply and send the next heartbeat."""
        match message:
            case Beat():
                self._order, self._asker = message, sender
                self._count = self._sequence = self._epoch = 0
                self._coordinator = NO_COORDINATOR_EPOCH
                self._begun = time.monotonic()
                self._beat()
            case HeartbeatReply():
                self._hear(message)
            case _:
                pass

    def _hear(self, reply: HeartbeatReply) -> None:
        self._epoch, self._coordinator = reply.member_epoch, reply.coordinator_epoch
        self._count += 1
        taken = time.monotonic() - self._begun
        if taken < self._order.seconds:
            self._beat()
        else:
            self.send(self._asker, Beaten(self._count, taken))

    def _beat(self) -> None:
        """Send a full heartbeat, which is answered at once, without a long poll."""
        self._sequence += 1
        name = self._order.name
        plain = Heartbeat("bench", name, self._epoch, name, self._sequence, owned=())
        full = replace(plain, rebalance_timeout_ms=60_000, assignors=ASSIGNORS, url=name)
        self.send(self._order.group, replace(full, coordinator_epoch=self._coordinator))
