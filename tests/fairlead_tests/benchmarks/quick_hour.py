"""The REST process, for which an hour of the page takes a minute: its steps are short."""

import sys

from fairlead.projections.page import rings
from fairlead.runtime.interfaces.replies.building.page import history, state
from fairlead.runtime.interfaces.rest import __main__ as rest

MODULE = "fairlead_tests.benchmarks.quick_hour"
STEP_MS = 250

if __name__ == "__main__":
    for each in (rings, history, state):
        vars(each)["STEP_MS"] = STEP_MS
    sys.exit(rest.main())
