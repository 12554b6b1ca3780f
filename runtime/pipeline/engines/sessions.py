# pyright: basic, reportAttributeAccessIssue=false
"""Functions on a Spark session, either of an own JVM through py4j, or of a Spark Connect server.

A process has sessions of one kind only, since PySpark's functions create columns for that kind.
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
"""The local property with the scheduler pool of a job."""
_READERS: Final = "_fairlead_readers"
"""The session attribute with its cached readers."""
_MOST_READERS: Final = 256
_SETTINGS_OF: Final = "_fairlead_settings"
"""The session attribute with settings that were asked for."""
_RUNS_ARROW: Final = "fairlead.executors.run.arrow"
"""The property of a JVM that says so, for all processes that share it."""
_SCRATCH_OF: Final = "_fairlead_scratch"
"""The session attribute with the path of its folder for temporary files."""


@contextmanager
def tagged(session: SparkSession, tag: str, pool: str, group: str = "") -> Iterator[None]:
    """Set the tag, the pool and the job group of the Spark jobs that this thread starts.

    Spark Connect has no job groups for clients, and there the pool is a setting of the session.
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
        with suppress(Exception):  # the JVM is gone, and so is the tag
            getattr(context, remove)(tag)
        if is_remote():
            context.end_job()


def cancel_tagged(session: SparkSession, tag: str) -> None:
    """Cancel the running Spark jobs of a tag."""
    with suppress(Exception):  # the driver is gone, and so are the jobs
        if is_remote():
            session.interruptTag(tag)
        else:
            session.sparkContext.cancelJobsWithTag(tag)


def count_running(session: SparkSession, tag: str) -> int:
    """Count the Spark tasks of a tag that occupy a core, including those of cancelled jobs.

    0 for Spark Connect: its server does not report them, and is not ours to end.
    """
    if is_remote():
        return 0
    try:
        # The tracker of the Java API has no tags; the Scala one reads the driver's memory only.
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
    except Exception:  # noqa: BLE001  # the JVM is gone, and so are the tasks
        return 0


def reader_of(
    session: SparkSession, schema: "StructType", options: Mapping[str, str]
) -> "DataFrameReader":
    """Return a reader with a schema and options, cached for later batches.

    A new one costs a py4j call for each option, which is a third of the calls of a small batch. A
    Spark Connect reader is always new, because it keeps state of its last read.
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
    """Return the rows of csv files; a single file, as in small batches, costs one py4j call."""
    reader: Any = reader_of(session, schema, options)
    if is_remote() or len(paths) > 1:
        return cast("DataFrame", reader.csv(list(paths)))
    return cast("DataFrame", reader._df(reader._jreader.csv(paths[0])))  # noqa: SLF001


def cores_of(session: SparkSession) -> int:
    """Return how many tasks of a job run at once, as far as the driver knows now."""
    context: Any = session if is_remote() else session.sparkContext
    return int(context.defaultParallelism)


def runs_elsewhere(session: SparkSession) -> bool:
    """Return whether jobs run on other hosts or a server, which do not see files held open here."""
    return is_remote() or is_cluster(str(session.sparkContext.master))


def may_run_arrow(session: SparkSession) -> bool:
    """Return whether tasks of Spark may run Arrow; executors elsewhere were asked at the start."""
    if not runs_elsewhere(session):
        return True
    there: Any = session
    if is_remote():
        return bool(there.runs_arrow.is_set())
    return str(there.sparkContext._jvm.System.getProperty(_RUNS_ARROW)) == "true"  # noqa: SLF001


def allow_arrow(session: SparkSession, *, is_allowed: bool) -> None:
    """Note for all sessions on a driver or a server whether tasks may run Arrow."""
    there: Any = session
    if not is_remote():
        there.sparkContext._jvm.System.setProperty(_RUNS_ARROW, str(is_allowed).lower())  # noqa: SLF001
    elif is_allowed:
        there.runs_arrow.set()
    else:
        there.runs_arrow.clear()


def scratch_of(session: SparkSession) -> str | None:
    """Return a folder for files that only the session's JVM reads; it is removed with the JVM.

    None if jobs run on other hosts or on a server: there is no such folder.
    """
    if runs_elsewhere(session):
        return None
    known = vars(session)
    if _SCRATCH_OF not in known:  # cached, since each batch asks
        warehouse = str(session.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
        known[_SCRATCH_OF] = Path(warehouse).with_name(SCRATCH)
    scratch = known[_SCRATCH_OF]
    return str(scratch) if scratch.is_dir() else None


def zone_of(session: SparkSession) -> str:
    """Return the zone of times without a zone in a session."""
    return _setting_of(session, "spark.sql.session.timeZone")


def has_old_times(session: SparkSession) -> bool:
    """Return whether readers of a session take times as Spark 2 did, and casts do not."""
    return _setting_of(session, "spark.sql.legacy.timeParserPolicy").upper() == "LEGACY"


def _setting_of(session: SparkSession, name: str) -> str:
    """Return a setting, which does not change; cached, since each batch asks."""
    known: dict[str, str] = vars(session).setdefault(_SETTINGS_OF, {})
    if name not in known:
        known[name] = str(session.conf.get(name))
    return known[name]


def session_beside(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a session with its own settings on the same driver; raises `SettingRefused`.

    With Spark Connect, callers with equal settings share one session.
    """
    if is_remote():
        there: Any = session
        return cast("SparkSession", there.beside(settings))
    own = session.newSession()
    set_all(own, settings)
    return own


def set_all(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Set settings of a session; raises `SettingRefused` for one that Spark refuses."""
    for name, value in settings.items():
        try:
            session.conf.set(name, value)
        except (PySparkException, Py4JJavaError) as error:
            why = (failure_text(error) or str(error)).strip().partition("\n")[0]
            raise SettingRefused(f"{name}: {why}") from None


def plan_of(frame: "DataFrame") -> str:
    """Return the plan of a frame as text: the physical plan, or Spark Connect's explain."""
    made: Any = frame
    if is_remote():
        return str(made._explain_string())  # noqa: SLF001  # PySpark only prints it
    return str(made._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001
