# pyright: basic
"""The demo of changes: what it lacks is told, and run to its end it passes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fairlead.runtime.demo.cdc import database
from fairlead.runtime.demo.cdc import show as cdc
from fairlead_tests.chaos.crew import quick_to_start


def test_what_is_missing_is_told_with_what_mends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(database, "find_spec", lambda _: None)
    monkeypatch.setattr(database, "_PLACES", ())
    monkeypatch.setenv("PATH", "")
    assert cdc.demo_cdc(1, 1) == 1
    extra, server = capsys.readouterr().out.splitlines()
    assert extra.endswith("-m pip install 'fairlead-connect[postgres]'")
    assert "a PostgreSQL server of 14 or later" in server


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(800)
@pytest.mark.parametrize("more", [[], ["--plugin"]], ids=["own", "debezium"])
def test_the_demo_of_changes_passes_and_leaves_nothing_behind(more: list[str]) -> None:
    if parts := database.missing_parts():
        pytest.skip("; ".join(parts))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # another user runs the server where root runs the tests
        ran = subprocess.run(
            [sys.executable, "-m", "fairlead.runtime", "demo", "cdc", "--seconds", "8", *more],
            env={**quick_to_start(os.environ), "TMPDIR": folder},
            capture_output=True,
            text=True,
            timeout=700,
            check=False,
        )
        left = list(Path(folder).glob("fairlead-demo-*"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "PASSED"
    assert "kill -9" in ran.stdout
    assert left == []
