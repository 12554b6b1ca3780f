"""Which processes of a node owe an answer, written down for `status` and `/health`.

The file is there only while there is something to tell. It is written by the node's first
process, which waits for nobody.
"""

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from .run_folder import OWNER_ONLY

FILE: Final = "slow.json"


@dataclass(frozen=True, slots=True)
class SlowProcess:
    """A process that is silent, since when (monotonic seconds), and for how long it may be."""

    kind: str
    name: str
    pid: int | None
    since: float
    limit_seconds: float

    def __str__(self) -> str:
        """Return `group connect (pid 4711) has not answered for 7 s, ...`."""
        seconds = max(0.0, time.monotonic() - self.since)
        pid = "" if self.pid is None else f" (pid {self.pid})"
        return (
            f"{f'{self.kind} {self.name}'.strip()}{pid} has not answered for {seconds:.0f} s; after"
            f" {self.limit_seconds:g} s it is killed and started anew"
        )


def write_slow(run_folder: Path, found: Sequence[SlowProcess]) -> None:
    """Write down who is silent; what cannot be written is told by nobody."""
    path = run_folder / FILE
    made = path.with_suffix(".new")
    with suppress(OSError):
        if not found:
            path.unlink(missing_ok=True)
            return
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
        with os.fdopen(descriptor, "w") as file:
            json.dump([asdict(each) for each in found], file)
        made.rename(path)


def read_slow(run_folder: Path) -> tuple[SlowProcess, ...]:
    """Return who is silent now."""
    try:
        told: list[dict[str, Any]] = json.loads((run_folder / FILE).read_bytes())
        return tuple(SlowProcess(**each) for each in told)
    except (OSError, ValueError, TypeError):
        return ()
