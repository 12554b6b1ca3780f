"""The distribution: a wheel and an archive of the sources that have everything, and run."""

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest

import fairlead
from fairlead_tests.cluster.remains import environment_in
from fairlead_tests.installed.service import NOOP

HOUSE = Path(__file__).parents[2]
LINKS = "tests/typing/"
"""The links of type checkers, which lead out of an archive."""
OF_BUILDS = {"PKG-INFO", "setup.cfg"}

pytestmark = [pytest.mark.soak, pytest.mark.cluster]


def tracked() -> set[str]:
    """Return the files of the repository."""
    command = ["git", "-C", str(HOUSE), "ls-files"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs a repository, to compare with")
    return {*listed.stdout.splitlines()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both from a copy of the tracked files; return the folder with them."""
    folder = tmp_path_factory.mktemp("dist")
    for name in tracked():
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HOUSE / name, target, follow_symlinks=False)
    subprocess.run([sys.executable, "-m", "venv", folder / "tools"], check=True)
    python = folder / "tools" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "build"], check=True)
    subprocess.run(
        [python, "-m", "build", "-o", folder, folder / "source"], check=True, capture_output=True
    )
    return folder


def test_the_sources_are_the_repository(dist: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        files = {each.name.partition("/")[2] for each in opened if each.isfile()}
    assert {each for each in tracked() - files if not each.startswith(LINKS)} == set()
    more = {each for each in files - tracked() if ".egg-info/" not in each}
    assert more == OF_BUILDS


def test_the_wheel_has_the_program_its_pages_and_what_is_deployed(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    files = {name.partition("/")[2] for name in names if name.startswith("fairlead/")}
    assert {name.partition("/")[0] for name in names} == {
        "fairlead",
        f"fairlead_connect-{fairlead.__version__}.dist-info",
    }
    left_out = {name for name in tracked() - files if not name.startswith("tests/")}
    assert left_out == {
        *(
            ".ci/run",
            ".ci/wheels.cfg",
            ".containerignore",
            ".gitignore",
            "LICENSE",
            "MANIFEST.in",
            "Makefile",
        ),
        *("docs/site.css", "mkdocs.yml", "pyproject.toml"),
    }
    assert files - tracked() == set()


def test_a_wheel_in_an_environment_of_its_own_serves(dist: Path, tmp_path: Path) -> None:
    """The libraries are those of this environment: to install them takes minutes."""
    (wheel,) = dist.glob("*.whl")
    new = tmp_path / "new"
    subprocess.run([sys.executable, "-m", "venv", new], check=True)
    (site,) = new.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [str(new / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps"]
    subprocess.run([*pip, "--force-reinstall", str(wheel)], check=True)

    def run(*words: str) -> str:
        ended = subprocess.run(
            [new / "bin" / "fairlead", *words],
            cwd=tmp_path,
            env={**environment_in(tmp_path), "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout + ended.stderr

    assert run("--version") == f"fairlead {fairlead.__version__}\n"
    assert run("docs", "start") == (HOUSE / "docs" / "start.md").read_text()
    where = run("doctor", *NOOP, "-o", "json")
    assert f"in {new}" in where
    started = run("up", "--detach", *NOOP, "--data-dir", "data")
    try:
        url = started.partition("REST on ")[2].partition(",")[0]
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200
    finally:
        run("down", "--data-dir", "data")
