"""A cable between a client and a server: it can be cut, or lose what the server answers."""

import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final

HOST: Final = "127.0.0.1"


class Cable:
    """Forwards connections to a port of this machine."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._door = socket.create_server((HOST, 0))
        self.port: int = self._door.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._is_mute = False
        self.lost = Event()
        """An answer of the server was lost."""
        Thread(target=self._accept, daemon=True).start()

    def mute(self) -> None:
        """Lose what the server answers from now on."""
        self._is_mute = True

    def cut(self) -> None:
        """End all connections; new ones are as at the beginning."""
        while self._ends:
            end = self._ends.pop()
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._is_mute = False

    def close(self) -> None:
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                server = socket.create_connection((HOST, self._server_port))
                self._ends += [client, server]
                Thread(target=self._forward, args=(client, server, False), daemon=True).start()
                Thread(target=self._forward, args=(server, client, True), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with source, suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer and self._is_mute:
                    self.lost.set()
                else:
                    target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


@contextmanager
def cabled(port: int) -> Generator[Cable]:
    """Yield a cable to a port of this machine."""
    cable = Cable(port)
    try:
        yield cable
    finally:
        cable.close()
