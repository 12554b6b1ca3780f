"""The demo of several hosts: run to its end it passes, and leaves nothing behind."""
# pyright: basic

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fairlead.runtime.demo.cdc.database import missing_parts
from fairlead.runtime.demo.hosts.credentials import missing_openssl
from fairlead_tests.chaos.crew import quick_to_start


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(800)
@pytest.mark.usefixtures("archive")
def test_the_demo_of_hosts_passes_and_leaves_nothing_behind() -> None:
    if parts := [*missing_parts(), *filter(None, [missing_openssl()])]:
        pytest.skip("; ".join(parts))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # another user runs the server where root runs the tests
        command = ["demo", "hosts", "--seconds", "8", "--workers", "1"]
        ran = subprocess.run(
            [sys.executable, "-m", "fairlead.runtime", *command],
            env={**quick_to_start(os.environ), "TMPDIR": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        left = list(Path(folder).glob("fairlead-demo-*"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "PASSED"
    assert " owns the group after " in ran.stdout
    assert left == []
