"""Which plugins a node has: what is scanned, when again, and what is wrong with the others."""

import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.catalogue.catalogue import (
    Catalogue,
    ConnectPlugin,
    open_catalogue,
    shown_version,
)
from fairlead.runtime.pipeline.plugins.catalogue.installing.jars import (
    classes_of,
    jars_of,
    opened_jar,
    services_of,
)
from fairlead.runtime.pipeline.plugins.catalogue.installing.store import PluginPart, PluginStore
from fairlead.runtime.pipeline.plugins.catalogue.scanning import NoScanner, ScannedClass
from fairlead.runtime.pipeline.plugins.catalogue.settings import PluginSettings
from fairlead_tests.plugin_jars import JAVA, jar_bytes, write_jar

SINK = "org.apache.kafka.connect.sink.SinkConnector"


@dataclass
class ClassNameScanner:
    """Takes each class whose name ends in `Connector` for a sink."""

    scanned: list[str] = field(default_factory=list[str])
    """The plugins that were scanned."""
    version: str = "1.0"
    type: str = "sink"
    java_release: int = JAVA
    own: Sequence[tuple[str, str]] = (("converter", "org.apache.JsonConverter"),)

    def scan(self, folder: Path) -> Sequence[ScannedClass]:
        self.scanned.append(folder.name)
        names: list[str] = []
        declared: set[str] = set()
        for each in jars_of(folder):
            with opened_jar(each) as jar:
                names += (name.removesuffix(".class").replace("/", ".") for name in classes_of(jar))
                declared |= services_of(jar).get(SINK, set())
        return [
            ScannedClass(self.type, each, self.version, SINK, each in declared)
            for each in sorted(names)
            if each.endswith("Connector")
        ]


@dataclass
class Node:
    """A data folder, a folder for `plugin.path`, and a scanner."""

    data: Path
    path: Path
    scanner: ClassNameScanner = field(default_factory=ClassNameScanner)

    def open(self, *path: Path) -> Catalogue:
        return open_catalogue(PluginSettings(self.data, path or [self.path]), self.scanner)

    def flaws(self, *path: Path) -> list[tuple[str, str]]:
        return [(each.location.name, each.text) for each in self.open(*path).flaws]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node without plugins."""
    (tmp_path / "path").mkdir()
    return Node(tmp_path / "data", tmp_path / "path")


def services_in(path: Path) -> dict[str, str]:
    """Return the service files of a jar."""
    with zipfile.ZipFile(path) as jar:
        return {name: jar.read(name).decode() for name in jar.namelist()}


def test_a_node_without_plugins_has_an_empty_catalogue(node: Node) -> None:
    assert node.open() == Catalogue((), (), ())


def test_plugins_that_were_added_and_those_of_the_path_are_scanned_once(node: Node) -> None:
    write_jar(node.path / "a/lib/a.jar", "x.AConnector", "x.Other")
    jar = write_jar(node.path / "b-1.jar", "y.BConnector")
    PluginStore(node.data).add("c", [PluginPart(jar)], "b-1.jar")
    node.scanner.version = "2"
    first = node.open()
    assert [(each.class_name, each.location) for each in first.plugins] == [
        ("x.AConnector", node.path / "a"),
        ("y.BConnector", node.data / "plugins/c"),
        ("y.BConnector", node.path / "b-1.jar"),
    ]
    assert node.scanner.scanned == ["c", "b-1", "a"]
    folders = {each.folder for each in first.plugins}
    assert {*first.paths} == folders
    assert all(each.parent == node.data / "plugin-catalogue" for each in folders)
    assert node.open() == first
    assert len(node.scanner.scanned) == 3
    (node.data / "plugin-catalogue").rename(node.data / "lost")
    assert node.open() == first
    assert len(node.scanner.scanned) == 6


def test_hosts_find_what_has_no_service_files_by_those_of_the_catalogue(node: Node) -> None:
    content = jar_bytes("x.AConnector", "x.BConnector", services={SINK: ["x.AConnector # one"]})
    jar = write_jar(node.path / "a/lib/a.jar")
    jar.write_bytes(content)
    write_jar(node.path / "a/a.jar", "y.CConnector")
    (folder,) = node.open().paths
    linked = folder / "a"
    assert sorted(each.name for each in linked.iterdir()) == [
        *("1-a.jar", "a.jar", "connect-plugin-path-shim.jar")
    ]
    assert {each.resolve() for each in linked.glob("*a.jar")} == {jar, node.path / "a/a.jar"}
    assert services_in(linked / "connect-plugin-path-shim.jar") == {
        f"META-INF/services/{SINK}": "x.BConnector\ny.CConnector\n"
    }
    assert (folder / "plugins.json").stat().st_mode & 0o077 == 0


def test_a_plugin_with_all_its_service_files_gets_no_more(node: Node) -> None:
    jar = write_jar(node.path / "a.jar")
    jar.write_bytes(jar_bytes("x.AConnector", services={SINK: ["x.AConnector"]}))
    (folder,) = node.open().paths
    assert [each.name for each in (folder / "a").iterdir()] == ["a.jar"]


def test_a_plugin_that_has_changed_is_scanned_again_and_one_that_is_gone_is_forgotten(
    node: Node,
) -> None:
    jar = write_jar(node.path / "a/a.jar", "x.AConnector")
    other = write_jar(node.path / "b/b.jar", "x.BConnector")
    (before,) = {each.folder for each in node.open().plugins if each.class_name == "x.AConnector"}
    write_jar(jar, "x.CConnector")
    assert [each.class_name for each in node.open().plugins] == ["x.BConnector", "x.CConnector"]
    assert node.scanner.scanned == ["a", "b", "a"]
    assert not before.exists()
    os.utime(jar, (1, 1))
    assert len(node.open().paths) == 2
    assert node.scanner.scanned == ["a", "b", "a", "a"]
    other.unlink()
    assert len(node.open().paths) == 1
    assert len([*(node.data / "plugin-catalogue").iterdir()]) == 1


def test_a_catalogue_of_another_path_keeps_the_results_of_this_one(
    node: Node, tmp_path: Path
) -> None:
    write_jar(node.path / "a/a.jar", "x.AConnector")
    write_jar(tmp_path / "other/b/b.jar", "x.BConnector")
    first = node.open()
    assert [each.class_name for each in node.open(tmp_path / "other").plugins] == ["x.BConnector"]
    assert node.open() == first
    assert node.scanner.scanned == ["a", "b"]


def test_a_damaged_result_is_scanned_again(node: Node) -> None:
    write_jar(node.path / "a/a.jar", "x.AConnector")
    first = node.open()
    for content in ("", "{}", json.dumps({"classes": [["sink"]], "own": []})):
        (first.paths[0] / "plugins.json").write_text(content)
        assert node.open() == first
    assert len(node.scanner.scanned) == 4


def test_without_a_scanner_only_what_was_scanned_counts(node: Node) -> None:
    write_jar(node.path / "a/a.jar", "x.AConnector")
    settings = PluginSettings(node.data, [node.path])
    catalogue = open_catalogue(settings, NoScanner("run this"))
    assert [each.text for each in catalogue.flaws] == ["a has not been scanned yet: run this"]
    assert catalogue.plugins == ()
    assert node.open() == open_catalogue(settings, NoScanner("run this")) != catalogue


def test_what_is_wrong_with_a_plugin_is_told_and_the_others_count(node: Node) -> None:
    write_jar(node.path / "good/a.jar", "x.AConnector")
    (node.path / "damaged").mkdir()
    (node.path / "damaged/a.jar").write_bytes(b"PK")
    (node.path / "empty").mkdir()
    write_jar(node.path / "nothing/a.jar", "x.Y")
    new = write_jar(node.path / "new/a.jar")
    new.write_bytes(jar_bytes("x.BConnector", java=99))
    (node.path / "link").symlink_to("none")
    (node.path / "README").write_text("")
    catalogue = node.open()
    names = [(each.location.name, each.text) for each in catalogue.flaws]
    assert names == [
        ("damaged", "a.jar is damaged (File is not a zip file): fetch it again"),
        ("empty", "it holds no jar; class files count only in jars"),
        (
            "new",
            "a.jar needs Java 99, and this node has Java 17: set JAVA_HOME to a newer one, or take"
            " an older version of the plugin",
        ),
        ("nothing", "no plugin of Connect was found in it"),
    ]
    assert [each.class_name for each in catalogue.plugins] == ["x.AConnector", "x.BConnector"]
    assert node.flaws() == names


def test_a_folder_of_jars_as_plugin_path_is_a_warning_with_what_to_do(
    node: Node, tmp_path: Path
) -> None:
    for each in "ab":
        write_jar(node.path / f"{each}.jar", f"x.{each.upper()}Connector")
    (flaw,) = node.open().flaws
    assert flaw.location == node.path
    assert flaw.text == (
        "plugin.path names it, and it holds 2 jars, each of which is a plugin of its own then: if"
        f" they are one plugin, let plugin.path name {tmp_path}, or move them into a folder of"
        " their own below it"
    )
    assert len(node.open().paths) == 2


def test_plugin_path_may_name_a_jar_but_nothing_else(node: Node) -> None:
    jar = write_jar(node.path / "a.jar", "x.AConnector")
    assert node.open(jar) == node.open()
    text = "plugin.path names it, and it is neither a folder of plugins nor a jar"
    (node.path / "README").write_text("")
    assert node.flaws(node.path / "README", node.path / "none") == [
        ("README", text),
        ("none", text),
    ]


@pytest.mark.parametrize("place", ["path", "path/a", "path/a/a.jar"])
def test_a_plugin_that_others_may_change_is_refused(node: Node, tmp_path: Path, place: str) -> None:
    write_jar(node.path / "a/a.jar", "x.AConnector")
    path = tmp_path / place
    path.chmod(0o777)
    (flaw,) = node.open().flaws
    assert flaw.text == (
        f"other users may change {path} (mode 777), and what it holds runs as this node: chmod"
        f" go-w {path}"
    )
    path.chmod(0o755)
    (folder,) = node.open().paths
    folder.chmod(0o770)
    assert node.open().paths == ()
    folder.chmod(0o700)
    assert node.open().paths == (folder,)


def test_a_link_to_a_jar_that_others_may_change_is_refused(node: Node, tmp_path: Path) -> None:
    elsewhere = write_jar(tmp_path / "elsewhere/a.jar", "x.AConnector")
    (node.path / "a").mkdir()
    (node.path / "a/a.jar").symlink_to(elsewhere)
    assert node.flaws() == []
    elsewhere.parent.chmod(0o777)
    assert [name for name, _ in node.flaws()] == ["a"]


def test_a_connector_in_one_version_in_two_plugins_is_told(node: Node) -> None:
    for each in "abc":
        write_jar(node.path / each / "a.jar", "x.AConnector")
    (flaw,) = node.open().flaws
    assert flaw.location == node.path / "a"
    assert flaw.text == (
        f"x.AConnector 1.0 is in {node.path / 'b'}, {node.path / 'c'} as well: hosts take one of"
        " them, so remove the others"
    )


def test_transformations_may_come_with_several_connectors(node: Node) -> None:
    node.scanner.type = "transformation"
    for each in "ab":
        write_jar(node.path / each / "a.jar", "x.AConnector")
    assert len(node.open().plugins) == 2
    assert node.flaws() == []


def test_a_plugin_whose_scan_fails_is_scanned_again_the_next_time(node: Node) -> None:
    write_jar(node.path / "a/a.jar", "x.AConnector")
    (flaw,) = open_catalogue(
        PluginSettings(node.data, [node.path]), NoScanner("the JVM ended")
    ).flaws
    assert flaw.text == "a has not been scanned yet: the JVM ended"
    assert [*(node.data / "plugin-catalogue").iterdir()] == []
    assert len(node.open().plugins) == 1


def test_a_plugin_that_is_removed_while_it_is_scanned_is_a_flaw(node: Node) -> None:
    jar = write_jar(node.path / "a/a.jar", "x.AConnector")

    class Removing(ClassNameScanner):
        def scan(self, folder: Path) -> Sequence[ScannedClass]:
            jar.unlink()
            with opened_jar(folder / "a.jar"):
                raise AssertionError("it is gone")

    catalogue = open_catalogue(PluginSettings(node.data, [node.path]), Removing())
    assert [each.location.name for each in catalogue.flaws] == ["a"]
    assert [*(node.data / "plugin-catalogue").iterdir()] == []


def test_aliases_are_those_of_kafka_and_none_that_two_classes_could_have(node: Node) -> None:
    write_jar(node.path / "a/a.jar", "x.FileSinkConnector", "x.Out$TwiceConnector")
    write_jar(node.path / "b/a.jar", "y.TwiceConnector", "y.JsonConverterConnector")
    assert {each.class_name: each.aliases for each in node.open().plugins} == {
        "x.FileSinkConnector": ("FileSink", "FileSinkConnector"),
        "x.Out$TwiceConnector": (),
        "y.TwiceConnector": (),
        "y.JsonConverterConnector": ("JsonConverterConnector",),  # JsonConverter is Connect's
    }


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("1.0", "1.0"),
        ("undefined", "undefined"),
        ("", "unknown"),
        ("${project.version}", "unknown"),
        ("${version ?: 'unknown'}", "unknown"),
    ],
)
def test_a_version_that_was_not_filled_in_is_unknown(version: str, shown: str) -> None:
    assert shown_version(version) == shown


def test_configs_may_name_the_classes_that_the_settings_allow() -> None:
    settings = PluginSettings(Path("x"), allow=("io.debezium.*", "x.Y"))
    names = ("io.debezium.connector.A", "x.Y", "x.Yz", "io.debeziumX")
    assert [each for each in names if settings.allows(each)] == ["io.debezium.connector.A", "x.Y"]
    assert PluginSettings(Path("x")).allows("a.B")
    assert not PluginSettings(Path("x"), allow=()).allows("a.B")


def test_a_plugin_has_what_rest_shows_of_it(node: Node) -> None:
    write_jar(node.path / "a/a.jar", "x.AConnector")
    (plugin,) = node.open().plugins
    (folder,) = node.open().paths
    assert plugin == ConnectPlugin(
        "sink", "x.AConnector", "1.0", node.path / "a", folder, ("A", "AConnector")
    )
