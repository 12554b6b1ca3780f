"""What is added as a plugin, from which files, and what is refused."""

import hashlib
import json
import os
import tarfile
import zipfile
from errno import ENOSPC
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.catalogue.installing import unpacking
from fairlead.runtime.pipeline.plugins.catalogue.installing.refusals import PluginRefused
from fairlead.runtime.pipeline.plugins.catalogue.installing.store import (
    PluginPart,
    PluginStore,
    name_of,
)
from fairlead_tests.plugin_jars import jar_bytes, tar_bytes, write_jar, zip_bytes

JAR = jar_bytes("a.B")
FILES = {"a/lib/a.jar": JAR, "a/README.md": b"read me"}
INSIDE = ["README.md", "added.json", "lib/a.jar"]


@pytest.fixture
def store(tmp_path: Path) -> PluginStore:
    """A store without plugins."""
    return PluginStore(tmp_path / "data")


def write(folder: Path, name: str, content: bytes) -> PluginPart:
    """Write a file beside the store."""
    path = folder / name
    path.write_bytes(content)
    return PluginPart(path)


def files_in(folder: Path) -> list[str]:
    """Return the paths of all files below a folder."""
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*.*"))


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    """Return an entry of a tar that is a link, or something else that has no content."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def refusal(store: PluginStore, part: PluginPart, sha512: str = "") -> str:
    """Return why a part is no plugin, after a look at what was left behind."""
    with pytest.raises(PluginRefused) as caught:
        store.add("x", [part], "it", sha512=sha512)
    assert [*store.path.iterdir()] == []
    text = str(caught.value)
    assert text.startswith("it: ")
    assert text.endswith("; nothing was added")
    return text.removeprefix("it: ").removesuffix("; nothing was added")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tgz"])
def test_an_archive_is_unpacked_without_the_folder_around_it(
    store: PluginStore, tmp_path: Path, name: str
) -> None:
    content = zip_bytes(FILES) if name == "a.zip" else tar_bytes(FILES)
    plugin = store.add("a", [write(tmp_path, name, content)], name)
    assert files_in(store.path / "a") == INSIDE
    assert (plugin.sha512, plugin.source) == (hashlib.sha512(content).hexdigest(), name)
    assert plugin.files == {
        "README.md": hashlib.sha512(b"read me").hexdigest(),
        "lib/a.jar": hashlib.sha512(JAR).hexdigest(),
    }
    assert store.read("a") == plugin
    assert store.names() == ["a"]
    assert {each.stat().st_mode & 0o077 for each in (store.path / "a").rglob("*")} == {0}


def test_a_jar_and_a_folder_are_plugins(store: PluginStore, tmp_path: Path) -> None:
    jar = write_jar(tmp_path / "folder/sub/a.jar", "a.B")
    (jar.parent / "same.jar").symlink_to("a.jar")
    store.add("jar", [PluginPart(jar)], "a.jar")
    store.add("folder", [PluginPart(tmp_path / "folder")], "folder")
    assert files_in(store.path / "jar") == ["a.jar", "added.json"]
    assert files_in(store.path / "folder") == ["a.jar", "added.json", "same.jar"]
    assert not (store.path / "folder/same.jar").is_symlink()


def test_several_files_make_one_plugin(store: PluginStore, tmp_path: Path) -> None:
    parts = [
        write(tmp_path, "a.zip", zip_bytes(FILES)),
        PluginPart(write(tmp_path, "1a2b", jar_bytes("c.D")).path, "c.jar"),
    ]
    assert store.add("a", parts, "two").sha512 == ""
    assert files_in(store.path / "a") == ["a/README.md", "a/lib/a.jar", "added.json", "c.jar"]


def test_what_connect_has_itself_is_left_out(store: PluginStore, tmp_path: Path) -> None:
    kafka = "org/apache/kafka"
    files = {
        "connect-api-4.3.0.jar": jar_bytes("x.Y"),
        "slf4j-api-1.7.36.jar": jar_bytes("x.Y"),
        "log4j-core-2.25.1.jar": jar_bytes("x.Y"),
        "renamed.jar": jar_bytes("com.fasterxml.jackson.core.JsonFactory", "module-info"),
        "renamed-too.jar": jar_bytes(f"{kafka}/clients/producer/KafkaProducer"),
        "with-all.jar": jar_bytes(f"{kafka}/clients/producer/KafkaProducer", "a.B"),
        "connect-file-4.3.0.jar": jar_bytes(f"{kafka}/connect/file/FileStreamSinkConnector"),
        "jackson-datatype-jsr310-2.20.jar": jar_bytes("com.fasterxml.jackson.datatype.X"),
        "kafka-connect-jdbc-10.jar": jar_bytes("io.X"),
    }
    plugin = store.add("a", [write(tmp_path, "a.zip", zip_bytes(files))], "a.zip")
    assert plugin.left_out == [
        *("connect-api-4.3.0.jar", "log4j-core-2.25.1.jar", "renamed-too.jar", "renamed.jar"),
        "slf4j-api-1.7.36.jar",
    ]
    assert sorted(plugin.files) == sorted(files.keys() - set(plugin.left_out))


def test_the_same_plugin_stays_and_another_of_its_name_only_replaces_it_on_a_word(
    store: PluginStore, tmp_path: Path
) -> None:
    first = store.add("a", [write(tmp_path, "a.jar", JAR)], "a.jar")
    assert store.add("a", [write(tmp_path, "a.jar", JAR)], "again") == first
    other = write(tmp_path, "a.jar", jar_bytes("c.D"))
    with pytest.raises(PluginRefused, match="another plugin a: choose a name by --name"):
        store.add("a", [other], "other")
    assert store.differences("a") == []
    second = store.add("a", [other], "other", may_replace=True)
    assert store.read("a") == second
    assert store.differences("a") == []
    assert [each.name for each in store.path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is neither a zip nor a tar.gz"),
        (zip_bytes({}), "it holds no jar, so it is no plugin of Connect"),
        (zip_bytes({"a/b.txt": b""}), "it holds no jar, so it is no plugin of Connect"),
        (zip_bytes({"/etc/a.jar": JAR}), "'/etc/a.jar' in it is no name of a file inside it"),
        (zip_bytes({"a/../../b.jar": JAR}), "'a/../../b.jar' in it is no name of a file inside it"),
        (zip_bytes({"a\\b.jar": JAR}), "'a\\\\b.jar' in it is no name of a file inside it"),
        (zip_bytes({"a/" * 17 + "b.jar": JAR}), "deeper than 16 folders"),
        (tar_bytes({"../b.jar": JAR}), "'../b.jar' in it is no name of a file inside it"),
        (tar_bytes({}, link("a.jar", "/etc/passwd")), "'/etc/passwd' in it is no name of a file"),
        (tar_bytes({}, link("a/b.jar", "../../c")), "'../c' in it is no name of a file inside it"),
        (tar_bytes({}, link("a.jar", "none")), "'a.jar' is a link to 'none', which is no file"),
        (tar_bytes({"d/a.jar": JAR}, link("e", "d")), "'e' is a link to 'd', which is no file"),
        (tar_bytes({}, link("x", "", tarfile.CHRTYPE)), "'x' in it is a device or a pipe"),
        (tar_bytes({}, link("x", "", tarfile.FIFOTYPE)), "'x' in it is a device or a pipe"),
        (tar_bytes({"a.jar": JAR})[:-20], "it is damaged"),
        (zip_bytes(FILES)[:-20], "it is damaged"),
        (zip_bytes({"a.jar": JAR[:-20]}), "a.jar is damaged"),
        (zip_bytes({"a.jar": b"x", "a.jar/b": b"x"}), "it has a name twice"),
        (zip_bytes({"slf4j-api-2.jar": JAR}), "it holds only jars that Connect has itself"),
    ],
    ids=lambda each: (
        each if isinstance(each, str) else "archive"
    ),  # its bytes have the time in them
)
def test_what_is_no_plugin_is_refused_and_leaves_nothing(
    store: PluginStore, tmp_path: Path, content: bytes, reason: str
) -> None:
    assert reason in refusal(store, write(tmp_path, "a.zip", content))


def test_a_link_in_an_archive_to_one_of_its_files_becomes_a_copy(
    store: PluginStore, tmp_path: Path
) -> None:
    others = link("a/one.jar", "../lib/a.jar"), link("two.jar", "lib/a.jar", tarfile.LNKTYPE)
    content = tar_bytes({"lib/a.jar": JAR}, *others)
    plugin = store.add("a", [write(tmp_path, "a.tgz", content)], "a.tgz")
    assert plugin.files == dict.fromkeys(
        ["a/one.jar", "lib/a.jar", "two.jar"], hashlib.sha512(JAR).hexdigest()
    )
    assert not any(each.is_symlink() for each in (store.path / "a").rglob("*"))


def test_links_and_pipes_of_a_zip_and_a_folder_are_refused(
    store: PluginStore, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    write_jar(folder / "a.jar", "a.B")
    (folder / "b.jar").symlink_to("/etc/passwd")
    assert "is a link that leads out of" in refusal(store, PluginPart(folder))
    (folder / "b.jar").unlink()
    (folder / "sub").symlink_to(".")
    assert "is a link to a folder" in refusal(store, PluginPart(folder))
    archive = tmp_path / "a.zip"
    entry = zipfile.ZipInfo("a.jar")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr(entry, "/etc/passwd")
    assert "'a.jar' in it is a link or a device" in refusal(store, PluginPart(archive))


def test_an_archive_that_unpacks_to_too_much_is_refused(
    store: PluginStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = write(tmp_path, "a.zip", zip_bytes({"a.jar": JAR, "b": bytes(3 << 20)}))
    assert large.path.stat().st_size < 1 << 14
    monkeypatch.setattr(unpacking, "MOST_BYTES", 2 << 20)
    assert refusal(store, large) == "it unpacks to more than 2 MiB"
    monkeypatch.setattr(unpacking, "MOST_ENTRIES", 3)
    many = write(tmp_path, "b.zip", zip_bytes({f"{each}.jar": JAR for each in range(4)}))
    assert refusal(store, many) == "it has more than 3 files and folders"


def test_a_checksum_has_to_be_that_of_the_file(store: PluginStore, tmp_path: Path) -> None:
    part = write(tmp_path, "a.jar", JAR)
    right = hashlib.sha512(JAR).hexdigest()
    reason = refusal(store, part, sha512="ab")
    assert reason == f"its SHA-512 is {right}, and should be ab: it is damaged, or another file"
    assert store.add("a", [part], "a.jar", sha512=right.upper()).sha512 == right
    folder = write_jar(tmp_path / "folder/a.jar", "a.B").parent
    with pytest.raises(PluginRefused, match="a folder has no SHA-512"):
        store.add("b", [PluginPart(folder)], "folder", sha512=right)


def test_a_full_disk_leaves_nothing(
    store: PluginStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_none(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(unpacking.PluginFolder, "write", write_none)
    assert refusal(store, write(tmp_path, "a.jar", JAR)) == "No space left on device"


def test_a_missing_file_and_a_folder_that_cannot_be_written_are_told(
    store: PluginStore, tmp_path: Path
) -> None:
    assert refusal(store, PluginPart(tmp_path / "none.zip")) == "No such file or directory"
    (tmp_path / "file").write_text("")
    with pytest.raises(PluginRefused, match="file/plugins cannot be written: File exists"):
        PluginStore(tmp_path / "file").add("a", [], "a")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".hidden", "a b", "ä", "-x", "a" * 129])
def test_a_name_has_to_be_one_of_a_folder(store: PluginStore, name: str) -> None:
    for act in (lambda: store.add(name, [], "a"), lambda: store.remove(name)):
        with pytest.raises(PluginRefused, match="a plugin cannot be called"):
            act()


@pytest.mark.parametrize(
    ("file", "name"),
    [("a-1.0.zip", "a-1.0"), ("a-1.0.tar.gz", "a-1.0"), ("a.tgz", "a"), ("a.jar", "a"), ("a", "a")],
)
def test_a_plugin_is_called_as_its_file(file: str, name: str) -> None:
    assert name_of(file) == name


def test_each_difference_from_what_was_added_is_named(store: PluginStore, tmp_path: Path) -> None:
    files = {f"{each}.jar": jar_bytes(each) for each in "abc"}
    store.add("x", [write(tmp_path, "x.zip", zip_bytes(files))], "x.zip")
    assert store.differences("x") == []
    folder = store.path / "x"
    (folder / "a.jar").unlink()
    (folder / "b.jar").write_bytes(files["a.jar"])
    (folder / "d.jar").write_bytes(files["a.jar"])
    assert store.differences("x") == [
        "a.jar is missing",
        "d.jar was not added",
        "b.jar has another content than the file that was added",
    ]
    for content in ("", "{}", json.dumps({"name": 1})):
        (folder / "added.json").write_text(content)
        assert store.read("x") is None
        assert store.differences("x") == [
            f"{folder / 'added.json'} is missing or damaged: add the plugin again"
        ]


def test_a_plugin_that_was_changed_is_put_right_by_replacing_it(
    store: PluginStore, tmp_path: Path
) -> None:
    part = write(tmp_path, "a.jar", JAR)
    store.add("a", [part], "a.jar")
    (store.path / "a/a.jar").write_bytes(jar_bytes("c.D"))
    with pytest.raises(PluginRefused, match="replace it by --replace"):
        store.add("a", [part], "a.jar")
    store.add("a", [part], "a.jar", may_replace=True)
    assert store.differences("a") == []


def test_what_died_while_it_was_added_is_cleared_away_later(
    store: PluginStore, tmp_path: Path
) -> None:
    old, new = (store.path / f".part-{each}" for each in ("old", "new"))
    for each in (old, new):
        write_jar(each / "a.jar", "a.B")
    os.utime(old, (1, 1))
    assert store.names() == []
    store.add("a", [write(tmp_path, "a.jar", JAR)], "a.jar")
    assert sorted(each.name for each in store.path.iterdir()) == [".part-new", "a"]


def test_a_plugin_is_removed_once(store: PluginStore, tmp_path: Path) -> None:
    store.add("x", [write(tmp_path, "a.jar", JAR)], "a.jar")
    store.remove("x")
    assert [*store.path.iterdir()] == []
    with pytest.raises(PluginRefused, match=r"there is no plugin x in .*: there are none"):
        store.remove("x")
    with pytest.raises(PluginRefused, match="there is no plugin x"):
        store.differences("x")
