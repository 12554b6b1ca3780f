"""The REST process, for which an hour of the page takes half a minute: its steps are short.

On SIGUSR1 it writes what is allocated by the modules that keep the hour and the messages.
"""

import json
import signal
import sys
import tracemalloc
from pathlib import Path

from fairlead.projections.page import rings
from fairlead.runtime.interfaces.replies.building.page import history, state
from fairlead.runtime.interfaces.rest import __main__ as rest
from fairlead.runtime.interfaces.rest.reading import feed

MODULE = "fairlead_tests.benchmarks.quick_hour"
STEP_MS = 100
FILE = "allocated.json"
"""In the data folder: bytes by name of the module."""
KEEPERS = (rings, history, feed)


def write(*_: object) -> None:
    """Write the file, whole at once."""
    found = tracemalloc.take_snapshot().statistics("filename")
    by_file = {each.traceback[0].filename: each.size for each in found}
    sizes = {each.__name__.rpartition(".")[2]: by_file[str(each.__file__)] for each in KEEPERS}
    Path("new").write_text(json.dumps(sizes))
    Path("new").rename(FILE)


if __name__ == "__main__":
    for each in (rings, history, state):
        vars(each)["STEP_MS"] = STEP_MS
    tracemalloc.start(1)
    signal.signal(signal.SIGUSR1, write)
    sys.exit(rest.main())
