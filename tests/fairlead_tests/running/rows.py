"""In which order the processes of a test run are given its tests.

A row is a group of tests that one process runs one after the other. A process is given work while
it still has two tests to run, and those may be the longest of all: a row would wait behind them
while others have nothing to do.
"""

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

ORDER = ("cluster-spark", "cluster", "spark-second", "spark", "kafka", "spark-last", "postgres")
"""The rows, the longest first; the last ones begin once a process is through with another."""


def place_of(row: str) -> int:
    """Return the place of a row's tests; those of no row or of a short one come last."""
    return ORDER.index(row) if row in ORDER else len(ORDER)


class RowScheduling(LoadGroupScheduling):
    """Gives a process that has tests of a row left single tests, until it is through with it."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        work = self.assigned_work[node]
        if any(_is_row(each) and not all(work[each].values()) for each in work):
            single = next((each for each in self.workqueue if not _is_row(each)), None)
            if single is not None:
                self.workqueue.move_to_end(single, last=False)
        super()._assign_work_unit(node)


def _is_row(scope: str) -> bool:
    """Tell whether a scope is the name of a group, and not that of a single test."""
    return "::" not in scope
