"""What pip calls fairlead has one name, wherever somebody is told to install it."""

import re
import tomllib
from pathlib import Path

import pytest

import fairlead
from fairlead.runtime.pipeline.installed import DISTRIBUTION, pip_install

HOUSE = Path(__file__).parents[1]
ROOMS = ("actors", "events", "projections", "runtime", "deploy", "docs")
TELLS = sorted(
    [*HOUSE.glob("*.md"), HOUSE / "pyproject.toml"]
    + [
        path
        for room in ROOMS
        for path in (HOUSE / room).rglob("*")
        if path.suffix in {".py", ".md", ".toml"}
    ]
)


def test_the_distribution_has_the_name_that_messages_tell() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["version"]) == (DISTRIBUTION, fairlead.__version__)


def test_the_package_has_no_attributes_of_other_names() -> None:
    with pytest.raises(AttributeError, match="'fairlead' has no attribute 'version'"):
        _ = fairlead.version


def test_a_missing_part_is_told_with_the_command_that_installs_it() -> None:
    assert pip_install("kafka") == "pip install 'fairlead-connect[kafka]'"


def test_the_package_has_all_pages() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["fairlead"]
    shipped = {path for each in patterns for path in HOUSE.glob(each)}
    assert {*(HOUSE / "docs").rglob("*.md")} <= shipped


def test_the_sources_have_whatever_is_not_python() -> None:
    lines = (HOUSE / "MANIFEST.in").read_text().splitlines()
    grafted = {line.split()[1] for line in lines if line.startswith("graft ")}
    law = {line.split()[1] for line in lines if line.startswith("recursive-include ")}
    folders = {path.name for path in HOUSE.iterdir() if path.is_dir() and path.name[0] != "."}
    tools = {"__pycache__", "fairlead_connect.egg-info", "build", "dist"}
    assert folders - tools == {*grafted - {".ci"}, *law}


def test_nobody_is_told_to_install_the_package_of_somebody_else() -> None:
    other = re.compile(r"pip install '?fairlead(?!-)\b|fairlead\[")
    told = [f"{path.name}: {found}" for path in TELLS for found in other.findall(path.read_text())]
    assert told == []


@pytest.mark.parametrize("example", sorted(HOUSE.glob("deploy/*/pyproject.toml")), ids=str)
def test_an_example_depends_on_the_distribution(example: Path) -> None:
    needs = tomllib.loads(example.read_text())["project"]["dependencies"]
    assert [each for each in needs if each.startswith("fairlead")] == [DISTRIBUTION]
