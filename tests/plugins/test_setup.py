from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins import setup
from fairlead.runtime.pipeline.plugins.ivy import Ivy
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
