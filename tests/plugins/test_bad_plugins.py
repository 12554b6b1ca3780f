"""Plugins that do what no plugin should: each is told, and the next question is answered."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.catalogue.answers import PluginAnswers
from fairlead.runtime.pipeline.plugins.catalogue.catalogue import open_catalogue
from fairlead.runtime.pipeline.plugins.catalogue.scanning import ScannedClass
from fairlead.runtime.pipeline.plugins.catalogue.settings import PluginSettings
from fairlead.runtime.pipeline.plugins.host import HostDied, HostLaunch, PluginFailed, PluginHost
from fairlead_tests.plugins.bad_plugin import NAME, SERVICE, write_bad_plugin
from fairlead_tests.plugins.installed import QUICK, WORKER, installation, java_here

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
SECONDS = 120.0


class KnownClass:
    """Stands for a scan, which takes long: the plugin has one class with a service file."""

    java_release = 17
    own: Sequence[tuple[str, str]] = ()

    def scan(self, folder: Path) -> Sequence[ScannedClass]:
        assert (folder / "bad.jar").is_file()
        return [ScannedClass("sink", NAME, "1.0", SERVICE, is_declared=True)]


class Node:
    """The plugins of a node in a folder, and the hosts that were started for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: list[PluginHost] = []
        self.settings = PluginSettings(folder / "data", [folder / "path"])
        self.launch = HostLaunch(
            installation(), java_here(), folder / "host.log", replace(QUICK, heap="64m")
        )
        self.answers = PluginAnswers(
            self.settings,
            lambda: open_catalogue(self.settings, KnownClass()),
            self.start,
            SECONDS,
        )

    def start(self, paths: Sequence[str]) -> PluginHost:
        path = {"plugin.path": ",".join(paths)} if paths else {}
        self.hosts.append(PluginHost(self.launch, {**WORKER, **path}))
        return self.hosts[-1]

    def validate(self, does: str, seconds: float = SECONDS) -> int:
        """Return the count of errors."""
        config = {"connector.class": NAME, "name": "a", "topics": "t", "does": does}
        count: int = self.answers.validate(config, seconds)["error_count"]
        return count

    def key(self) -> str:
        name: str = self.answers.keys(NAME, "latest")[0]["name"]
        return name


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("bad"))
    write_bad_plugin(node.folder / "path/bad")
    yield node
    node.answers.close()


def without_lines(error: Exception) -> str:
    """Return the text of an error without the numbers of lines in the plugin's source."""
    return re.sub(r"(\.java):\d+", r"\1", str(error))


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("throws", "no such luck"),
        ("breaks", "com/example/Missing"),
        (
            "is too new",
            "com.example.New needs Java 25, and this JVM has Java 17: set JAVA_HOME to a newer"
            " one, or take an older version of the plugin",
        ),
    ],
)
def test_what_a_plugin_throws_is_told_and_its_host_goes_on(
    node: Node, does: str, words: str
) -> None:
    with pytest.raises(PluginFailed) as failed:
        node.validate(does)
    assert str(failed.value) == words
    count = len(node.hosts)
    assert node.validate("nothing") == 0
    assert len(node.hosts) == count


def test_what_a_plugin_prints_is_logged_and_is_no_answer(node: Node) -> None:
    assert node.validate("prints") == 0
    assert '"not an answer"' in node.launch.log.read_text()


@pytest.mark.parametrize(
    ("does", "words"),
    [
        (
            "exits",
            "code of a plugin has ended its JVM: System.exit was called at"
            f" {NAME}.validate(BadSinkConnector.java); the plugin host ended with exit"
            " code 7",
        ),
        ("halts", "the plugin host ended with exit code 8"),
        (
            "fills",
            "its heap was full (64m): set plugin.host.heap to more; the plugin host ended with"
            " exit code 3",
        ),
    ],
)
def test_a_plugin_that_ends_its_host_is_told_and_the_next_question_has_another(
    node: Node, does: str, words: str
) -> None:
    with pytest.raises(HostDied) as died:
        node.validate(does)
    assert without_lines(died.value).partition("; last lines of ")[0] == words
    count = len(node.hosts)
    assert node.validate("nothing") == 0
    assert len(node.hosts) == count + 1


def test_a_plugin_that_does_not_come_back_holds_up_nobody_and_its_host_is_replaced(
    node: Node,
) -> None:
    assert node.validate("nothing") == 0
    stuck = node.hosts[-1]
    with ThreadPoolExecutor() as threads:
        hanging = threads.submit(node.validate, "blocks", 5.0)
        assert node.validate("nothing") == 0
        with pytest.raises(PluginFailed) as failed:
            hanging.result(SECONDS)
    assert failed.value.status == 500
    assert str(failed.value).startswith("Request timed out. The worker is currently performing")
    assert without_lines(failed.value).endswith(
        f"its code is at {NAME}.block(BadSinkConnector.java)"
    )
    assert node.validate("nothing") == 0
    assert node.hosts[-1] is not stuck
    assert not stuck.is_alive


@pytest.mark.soak  # each run has what becomes of its tasks, without a host: test_bodies.py
def test_a_plugin_that_is_replaced_or_removed_is_asked_as_it_is_now(tmp_path: Path) -> None:
    node = Node(tmp_path)
    write_bad_plugin(tmp_path / "path/bad")
    try:
        assert node.key() == "does"
        write_bad_plugin(tmp_path / "path/bad", "other")
        assert node.key() == "other"
        (tmp_path / "path/bad/bad.jar").unlink()
        with pytest.raises(PluginFailed) as failed:
            node.key()
    finally:
        node.answers.close()
    assert (failed.value.status, str(failed.value)) == (404, f"Unknown plugin {NAME}.")
