# pyright: basic, reportAttributeAccessIssue=false
"""What is asked of a session: of a JVM of ours by py4j, or of a server of Spark Connect.

A process has sessions of one kind at a time: PySpark's functions make columns for that kind.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from .failures import failure_text
from .java import SCRATCH
from .settings import SettingRefused, is_cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader
    from pyspark.sql.types import StructType

POOL: Final = "spark.scheduler.pool"
"""What names the pool of a job."""
_READERS: Final = "_fairlead_readers"
"""Where a session keeps its readers, which go with it."""
_MOST_READERS: Final = 256
_SCRATCH_OF: Final = "_fairlead_scratch"
"""Where a session keeps the path of its folder for temporary files."""


@contextmanager
def tagged(session: SparkSession, tag: str, pool: str, group: str = "") -> Iterator[None]:
    """Tag the Spark jobs that this thread starts meanwhile; put them into a pool, and a group.

    A server of Spark Connect has no groups for its clients, and takes the pool from the session.
    """
    context: Any = session if is_remote() else session.sparkContext
    add, remove = ("addTag", "removeTag") if is_remote() else ("addJobTag", "removeJobTag")
    getattr(context, add)(tag)
    if not is_remote():
        context.setLocalProperty(POOL, pool)
        if group:
            context.setJobGroup(group, tag)
    try:
        yield
    finally:
        with suppress(Exception):  # the JVM is gone, and with it the tag
            getattr(context, remove)(tag)
        if is_remote():
            context.end_job()


def cancel_tagged(session: SparkSession, tag: str) -> None:
    """Cancel the Spark jobs that run now under a tag."""
    with suppress(Exception):  # the driver is gone, and with it the jobs
        if is_remote():
            session.interruptTag(tag)
        else:
            session.sparkContext.cancelJobsWithTag(tag)


def count_running(session: SparkSession, tag: str) -> int:
    """Count the Spark tasks under a tag that hold a core, those of cancelled jobs too.

    A server of Spark Connect does not tell, and is not ours to end for them: none.
    """
    if is_remote():
        return 0
    try:
        # The Java API's tracker knows no tags; this one answers from what the driver remembers.
        driver: Any = session.sparkContext._jsc  # noqa: SLF001  # PySpark hides it
        tracker = driver.sc().statusTracker()
        stages = {
            stage
            for job in tracker.getJobIdsForTag(tag)
            if (info := tracker.getJobInfo(job)).isDefined()
            for stage in info.get().stageIds()
        }
        found = [tracker.getStageInfo(stage) for stage in stages]
        return sum(int(each.get().numActiveTasks()) for each in found if each.isDefined())
    except Exception:  # noqa: BLE001  # the JVM is gone, and with it the tasks
        return 0


def reader_of(
    session: SparkSession, schema: "StructType", options: Mapping[str, str]
) -> "DataFrameReader":
    """Return a reader with a schema and options, the same one for each batch.

    To make one costs a call of the JVM for each option, which is a third of the calls of a small
    batch. A JVM's reader keeps nothing of what it reads; one of Spark Connect does, and is new.
    """
    if is_remote():
        return session.read.options(**options).schema(schema)
    readers: dict[object, DataFrameReader] = vars(session).setdefault(_READERS, {})
    key = schema.json(), *sorted(options.items())
    if key not in readers:
        if len(readers) >= _MOST_READERS:
            readers.clear()
        readers[key] = session.read.options(**options).schema(schema)
    return readers[key]


def read_csv(
    session: SparkSession, schema: "StructType", options: Mapping[str, str], paths: Sequence[str]
) -> "DataFrame":
    """Return the rows of csv files; a single one, as small batches have, costs one call."""
    reader: Any = reader_of(session, schema, options)
    if is_remote() or len(paths) > 1:
        return cast("DataFrame", reader.csv(list(paths)))
    return cast("DataFrame", reader._df(reader._jreader.csv(paths[0])))  # noqa: SLF001


def cores_of(session: SparkSession) -> int:
    """Return how many tasks of a job run at once, as far as its driver knows by now."""
    context: Any = session if is_remote() else session.sparkContext
    return int(context.defaultParallelism)


def runs_elsewhere(session: SparkSession) -> bool:
    """Tell whether jobs run where nobody sees the files that this process holds open."""
    return is_remote() or is_cluster(str(session.sparkContext.master))


def scratch_of(session: SparkSession) -> str | None:
    """Return a folder for what only the session's JVM is to read: it goes when the JVM does.

    None where jobs run elsewhere: there is no such folder.
    """
    if runs_elsewhere(session):
        return None
    known = vars(session)
    if _SCRATCH_OF not in known:  # asked once, not for each batch
        warehouse = str(session.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
        known[_SCRATCH_OF] = Path(warehouse).with_name(SCRATCH)
    scratch = known[_SCRATCH_OF]
    return str(scratch) if scratch.is_dir() else None


def session_beside(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a session with settings of its own, on the same driver; raises `SettingRefused`.

    On a server of Spark Connect it may be that of others who asked for the same settings.
    """
    if is_remote():
        there: Any = session
        return cast("SparkSession", there.beside(settings))
    own = session.newSession()
    set_all(own, settings)
    return own


def set_all(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Give a session its settings; raises `SettingRefused` for one that Spark does not take."""
    for name, value in settings.items():
        try:
            session.conf.set(name, value)
        except (PySparkException, Py4JJavaError) as error:
            why = (failure_text(error) or str(error)).strip().partition("\n")[0]
            raise SettingRefused(f"{name}: {why}") from None


def plan_of(frame: "DataFrame") -> str:
    """Return how Spark will make the rows of a frame, as it tells people."""
    made: Any = frame
    if is_remote():
        return str(made._explain_string())  # noqa: SLF001  # PySpark only prints it
    return str(made._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001
