"""Lists of plugins as Strimzi has them, and where their artifacts come from."""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.catalogue.installing.downloads import PluginLists
from fairlead.runtime.pipeline.plugins.catalogue.installing.fetching import (
    MAKERS_ARCHIVES,
    fetch_parts,
)
from fairlead.runtime.pipeline.plugins.catalogue.installing.lists import (
    FileArtifact,
    ListedPlugin,
    MavenArtifact,
    parse_plugins,
    plugins_in,
)
from fairlead.runtime.pipeline.plugins.catalogue.installing.refusals import PluginRefused
from fairlead.runtime.pipeline.plugins.catalogue.installing.store import PluginPart, PluginStore
from fairlead.runtime.pipeline.plugins.ivy import Coordinates, NotFetched
from fairlead_tests.plugin_jars import jar_bytes, zip_bytes

JAR = jar_bytes("a.B")
ARCHIVE = zip_bytes({"a/a.jar": JAR})
DIGEST = hashlib.sha512(ARCHIVE).hexdigest()
FILE_URL = "file:///a.jar"


@dataclass
class Files:
    """A repository that has some files."""

    files: dict[str, Path] = field(default_factory=dict[str, Path])
    """By coordinates."""
    asked: list[str] = field(default_factory=list[str])
    further: Sequence[str] = ()

    def fetch(self, artifacts: Sequence[Coordinates], *, is_whole: bool) -> list[Path]:
        names = [str(each) for each in artifacts]
        self.asked.append(" ".join(names) + " and more" * is_whole)
        if missing := [each for each in names if each not in self.files]:
            raise NotFetched(f"no repository has {missing[0]}")
        return [self.files[each] for each in names]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a server on loopback, and the folder of its files."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *others: object) -> None:
            super().__init__(*others, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", folder
        finally:
            server.shutdown()
            thread.join()


def test_a_list_is_read_whole_of_a_build_or_of_a_resource() -> None:
    plugins = [
        {
            "name": "debezium",
            "artifacts": [
                {"type": "maven", "group": "io.d", "artifact": "d", "version": "1"},
                {"type": "tgz", "url": "https://a.example/x.tgz", "sha512sum": DIGEST.upper()},
                {"type": "other", "url": FILE_URL, "fileName": "b.txt"},
            ],
        }
    ]
    for document in ({"plugins": plugins}, {"build": {"plugins": plugins}}):
        assert plugins_in(document) == plugins
    resource = {"kind": "KafkaConnect", "spec": {"build": {"plugins": plugins, "output": {}}}}
    assert plugins_in(resource) == plugins
    artifacts = (
        MavenArtifact(Coordinates("io.d", "d", "1")),
        FileArtifact("tgz", "https://a.example/x.tgz", DIGEST),
        FileArtifact("other", FILE_URL, "", "b.txt"),
    )
    assert parse_plugins(plugins) == [ListedPlugin("debezium", artifacts)]


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"name": "x", "plugins": []}, {"config": {}, "plugins": []}, {"plugins": "x"}],
)
def test_anything_else_is_no_list(document: object) -> None:
    assert plugins_in(document) is None


@pytest.mark.parametrize(
    ("artifact", "reason"),
    [
        ({}, "the type of an artifact is one of jar, maven, other, tgz, zip, not ''"),
        ("x", "an artifact of mine is no mapping: 'x'"),
        (
            {"type": "zip", "url": "https://ann:hunter2@a.example/x.zip"},
            "the URL of an artifact has a user in it, who would be shown with the plugin: download",
        ),
        ({"type": "rar", "url": FILE_URL}, "not 'rar'"),
        ({"type": "jar", "url": FILE_URL, "colour": "red"}, "colour is not known here"),
        ({"type": "jar", "url": FILE_URL, "insecure": "true"}, "insecure is not supported"),
        ({"type": "jar", "url": FILE_URL, "sha512sum": "ab"}, "has no 128 digits"),
        ({"type": "jar", "url": "file:///", "sha512sum": ""}, "names no file, so fileName has to"),
        ({"type": "jar", "url": FILE_URL, "fileName": "../x"}, "names no file"),
        ({"type": "jar", "url": "ftp://a/b.jar"}, "'ftp://a/b.jar' is no https or file URL"),
        ({"type": "jar", "url": "http://a.example/b.jar"}, "is no https or file URL"),
        ({"type": "jar", "url": "https://a.example/b.jar"}, "needs a sha512sum"),
        (
            {"type": "maven", "group": "a", "artifact": "b"},
            "has a group, an artifact and a version",
        ),
        ({"type": "maven", "url": "x"}, "url is not known here"),
    ],
)
def test_an_artifact_that_cannot_be_had_is_refused(artifact: object, reason: str) -> None:
    with pytest.raises(PluginRefused) as caught:
        parse_plugins([{"name": "mine", "artifacts": [artifact]}])
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("plugins", "reason"),
    [
        (["x"], "a plugin is no mapping: 'x'"),
        ([{"name": "x"}], "each plugin of the list has a name and a list of artifacts"),
        ([{"name": "x", "artifacts": []}], "each plugin of the list has a name"),
        ([{"artifacts": [1]}], "each plugin of the list has a name"),
        (
            [{"name": "x", "artifacts": [{"type": "jar", "url": FILE_URL}]}] * 2,
            "the list has two plugins called x: nothing was changed",
        ),
    ],
)
def test_a_list_that_is_wrong_is_refused(plugins: list[object], reason: str) -> None:
    with pytest.raises(PluginRefused) as caught:
        parse_plugins(plugins)
    assert reason in str(caught.value)


def test_files_come_by_http_and_jars_from_repositories(
    tmp_path: Path, served: tuple[str, Path]
) -> None:
    url, folder = served
    (folder / "a.zip").write_bytes(ARCHIVE)
    jar = tmp_path / "d-1.jar"
    jar.write_bytes(jar_bytes("d.E"))
    repository = Files({"io.d:d:1": jar})

    def choose(further: Sequence[str]) -> Files:
        repository.further = further
        return repository

    lists = PluginLists(PluginStore(tmp_path), choose)
    artifacts = (
        FileArtifact("zip", f"{url}/a.zip", DIGEST),
        FileArtifact("other", f"{url}/a.zip", DIGEST, "kept.bin"),
        MavenArtifact(Coordinates("io.d", "d", "1"), "https://repo.example"),
    )
    plugin = lists.install(ListedPlugin("mine", artifacts))
    assert sorted(plugin.files) == ["a/a.jar", "d-1.jar", "kept.bin"]
    assert plugin.source == f"{url}/a.zip {url}/a.zip io.d:d:1"
    assert (repository.asked, repository.further) == (
        ["io.d:d:1 and more"],
        ("https://repo.example",),
    )
    assert lists.install(ListedPlugin("mine", artifacts)) == plugin


def test_a_download_that_fails_changes_nothing(tmp_path: Path, served: tuple[str, Path]) -> None:
    url, folder = served
    (folder / "a.zip").write_bytes(JAR)
    lists = PluginLists(PluginStore(tmp_path), lambda _: Files())
    for artifact, reason in (
        (FileArtifact("zip", f"{url}/none.zip", DIGEST), "none.zip cannot be read: HTTP Error 404"),
        (FileArtifact("zip", f"{url}/a.zip", DIGEST), f"and should be {DIGEST}: it is damaged"),
        (FileArtifact("jar", f"file://{folder}/none.jar"), "No such file or directory"),
        (MavenArtifact(Coordinates("a", "b", "1")), "no repository has a:b:1"),
    ):
        with pytest.raises(PluginRefused) as caught:
            lists.install(ListedPlugin("mine", (artifact,)))
        assert reason in str(caught.value)
        assert str(caught.value).endswith("nothing was added")
    assert not lists.store.path.exists()


def test_the_makers_own_archive_is_taken_if_there_is_one(tmp_path: Path) -> None:
    plain = Coordinates("io.d", "d", "1")
    path = tmp_path / "x"
    for classifier, kind in MAKERS_ARCHIVES:
        name = f"io.d:d:1:{classifier}" + ("" if kind == "jar" else f":{kind}")
        part = PluginPart(path, is_archive=kind != "jar")
        assert fetch_parts(Files({name: path}), [plain], may_be_archive=True) == [part]
    only_jar = Files({"io.d:d:1": path})
    assert fetch_parts(only_jar, [plain], may_be_archive=True) == [PluginPart(path)]
    assert only_jar.asked[-1] == "io.d:d:1 and more"
    assert len(only_jar.asked) == len(MAKERS_ARCHIVES) + 1


def test_several_artifacts_come_together_and_those_with_a_classifier_alone(tmp_path: Path) -> None:
    names = ["a:b:1", "a:c:1", "a:d:1:plugin:zip"]
    repository = Files({name: tmp_path / name for name in names})
    artifacts = [Coordinates.parse(each) for each in names]
    assert fetch_parts(repository, artifacts, may_be_archive=True) == [
        PluginPart(tmp_path / names[2], is_archive=True),
        PluginPart(tmp_path / names[0]),
        PluginPart(tmp_path / names[1]),
    ]
    assert repository.asked == ["a:d:1:plugin:zip", "a:b:1 a:c:1 and more"]
    with pytest.raises(PluginRefused, match="no repository has a:z:1; nothing was added"):
        fetch_parts(repository, [Coordinates("a", "z", "1")], may_be_archive=True)
