"""Connector classes are found by their names, and a broken one hurts nobody else."""

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from msgspec import to_builtins

from fairlead.runtime.interfaces.rest.routes.connectors.plugins import describe_plugin
from fairlead.runtime.pipeline.connectors import plugins
from fairlead.runtime.pipeline.connectors.plugins import Plugin, find_plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.installed import flaw_in_version
from fairlead.runtime.pipeline.spi.errors import PluginUnknown

# As configs name it since the first release, wherever its module lies now.
FULL = "fairlead.runtime.connectors.spark_pipeline.SparkPipeline"


@pytest.mark.parametrize("name", ["SparkPipeline", FULL])
def test_a_class_is_found_by_its_short_and_its_full_name(name: str) -> None:
    assert find_plugins().find(name) == Plugin(SparkPipeline)


def test_its_entry_tells_what_it_promises() -> None:
    assert to_builtins(describe_plugin(Plugin(SparkPipeline))) == {
        "class": FULL,
        "type": "source",
        "version": "1.0",
        "delivery": "exactly-once",
    }


@pytest.mark.parametrize(
    ("wanted", "is_meant"),
    [
        *(
            (each, True)
            for each in ("1.10", " latest ", "[1.10]", "[1.10,)", "[1.9, 2)", "(,1.10]")
        ),
        *((each, True) for each in ("[1.10.0,1.10]", "(1.9,1.11)", "(,)")),
        *((each, False) for each in ("1.1", "1", "[1.1]", "(1.10,)", "[,1.10)", "[2,)", "(,1.9]")),
        *((each, False) for each in ("1.10,", "[1.10", "newest", "[a,)", "[1..1,)")),
    ],
)
def test_a_version_is_meant_by_itself_by_latest_and_by_ranges_with_it(
    wanted: str, *, is_meant: bool
) -> None:
    assert (not flaw_in_version(wanted, "1.10")) == is_meant


def test_a_version_that_is_no_number_is_in_no_range() -> None:
    assert not flaw_in_version("2-rc1", "2-rc1")
    assert flaw_in_version("(,)", "2-rc1").startswith("version 2-rc1 is installed here")


def test_a_name_that_nothing_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        PluginUnknown, match=r"which name matches SparkPipelin, .*did you mean SparkPipeline\?"
    ):
        find_plugins().find("SparkPipelin")


def test_what_cannot_be_loaded_is_told_and_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a_script.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    points = EntryPoints(
        [
            EntryPoint("gone", "no.such.module:Thing", plugins.GROUP),
            EntryPoint("odd", "pathlib:Path", plugins.GROUP),
            EntryPoint("script", "a_script:Thing", plugins.GROUP),
            EntryPoint("numbers", "fairlead_tests.tasks.numbers:Numbers", plugins.GROUP),
        ]
    )

    def installed(*, group: str) -> EntryPoints:
        return points.select(group=group)

    monkeypatch.setattr(plugins, "entry_points", installed)
    found = find_plugins()
    names = [each.short_name for each in found.plugins]
    assert names == ["SparkPipeline", "MemberConnector", "Numbers"]
    assert found.broken == {
        "gone": "gone could not be loaded: ModuleNotFoundError: No module named 'no'",
        "odd": "odd could not be loaded: pathlib:Path is no Connector",
        "script": "script could not be loaded: SystemExit: 3",
    }
