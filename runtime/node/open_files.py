"""How many files the processes of a node may have open: as many as the machine lets them."""

import resource
from typing import Final

ENOUGH: Final = 65_536
"""What is asked for at most; nothing of a node comes near it."""
SPARK_NEEDS: Final = 512
"""A worker's Spark opens 310 files before its first job (4.3, Java 17), and more with each task."""


class TooFewOpenFilesError(Exception):
    """Spark cannot run on this few open files, and the limit is not this user's to raise."""


def raise_open_files(*, for_spark: bool) -> None:
    """Raise the limit of open files for this process and those that it starts.

    Raises `TooFewOpenFilesError` if Spark is to run and could not.
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
