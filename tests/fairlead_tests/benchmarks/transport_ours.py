"""The actors of the transport's benchmark, behind our transport."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.actors.transport.actor import Actor, Address
from fairlead.actors.transport.system import System, start_system
from fairlead_tests.actor_system import free_address


@dataclass(frozen=True, slots=True)
class Run:
    """Asks for a message to be sent to and fro."""

    peer: Any
    count: int
    ball: object


class Echo(Actor):
    """Sends back what it gets."""

    def receive(self, message: object, sender: Address) -> None:
        self.send(sender, message)


class Pinger(Actor):
    """Sends a message to and fro, and says how many seconds that took."""

    peer: Any = None
    asker: Any = None
    left = 0
    began = 0.0

    def receive(self, message: object, sender: Address) -> None:
        match message:
            case Run(peer, count, ball):
                self.peer, self.left, self.asker = peer, count, sender
                self.began = time.perf_counter()
                self.send(peer, ball)
            case ball:
                self.left -= 1
                if self.left:
                    self.send(self.peer, ball)
                else:
                    self.send(self.asker, time.perf_counter() - self.began)


@contextmanager
def running(folder: Path) -> Generator[System]:
    """Run a system."""
    system = start_system(free_address(), log_file=folder / "log", name="bench")
    yield system
    system.shutdown()
