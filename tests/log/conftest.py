"""Logs in a temporary directory, and puppets: forked processes that never outlive their test."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import pytest

from fairlead.events.log.writer import GroupLog


class Puppet:
    """A forked process and the connection to it."""

    def __init__(self, play: Callable[..., None], args: tuple[object, ...]) -> None:
        self.line, theirs = Pipe()
        self.process = get_context("fork").Process(
            target=self._run, args=(play, theirs, args), daemon=True
        )
        self.process.start()
        theirs.close()

    def _run(self, play: Callable[..., None], line: Connection, args: tuple[object, ...]) -> None:
        self.line.close()  # so that the test's death ends this process at its next word
        with suppress(EOFError, BrokenPipeError, ConnectionResetError):
            play(line, *args)
        os._exit(0)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def ask(self, *words: object) -> Any:
        self.line.send(words)
        return self.hear()

    def hear(self, timeout_s: float = 60) -> Any:
        assert self.line.poll(timeout_s), "the puppet says nothing"
        return self.line.recv()

    def kill(self) -> None:
        self.process.kill()
        self.process.join(60)
        assert not self.process.is_alive()

    def last_words(self) -> list[Any]:
        words: list[Any] = []
        with suppress(EOFError, ConnectionResetError):
            while self.line.poll(0):
                words.append(self.line.recv())
        return words


class Fork(Protocol):
    def __call__(self, play: Callable[..., None], *args: object) -> Puppet: ...


@pytest.fixture
def fork() -> Iterator[Fork]:
    puppets: list[Puppet] = []

    def start(play: Callable[..., None], *args: object) -> Puppet:
        puppet = Puppet(play, args)
        puppets.append(puppet)
        return puppet

    yield start
    for puppet in puppets:
        puppet.kill()
        puppet.line.close()
        puppet.process.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "groups" / "flights" / "control"


@pytest.fixture
def log(path: Path) -> Iterator[GroupLog]:
    with GroupLog.open_writer(path, "flights") as opened:
        yield opened
