"""A node takes the open files that it can get, and says at its start if they are too few."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from fairlead.runtime.node.commands import TooFewOpenFilesError, raise_open_files
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
