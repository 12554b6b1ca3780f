"""What a node's assignors are, written down for the process that makes plans.

The file lies in the run folder and is for its owner only, as the settings of an assignor may
be secret: a command line would tell them to everybody on the machine.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path

from ..cluster.run_folder import ASSIGNORS, OWNER_ONLY
from ..cluster.spec import AssignorSpec


def write_assignors(data_dir: Path, spec: AssignorSpec) -> None:
    """Write them down. Raises `OSError`."""
    path = _path(data_dir)
    made = path.with_suffix(".new")
    made.unlink(missing_ok=True)
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(spec), file)
    made.rename(path)


def read_assignors(data_dir: Path) -> AssignorSpec:
    """Return what was written last; where that cannot be read, what a node has by default."""
    try:
        told = json.loads(_path(data_dir).read_text())
        return AssignorSpec(tuple(told["names"]), dict(told["conf"]), int(told["memory_bytes"]))
    except (OSError, ValueError, TypeError, KeyError):
        return AssignorSpec()


def _path(data_dir: Path) -> Path:
    return data_dir / "run" / ASSIGNORS
