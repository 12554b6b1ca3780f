"""In which order the processes of a test run are given its tests.

A row is a group of tests that one process runs one after the other. A process is given work while
it still has two tests to run, and those may be the longest of all: a row would wait behind them
while others have nothing to do.
"""

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

ORDER = (
    *("cluster", "spark-second", "spark", "cluster-spark"),
    *("kafka", "cluster-second", "spark-last", "postgres", "stores", "page"),
)
"""The rows, the longest first; the last ones begin once a process is through with another."""


_FEWEST_KNOWN = 2
"""A process begins a test when it knows the one after it, or that there is none."""


def place_of(row: str) -> int:
    """Return the place of a row's tests; those of no row or of a short one come last."""
    return ORDER.index(row) if row in ORDER else len(ORDER)


class RowScheduling(LoadGroupScheduling):
    """Gives a process that has tests of a row left single tests, until it is through with it."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a process that is gone, and return the test with which it died, if it had one.

        xdist would give that test to the next process, which would die as well, and with it tests
        that are over: a process that is given nothing else would wait for ever.
        """
        work = self.assigned_work.pop(node)
        left = [test for tests in work.values() for test, is_over in tests.items() if not is_over]
        for scope, tests in reversed(work.items()):
            if rest := {test: False for test in tests if test in left[1:]}:
                self.workqueue[scope] = rest
                self.workqueue.move_to_end(scope, last=False)
        if left:
            for each in self.assigned_work:
                self._reschedule(each)
        return left[0] if left else None

    def _reschedule(self, node: WorkerController) -> None:
        """Give a process tests, if it has few; xdist gives one in place of another too few."""
        if node.shutting_down or node not in self.registered_collections:
            return
        self._forget_what_is_over(self.assigned_work[node])
        super()._reschedule(node)
        while self.workqueue and self._pending_of(self.assigned_work[node]) < _FEWEST_KNOWN:
            self._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()

    @staticmethod
    def _forget_what_is_over(work: dict[str, dict[str, bool]]) -> None:
        """Drop what xdist would count again after each test: all that a process has run."""
        for scope in [scope for scope, tests in work.items() if all(tests.values())]:
            del work[scope]

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
