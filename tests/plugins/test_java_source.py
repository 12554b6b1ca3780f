"""The plugin host's Java source, by other compilers and on other Javas and versions of Connect."""

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins import setup
from fairlead.runtime.pipeline.plugins.host import HostLaunch, PluginHost, trust_options
from fairlead.runtime.pipeline.plugins.ivy import Ivy
from fairlead.runtime.pipeline.plugins.setup import Installation, set_up
from fairlead.runtime.processes.java import Java, find_java
from fairlead_tests.java_peer import QUICK as QUICK_JVM
from fairlead_tests.plugins.installed import (
    CONNECT_FILE,
    QUICK,
    VERSION,
    WORKER,
    installation,
    java_here,
    of_version,
    plugin_path,
)

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
SECONDS = 120.0
COMPILER = shutil.which("javac")
FOLDER = Path(__file__).parents[1]
REFUSAL = (
    "Plugin org.apache.kafka.connect.file.FileStreamSourceConnector not found that matches the"
    " version range [9.9,9.9], available versions: [{}]"
)
CONFIG = {"connector.class": "FileStreamSource", "name": "lines", "connector.plugin.version": "9.9"}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in which nothing is set up."""
    monkeypatch.setattr(setup, "home", lambda: tmp_path / "plugins")
    return tmp_path


def answers(connect: Installation, java: Java, log: Path, plugins: Path) -> list[str]:
    """Return the version of Connect and the errors of a config, which a host tells twice alike."""
    properties = {**WORKER, "plugin.path": str(plugins)}
    with closing(PluginHost(HostLaunch(connect, java, log, QUICK), properties)) as host:
        assert host.about["java"] == java.version
        keys = host.ask("keys", SECONDS, plugin="FileStreamSource", version="latest")
        assert {"file", "topic"} <= {each["name"] for each in keys}
        first, second = (
            host.ask("validate", SECONDS, config=CONFIG, ms=int(SECONDS * 1000)) for _ in range(2)
        )
        assert first == second
        values = [each["value"] for each in first["configs"] if each["value"]]
        errors = (error for each in values for error in each["errors"])
        return [host.about["connect"], *dict.fromkeys(errors)]


@pytest.mark.skipif(COMPILER is None, reason="there is no javac")
@pytest.mark.parametrize("part", ["boot", "host"])
def test_the_source_compiles_without_a_warning_for_java_17(tmp_path: Path, part: str) -> None:
    assert COMPILER
    source = Path(setup.__file__).parent / "java" / part
    jars = ":".join(map(str, setup.compile_path(installation().folder)))
    ran = subprocess.run(
        [
            *(COMPILER, "-Xlint:all,-classfile", "-Werror", "--release", "17", "-proc:none"),
            *("-encoding", "UTF-8"),
            *(f"-J{each}" for each in QUICK_JVM),
            *("-d", str(tmp_path), "-classpath", jars, *map(str, source.rglob("*.java"))),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert ran.stderr == ""


@pytest.mark.soak  # each run has it on the java of this machine: test_setup.py, test_host.py
def test_the_java_of_the_python_package_sets_up_and_answers(empty: Path) -> None:
    java = find_java({"PATH": ""})  # neither JAVA_HOME nor PATH leads to one
    libs = installation().folder / "connect"
    assert not java.command.with_name("javac").exists()
    ivy = Ivy(java, options=trust_options(""))
    connect = set_up(java, ivy, lambda _: None, libs)
    told = answers(connect, java, empty / "host.log", plugin_path(empty / "path", CONNECT_FILE))
    assert told == ["4.3.0", REFUSAL.format("4.3.0")]


# Kafka's own plugins take their version from Kafka, and those of 4.3 do not find that of 4.4.
@pytest.mark.soak  # more downloads, and everything is started once more
@pytest.mark.parametrize(("version", "plugins"), [("4.1.1", "4.1.1"), ("4.4.0", "undefined")])
def test_what_is_compiled_once_runs_on_other_versions_of_connect(
    tmp_path: Path, version: str, plugins: str
) -> None:
    path = plugin_path(tmp_path / "path", CONNECT_FILE)
    told = answers(of_version(version), java_here(), tmp_path / "host.log", path)
    assert told == [version, REFUSAL.format(plugins)]


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", ["4.1.1", "4.2.0", "4.4.0"])
def test_plugins_feed_sinks_and_are_fed_on_other_versions_of_connect(version: str) -> None:
    of_version(version)  # or it is skipped
    names = "plugin_sinks/test_sink", "plugin_sources/test_source", "plugin_pairs/test_pair"
    tests = (str(FOLDER / f"{each}.py") for each in (*names, "connect_tasks/test_offset_syncs"))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=FOLDER.parent,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, VERSION: version},
    )
    assert ran.returncode == 0, ran.stdout[-5000:]
