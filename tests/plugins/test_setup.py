import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins import setup
from fairlead.runtime.pipeline.plugins.ivy import Coordinates, Ivy, NotFetched
from fairlead.runtime.pipeline.plugins.setup import NotSetUp, find_installation, set_up
from fairlead.runtime.processes.java import Java
from fairlead_tests.plugins.installed import installation, java_here

NO_JAVA = Java(Path("/none"), "17")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(setup, "home", lambda: tmp_path / "plugins")
    return tmp_path


@pytest.mark.usefixtures("empty")
def test_without_a_setup_it_is_told_which_command_makes_it() -> None:
    with pytest.raises(NotSetUp, match=r"classes are not here yet: run `fairlead plugins setup`$"):
        find_installation()


@pytest.mark.parametrize(
    ("jars", "reason"),
    [
        ([], "has 0 jars named connect-runtime-VERSION.jar, and one is needed: --libs takes the"),
        (["connect-runtime-4.3.0.jar", "connect-runtime-4.2.0.jar"], "has 2 jars named connect-"),
        (["connect-runtime-3.9.1.jar"], "has Kafka Connect 3.9; 4.1 to 4.4 are supported"),
        (["connect-runtime-5.0.0.jar"], "has Kafka Connect 5.0; 4.1 to 4.4 are supported"),
    ],
)
def test_a_folder_that_is_no_connect_is_refused(empty: Path, jars: list[str], reason: str) -> None:
    for each in jars:
        (empty / each).touch()
    with pytest.raises(NotSetUp, match=reason):
        set_up(NO_JAVA, Ivy(NO_JAVA), print, empty)
    assert not (empty / "plugins").exists()


def test_a_folder_that_is_not_there_is_told(empty: Path) -> None:
    with pytest.raises(NotSetUp, match="nowhere cannot be read: No such file or directory"):
        set_up(NO_JAVA, Ivy(NO_JAVA), print, empty / "nowhere")


class Repository(Ivy):
    """Stands for Maven's repositories: it has two jars, and a compiler that a script stands for."""

    def fetch(self, artifacts: Sequence[Coordinates], *, is_whole: bool) -> list[Path]:
        folder = self.java.command.parent
        compiler = [folder / f"{each.artifact}.jar" for each in artifacts]
        return [folder / "a.jar", folder / "b.jar"] if is_whole else compiler


@pytest.fixture
def java(empty: Path) -> Java:
    """A Java that compiles nothing to one class."""
    for each in ("a.jar", "b.jar", "ecj.jar"):
        (empty / each).write_text(each)
    command = empty / "java"
    command.write_text(
        '#!/bin/sh\nwhile [ "$1" != -d ]; do shift; done\nmkdir -p "$2"\necho > "$2/A.class"\n'
    )
    command.chmod(0o700)
    return Java(command, "17")


def no_words(_: str) -> None:
    """Tell nobody."""


@pytest.mark.parametrize("name", ["connect/a.jar", "host.jar", "boot.jar", "log4j2.xml"])
@pytest.mark.parametrize(
    ("content", "flaw"),
    [(None, "No such file or directory"), ("halves", "has 6 bytes instead of")],
)
def test_what_was_removed_or_changed_after_it_was_set_up_is_noticed_and_made_again(
    java: Java, name: str, content: str | None, flaw: str
) -> None:
    made = set_up(java, Repository(java), no_words, None)
    assert find_installation() == made
    whole = (made.folder / name).read_bytes()
    if content is None:
        (made.folder / name).unlink()
    else:
        (made.folder / name).write_text(content)
    with pytest.raises(NotSetUp) as damaged:
        find_installation()
    assert f"{name}{':' if content is None else ''} {flaw}" in str(damaged.value)
    assert "run `fairlead plugins setup`, which makes them again" in str(damaged.value)
    assert set_up(java, Repository(java), no_words, None) == find_installation() == made
    assert (made.folder / name).read_bytes() == whole


@pytest.mark.parametrize("about", ["", "[]", '{"connect": "4.3.0", "source": "x"}'])
def test_what_does_not_say_what_it_has_is_as_if_it_were_not_there(java: Java, about: str) -> None:
    made = set_up(java, Repository(java), no_words, None)
    (made.folder / "installation.json").write_text(about)
    with pytest.raises(NotSetUp, match="classes are not here yet"):
        find_installation()
    assert set_up(java, Repository(java), no_words, None) == find_installation()


def test_a_setup_that_was_killed_leaves_nothing_half_and_the_next_one_works(
    java: Java, empty: Path
) -> None:
    program = f"""
import os
from pathlib import Path
from fairlead.runtime.pipeline.plugins import setup
from fairlead.runtime.pipeline.plugins.ivy import Ivy
from fairlead.runtime.processes.java import Java

class Dying(Ivy):
    def fetch(self, artifacts, *, is_whole):
        if is_whole:
            return [self.java.command.with_name("a.jar")]
        os.kill(os.getpid(), {signal.SIGKILL})

setup.home = lambda: Path({str(empty)!r}) / "plugins"
java = Java(Path({str(java.command)!r}), "17")
setup.set_up(java, Dying(java), print, None)
"""
    ran = subprocess.run([sys.executable, "-c", program], check=False)
    assert ran.returncode == -signal.SIGKILL
    left = [each.name for each in (empty / "plugins").iterdir()]
    assert [each[:5] for each in left] == [".new-"]
    with pytest.raises(NotSetUp, match="classes are not here yet"):
        find_installation()
    made = set_up(java, Repository(java), no_words, None)
    assert {each.name for each in (empty / "plugins").iterdir()} == {"connect", made.folder.name}
    assert find_installation() == made


def test_without_a_network_nothing_is_changed(java: Java, empty: Path) -> None:
    class Unreachable(Ivy):
        def fetch(self, artifacts: Sequence[Coordinates], *, is_whole: bool) -> list[Path]:
            raise NotFetched(f"{artifacts[0]} could not be read, {is_whole=}")

    made = set_up(java, Repository(java), no_words, None)
    (made.folder / "host.jar").unlink()
    before = sorted(each.name for each in empty.rglob("*"))
    with pytest.raises(NotFetched, match="could not be read, is_whole=True"):
        set_up(java, Unreachable(java), no_words, None)
    assert sorted(each.name for each in empty.rglob("*")) == before


def test_an_environment_that_cannot_be_written_is_an_error_of_the_system(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "home", lambda: java.command / "plugins")  # below a file
    with pytest.raises(NotADirectoryError):
        set_up(java, Repository(java), no_words, None)


@pytest.mark.soak  # each run notices what changes, and sets it up again, above
@pytest.mark.cluster
@pytest.mark.xdist_group("plugins")
def test_the_jars_of_a_download_serve_as_well_and_other_source_asks_for_a_new_setup(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    libs = installation().folder / "connect"
    monkeypatch.setattr(setup, "home", lambda: empty / "plugins")
    steps: list[str] = []
    made = set_up(java_here(), Ivy(java_here()), steps.append, libs)
    assert steps == ["the jars of Kafka Connect 4.3.0 are copied", "the plugin host is compiled"]
    assert find_installation() == set_up(NO_JAVA, Ivy(NO_JAVA), steps.append, libs)
    assert (made.connect, len(steps)) == ("4.3.0", 2)
    assert {each.name for each in (empty / "plugins").iterdir()} == {"connect", made.folder.name}
    monkeypatch.setattr(setup, "_hash_of_source", lambda: "another")
    with pytest.raises(NotSetUp, match="another one than when it was set up with Kafka"):
        find_installation()
