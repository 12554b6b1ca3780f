"""The fixtures of these tests."""

import contextlib
from collections.abc import Iterator

import psutil
import pytest

from fairlead.actors.transport.system import connect
from fairlead_tests.actor_system import Running, actor_system, eventually, in_process, isolated

__all__ = ["actor_system", "in_process", "shared_system"]


@pytest.fixture(scope="module")
def system_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield the system of all tests of a file that end no more than actors."""
    with isolated(tmp_path_factory.mktemp("shared") / "system") as running:
        yield running


@pytest.fixture
def shared_system(system_of_module: Running) -> Iterator[Running]:
    """Yield a real system that other tests of the file use as well; their actors have ended.

    It is connected to anew: a process has the key of the system that it went through last.
    """
    system_of_module.system.close()
    system_of_module.system = connect(system_of_module.address)
    yield system_of_module
    for process in system_of_module.processes()[2:]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    eventually(lambda: len(system_of_module.processes()) == 2, "the actors of the test have ended")
