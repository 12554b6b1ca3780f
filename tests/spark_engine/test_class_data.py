"""JVMs map the classes of Spark from an archive, where `fairlead prepare` has written one."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.runtime.interfaces.cli.main import main
from fairlead.runtime.node.engine import class_data
from fairlead.runtime.node.engine.class_data import write_archive
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.java import archive_of, sharing_options
from fairlead.runtime.processes.java import Java, find_java


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the archive of an environment without one would lie."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return archive_of(find_java())


def test_a_jvm_is_told_of_an_archive_only_where_there_is_one(archive: Path) -> None:
    java = find_java()
    assert sharing_options(java) == []
    archive.parent.mkdir(parents=True)
    archive.touch()
    told = [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"]
    assert sharing_options(java) == told
    assert sharing_options(Java(java.command, "17.0.1")) == [], "it is of one release of Java"


def test_a_jvm_passes_over_an_archive_that_does_not_fit_without_a_word(archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    archive.write_bytes(bytes(4096))  # as one that was cut off: its head is written last
    java = find_java()
    asked = [str(java.command), *sharing_options(java), "-version"]
    ran = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert ran.stdout == ""


def test_an_archive_that_is_there_is_not_written_again(archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    archive.touch()
    told: list[str] = []
    assert write_archive(told.append) == archive
    assert told == []


def test_an_environment_that_others_own_is_told_with_the_way_out(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.parents[1].write_text("a file where the folder would be")
    assert main(["prepare"]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert told.startswith(f"fairlead: {archive.parent} cannot be written")
    assert "run this as the user who installed fairlead" in told


@pytest.mark.spark
def test_a_warm_engine_maps_the_archive(engine: Embedded) -> None:
    archive = archive_of(find_java())
    if not archive.exists():
        pytest.skip("`fairlead prepare` has not been run here")
    assert str(archive) in Path(f"/proc/{engine.pid}/maps").read_text()


def test_a_slim_java_gets_the_archive_of_its_own_classes_first(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    own = tmp_path / "lib" / "server" / "classes.jsa"
    own.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\necho x > {own}\n')
    command.chmod(0o755)
    for _ in range(2):
        class_data.write_own_classes(Java(command, "25.0.2"))
    assert (tmp_path / "asked").read_text() == "-Xshare:dump\n"
    own.unlink()
    command.write_text("#!/bin/sh\nexit 1\n")
    class_data.write_own_classes(Java(command, "25.0.2"))
    assert not own.exists()
