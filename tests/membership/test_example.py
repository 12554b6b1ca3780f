"""The example of a member with callbacks does what it says."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "deploy" / "member" / "listen.py"


def test_what_one_member_gives_up_another_begins_after_it() -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.splitlines() == [
        "ann begins flights ships trains",
        "ann ends trains",
        "bob begins trains",
        "bob ends trains",
        "ann begins trains",
        "ann ends flights ships trains",
    ]
