"""The limit of open files: how many a node asks for, and how few are too few for Spark."""

import resource
from typing import Final

ENOUGH: Final = 65_536
"""The limit of open files that a node asks for; none of its processes comes near it."""
SPARK_NEEDS: Final = 512
"""A worker's Spark 4.3 (Java 17) opens 310 files before its first job, and more with each task."""


class TooFewOpenFilesError(Exception):
    """The limit of open files is too low for Spark, and this user may not raise it."""


def raise_open_files(*, for_spark: bool) -> None:
    """Raise the limit of open files for this process and its children.

    Raises `TooFewOpenFilesError` if the limit stays too low for Spark.
    """
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if most == resource.RLIM_INFINITY else min(most, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        soft = wanted
    if for_spark and soft != resource.RLIM_INFINITY and soft < SPARK_NEEDS:
        raise TooFewOpenFilesError(
            f"a process may have {soft} files open here (nofile), and each worker's Spark needs"
            f" {SPARK_NEEDS} or more: raise the limit (ulimit -Hn, LimitNOFILE= of systemd,"
            " --ulimit nofile= of docker), or set engine=noop to run nothing"
        )
