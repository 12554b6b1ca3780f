"""Trials of mutations, each in a fork of the process that has imported the program and its tests.

In the fork the function around the place gets the code that the mutated source has for it, and the
tests run until one fails. So a trial costs no start of Python, no import and no collection.
"""

import gc
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, NoReturn, TypedDict

import psutil
import pytest

import fairlead

OVERDUE: Final = "it took too long, too much memory, or its process with it"
UNMADE: Final = "the mutation could not be made"
_MEMORY: Final = 4 << 30
_LEAST_SECONDS: Final = 120


class Trial(TypedDict):
    """A mutation to try."""

    number: int
    path: str
    """Relative to the repository's root."""
    source: str
    """The whole file with the mutation."""
    line: int
    tests: Sequence[str]
    """The ids of the tests that execute its line, in the order in which to run them."""
    seconds: float
    """What they take without a mutation."""


def try_all(session: pytest.Session, trials: Sequence[Trial]) -> Iterator[tuple[int, str | None]]:
    """Yield of each mutation its number and the test that fails, None if none does.

    A test that fails in such a process without any mutation as well is not asked again.
    """
    items = {each.nodeid: each for each in session.items}
    is_sound: dict[str, bool] = {}
    for each in trials:
        while True:
            tests = [items[it] for it in each["tests"] if it in items and is_sound.get(it, True)]
            failed = _failed(session, tests, each, each["seconds"])
            if failed in items and failed not in is_sound:
                is_sound[failed] = _failed(session, [items[failed]], None, 0) is None
            if failed is None or is_sound.get(failed, True):
                yield each["number"], failed
                break


def _failed(
    session: pytest.Session, tests: Sequence[pytest.Item], trial: Trial | None, seconds: float
) -> str | None:
    """Run tests in a fork until one fails; return its id, None if none does."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        _run(session, tests, trial, writing)
    os.close(writing)
    try:
        return _answer(psutil.Process(pid), reading, _LEAST_SECONDS + 4 * seconds)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what a test left behind
        os.waitpid(pid, 0)


def _answer(process: psutil.Process, reading: int, limit_s: float) -> str | None:
    """Wait for the word of a fork: a mutation may make it loop, or a list grow, without end."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if select.select([reading], [], [], 0.5)[0]:
            said = os.read(reading, 4_096).decode()
            return said.strip() or None if said else OVERDUE  # it was killed
        if process.memory_info().rss > _MEMORY:
            break
    return OVERDUE


def _run(
    session: pytest.Session, tests: Sequence[pytest.Item], trial: Trial | None, writing: int
) -> NoReturn:
    said = UNMADE
    try:
        os.setsid()
        if trial is not None:
            _mutate(trial)
        said = OVERDUE
        said = _first_failed(session, tests)
        session.config.hook.pytest_sessionfinish(session=session, exitstatus=0)  # ends fixtures
    finally:
        os.write(writing, f"{said}\n".encode())
        os._exit(0)


def _first_failed(session: pytest.Session, tests: Sequence[pytest.Item]) -> str:
    for each, following in zip(tests, [*tests[1:], None], strict=False):
        each.config.hook.pytest_runtest_protocol(item=each, nextitem=following)
        if session.testsfailed:
            return each.nodeid
    return ""


def _mutate(trial: Trial) -> None:
    """Give the function around the place its mutated code. Raises LookupError, ValueError."""
    (house,) = fairlead.__path__
    path = str(Path(house, trial["path"]))
    import_module(f"fairlead.{trial['path'].removesuffix('.py').replace('/', '.')}")
    old = around(codes(compile(Path(path).read_text(), path, "exec")), trial["line"])
    new = codes(compile(trial["source"], path, "exec"))[old.co_qualname, old.co_firstlineno]
    changed = {was: will_be for was, will_be in pairs(old, new) if was != will_be}
    gc.unfreeze()
    found = [each for each in gc.get_objects() if type(each) is FunctionType]
    found = [each for each in found if each.__code__.co_filename == path]
    if not any(each.__code__ in changed for each in found):
        raise LookupError(old.co_qualname)
    for each in found:
        each.__code__ = changed.get(each.__code__, each.__code__)
    gc.freeze()


def pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the code of a function and its new one, and those of the functions within it.

    What a function has returned before, a decorator or a check, gets its new code by that.
    """
    yield old, new
    within = [[it for it in each.co_consts if isinstance(it, CodeType)] for each in (old, new)]
    if len(within[0]) == len(within[1]):
        for each in zip(*within, strict=True):
            yield from pairs(*each)


def codes(module: CodeType) -> Mapping[tuple[str, int], CodeType]:
    """Return the codes of a module's functions and methods, by name and first line.

    Those of functions within them are part of theirs.
    """
    found: dict[tuple[str, int], CodeType] = {}
    waiting = [module]
    while waiting:
        for each in waiting.pop().co_consts:
            if isinstance(each, CodeType):
                if each.co_flags & CO_NEWLOCALS:
                    found[each.co_qualname, each.co_firstlineno] = each
                else:  # a class
                    waiting.append(each)
    return found


def around(found: Mapping[tuple[str, int], CodeType], line: int) -> CodeType:
    """Return the code of the function that has a line."""
    began = [each for each in found.values() if each.co_firstlineno <= line]
    return max(
        (each for each in began if each.co_flags & CO_NEWLOCALS), key=lambda it: it.co_firstlineno
    )
