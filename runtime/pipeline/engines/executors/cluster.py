# pyright: basic
"""A Spark cluster: its master, the folders that all its hosts share, and their Python."""

import platform
import secrets
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from ..engine import DEFAULT_POOL
from ..failures import failure_text
from ..sessions import allow_arrow, cancel_tagged, cores_of, tagged
from ..settings import AUTH_SECRET, STANDALONE, SettingRefused, without_parameters
from .arrow_job import forbid_arrow, run_job

_ASKING: Final = "fairlead-asks-for-arrow"
"""The tag of the job that asks executors."""
_ASKING_SECONDS: Final = 30.0
"""How long their answer may take, with the start of their Python."""


class NotShared(Exception):  # noqa: N818  # what the folder is
    """The driver and its executors do not share a folder; the text has the remedy."""


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """The cluster of the drivers on this node."""

    master: str
    """Such as `spark://host:7077`, `yarn`, `k8s://https://host:6443` or `sc://host:15002`."""
    folders: tuple[Path, ...]
    """The folders of sources and sinks, which the driver and all executors must share."""

    @staticmethod
    def of(master: str, folders: Sequence[str]) -> "SparkCluster | None":
        """Return the cluster of a master; None if the master is empty."""
        return SparkCluster(master, tuple(map(Path, folders))) if master else None

    def require_secret(self, conf: Mapping[str, str]) -> None:
        """Raise `SettingRefused` if its ports would accept connections without authentication.

        On YARN and Kubernetes Spark creates a secret for each driver and its executors.
        """
        if self.master.startswith(STANDALONE) and not conf.get(AUTH_SECRET):
            raise SettingRefused(f"{self.master} needs spark.conf.{AUTH_SECRET}")

    def check_folders(self, session: SparkSession) -> None:
        """Test that driver and executors can read each other's files; raises `NotShared`."""
        for folder in self.folders:
            made = folder / f".fairlead-{secrets.token_hex(8)}"
            try:
                why = _flaw(session, made)
            finally:
                shutil.rmtree(made, ignore_errors=True)
            if why:
                raise NotShared(
                    f"{folder} of paths.allow is not shared with the executors of"
                    f" {without_parameters(self.master)}"
                    f" ({why}): mount it at the same path on all their hosts, for their user too,"
                    " or leave it out"
                )

    def check_python(self, session: SparkSession) -> None:
        """Find out whether tasks may run Arrow; if not, Spark reads and writes all files itself.

        There is one task for each known core, so that each executor runs some of them.
        """
        late = threading.Timer(_ASKING_SECONDS, cancel_tagged, [session, _ASKING])
        late.daemon = True
        try:
            with tagged(session, _ASKING, DEFAULT_POOL):
                late.start()
                run_job(session, [_answer] * cores_of(session))
        except Exception as error:  # noqa: BLE001  # whatever it is, Spark reads without Python
            forbid_arrow(session, failure_text(error) or str(error))
        else:
            allow_arrow(session, is_allowed=True)
        finally:
            late.cancel()


def _answer() -> list[str]:
    return [platform.node()]


def _flaw(session: SparkSession, folder: Path) -> str:
    """Return why executors do not share a folder, which is created; empty: they do.

    There is one file for each known core, so that each executor reads some of them.
    """
    rows, out = folder / "rows", folder / "out"
    try:
        rows.mkdir(parents=True)
        for number in range(cores_of(session)):
            (rows / f"{number}.csv").write_text(f"{number}\n")
        session.read.csv(str(rows), schema="id bigint").write.parquet(str(out))
    except OSError as error:
        return f"the driver cannot write there: {error.strerror}"
    except Exception as error:
        if (reason := failure_text(error)) is None:
            raise
        return f"an executor cannot use what the driver writes there: {reason}"
    written = any(out.glob("*.parquet"))
    return "" if written else "the driver does not find the files that an executor writes there"
