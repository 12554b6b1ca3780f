"""Third-party clients of Kafka Connect, each installed separately: their dependencies conflict.

They are kept in the virtual environment, and run in interpreters of their own.
"""
# pyright: basic

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

KEPT: Final = Path(sys.prefix) / "connect-clients"
INSTALL_SECONDS: Final = 120
PLAY_SECONDS: Final = 60

PRELUDE: Final = """
import json, sys, time
url, name, config = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
told = {}

def until(read, wanted):
    end = time.monotonic() + 30
    while (found := read()) != wanted:
        assert time.monotonic() < end, f"{found} is not {wanted}"
        time.sleep(0.05)
"""
"""The beginning of each script, which collects results of the client in `told`."""


class NoClient(Exception):  # noqa: N818  # says what happened
    """A client is not available."""


def install(*requirements: str) -> Path:
    """Return a folder with distributions and nothing else, from PyPI; raises `NoClient`."""
    folder = KEPT / requirements[0]
    if folder.exists():
        return folder
    made = KEPT / f"{requirements[0]}.{os.getpid()}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(made)]
    try:
        subprocess.run(
            [*pip, *requirements], check=True, capture_output=True, timeout=INSTALL_SECONDS
        )
        made.rename(folder)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(made, ignore_errors=True)
        raise NoClient(f"{requirements[0]} could not be installed from PyPI: {error}") from None
    return folder


def play(installed: Path, script: str, *arguments: str) -> str:
    """Run a script with the distributions of a folder, and return what it prints at its end."""
    command = [sys.executable, "-c", f"{PRELUDE}{script}print(json.dumps(told))", *arguments]
    ran = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=PLAY_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]
