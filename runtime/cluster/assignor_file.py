"""The file that tells the REST process which assignors the node has: plans ask them too.

It lies in the run folder and only its owner may read it, as the settings of an assignor may be
secret: every user of the machine can read a command line.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path

from .run_folder import ASSIGNORS, OWNER_ONLY
from .spec import AssignorSpec


def write_assignors(data_dir: Path, spec: AssignorSpec) -> None:
    """Write the node's assignors and their settings; raises `OSError`."""
    path = _path(data_dir)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(spec), file)
    new.rename(path)


def read_assignors(data_dir: Path) -> AssignorSpec:
    """Return what was written last; the default of a node where that cannot be read."""
    try:
        spec = json.loads(_path(data_dir).read_text())
        return AssignorSpec(tuple(spec["names"]), dict(spec["conf"]), int(spec["memory_bytes"]))
    except (OSError, ValueError, TypeError, KeyError):
        return AssignorSpec()


def _path(data_dir: Path) -> Path:
    return data_dir / "run" / ASSIGNORS
