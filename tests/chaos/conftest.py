"""One crew for all tests of this folder that need none of their own."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.runtime.processes.java import find_java
from fairlead_tests.chaos.crew import quick_to_start
from fairlead_tests.chaos.secrets import ENV, hold_secrets
from fairlead_tests.chaos.shared_crew import SharedCrew
from fairlead_tests.matrix.run import with_points


@pytest.fixture(scope="package")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the crew: a folder of all programs that Spark calls, and Java."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "java").symlink_to(find_java().command)
    for name in ("chmod", "ls", "readlink", "id", "bash", "sh"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


@pytest.fixture(scope="package")
def crews(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[SharedCrew]:
    folder = tmp_path_factory.mktemp("crews")
    environ = quick_to_start({**os.environ, "PATH": str(programs), "OURS": ENV})
    environ.pop("JAVA_HOME", None)
    shared = SharedCrew(folder, with_points(environ, folder / "points"))
    yield shared
    shared.close()
    assert hold_secrets(folder) == [], "nor did anything that came later"
