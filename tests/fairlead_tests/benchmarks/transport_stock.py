"""The actors of the transport's benchmark on stock Thespian."""
# pyright: basic
# mypy: disable-error-code="misc"

import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUIET = {
    "version": 1,
    "handlers": {"none": {"class": "logging.NullHandler"}},
    "root": {"handlers": ["none"], "level": "ERROR"},
}
os.environ["THESPIAN_BASE_IPADDR"] = "127.0.0.1"  # read when Thespian is imported

from thespian.actors import Actor, ActorSystem, ActorSystemMessage  # noqa: E402


@dataclass(frozen=True, slots=True)
class Run:
    """Asks for a message to be sent to and fro."""

    peer: Any
    count: int
    ball: object


class Echo(Actor):
    """Sends back what it gets."""

    def receiveMessage(self, message: object, sender: Any) -> None:  # noqa: N802
        if not isinstance(message, ActorSystemMessage):
            self.send(sender, message)


class Pinger(Actor):
    """Sends a message to and fro, and says how many seconds that took."""

    peer: Any = None
    asker: Any = None
    left = 0
    began = 0.0

    def receiveMessage(self, message: object, sender: Any) -> None:  # noqa: N802
        match message:
            case ActorSystemMessage():
                pass
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


class System:
    """Stock's actor system by the names of ours."""

    def __init__(self, stock: Any) -> None:
        self.create = stock.createActor
        self.ask = stock.ask


@contextmanager
def running(folder: Path) -> Generator[System]:
    """Run a system."""
    os.environ["THESPLOG_FILE"] = str(folder / "thespian.log")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    stock = ActorSystem("multiprocTCPBase", {"Admin Port": port}, QUIET, transientUnique=True)
    yield System(stock)
    stock.shutdown()
