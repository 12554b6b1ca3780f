"""A node takes the open files that it can get, and says at its start if they are too few."""

import resource
import subprocess
import sys

import pytest

from fairlead.runtime.processes.open_files import ENOUGH, raise_open_files

INFINITE = resource.RLIM_INFINITY

PROGRAM = """
import resource
from fairlead.runtime.processes.open_files import TooFewOpenFilesError, raise_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
try:
    raise_open_files(for_spark={spark})
except TooFewOpenFilesError as error:
    print(error)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def outcome(soft: int, hard: int, *, spark: bool) -> list[str]:
    program = PROGRAM.format(soft=soft, hard=hard, spark=spark)
    return subprocess.check_output([sys.executable, "-c", program], text=True).splitlines()


@pytest.mark.parametrize(
    ("limits", "taken"),
    [
        ((INFINITE, INFINITE), []),
        ((ENOUGH, INFINITE), []),
        ((ENOUGH + 1, ENOUGH + 1), []),
        ((256, INFINITE), [(ENOUGH, INFINITE)]),
        ((256, ENOUGH + 1), [(ENOUGH, ENOUGH + 1)]),
        ((256, 900), [(900, 900)]),
    ],
)
def test_a_limit_is_raised_as_far_as_is_enough_and_never_lowered(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], taken: list[tuple[int, int]]
) -> None:
    set_to = list[tuple[int, int]]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: set_to.append(given))
    raise_open_files(for_spark=True)
    assert set_to == taken


def test_the_soft_limit_becomes_the_hard_one() -> None:
    assert outcome(256, 900, spark=True) == ["900 900"]


@pytest.mark.parametrize("soft", [100, 300])
def test_too_few_files_for_spark_are_told_with_their_number_and_the_way_out(soft: int) -> None:
    told, limits = outcome(soft, 300, spark=True)
    assert limits == "300 300"
    assert told.startswith("a process may have 300 files open here (nofile), and each worker's")
    assert "LimitNOFILE=" in told


def test_a_node_without_spark_starts_with_few() -> None:
    assert outcome(256, 300, spark=False) == ["300 300"]
