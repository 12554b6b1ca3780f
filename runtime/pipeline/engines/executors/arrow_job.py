# pyright: basic, reportAttributeAccessIssue=false
"""Runs Python functions as the tasks of one Spark job, for rows that never enter the JVM.

Spark schedules, distributes and cancels them, and runs one again that has failed on a cluster. So
only what a function returns counts, not what it has left behind. The functions and what they call
travel by value, since executors elsewhere have Arrow, but not fairlead. Each task looks whether
its Arrow is the one of this process: what is proved of one release is not proved of another.
"""

import json
import logging
import pickle
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import cloudpickle as untyped_cloudpickle
from pyspark.sql.utils import is_remote

from ..failures import failure_text
from ..sessions import allow_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work = Callable[[], Sequence[str | int | None]]
"""What a task of Spark does; it returns values that JSON has."""

LOGGER = logging.getLogger(__name__)

cloudpickle: Any = untyped_cloudpickle
_PACKAGE: Final = __name__.rpartition(".engines.")[0]
_pickling: Final = Lock()
"""Held while functions are pickled: cloudpickle has one list of packages for the process."""


_OTHER_PYTHON: Final = (
    "PYTHON_VERSION_MISMATCH",
    "PACKAGE_NOT_INSTALLED",
    "UNSUPPORTED_PACKAGE_VERSION",
    "No module named",
    "Cannot run program",
)
"""Spark's errors on hosts whose Python is of another version, is not there, or lacks a package."""


class OtherPython(Exception):  # noqa: N818  # a state of executors, not a mistake
    """The functions did not run, since executors have another Python, or another Arrow."""


def forbid_arrow(spark: "SparkSession", why: str) -> None:
    """Leave all files to Spark until the engine starts again, and tell the operator why."""
    allow_arrow(spark, is_allowed=False)
    LOGGER.warning(
        "Spark reads and writes all files itself, which takes longer, because Arrow cannot run on"
        " its executors (%s): install Python %s with pyarrow %s on all their hosts. They are asked"
        " again when the engine starts",
        why.partition("\n")[0],
        ".".join(platform.python_version_tuple()[:2]),
        pa.__version__,
    )


def run_job(spark: "SparkSession", works: Sequence[Work]) -> list[list[Any]]:
    """Run functions, each as a task of one Spark job; return what they return, in their order.

    Raises `OtherPython` if executors cannot run them; then some may have run.
    """
    pickled = [*_pickled(works)]
    run = _runner(pa.__version__)
    try:
        if is_remote():
            results = _through_arrow(spark, run, pickled)
        else:
            context: Any = spark.sparkContext
            results = context.parallelize(pickled, len(pickled)).map(run).collect()
    except Exception as error:
        if any(each in str(error) for each in _OTHER_PYTHON):
            raise OtherPython(failure_text(error)) from error
        raise
    answers = [json.loads(each) for each in results]
    if others := [each for each in answers if isinstance(each, str)]:
        raise OtherPython(others[0])
    return answers


def _runner(release: str) -> Callable[[bytes], str]:
    """Return what runs a function on an executor; a local function travels by value.

    It returns the JSON of what the function returns, or of a text that says what is other there.
    """

    def unpickle_and_run(work: bytes) -> str:
        try:
            import pyarrow as pa  # noqa: PLC0415  # executors may have none
        except ImportError as error:
            return json.dumps(f"{platform.node()}: {error}")
        if pa.__version__ != release:
            return json.dumps(f"{platform.node()} has pyarrow {pa.__version__}")
        pa.set_cpu_count(1)  # Spark gives a task one core
        pa.set_io_thread_count(1)
        return json.dumps(pickle.loads(work)())  # noqa: S301  # from this process

    return unpickle_and_run


def _through_arrow(
    spark: "SparkSession", run: Callable[[bytes], str], pickled: Sequence[bytes]
) -> list[str]:
    """Run functions on a server, which takes no other Python code than that of frames."""

    def run_numbered(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415  # as above

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            done = [run(pickled[number]) for number in numbers]
            yield pa.RecordBatch.from_pydict({"number": numbers, "done": done})

    count = len(pickled)
    frame = spark.range(0, count, 1, count).mapInArrow(run_numbered, "number long, done string")
    return [row.done for row in sorted(frame.collect(), key=lambda row: int(row.number))]


def _pickled(works: Sequence[Work]) -> Iterator[bytes]:
    package = sys.modules[_PACKAGE]
    with _pickling:
        cloudpickle.register_pickle_by_value(package)
        try:
            yield from [cloudpickle.dumps(each) for each in works]
        finally:
            cloudpickle.unregister_pickle_by_value(package)
