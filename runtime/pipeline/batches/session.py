"""The Spark session that the batches of a task run in.

Most tasks share that of the engine. One whose connector has settings of its own has a session of
its own, with the same driver, cores and caches; views and settings in it are seen by nobody else.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..engines.sessions import session_beside
from ..engines.settings import SettingRefused
from ..spi.config import ConfigInvalid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TaskSession:
    """The session of one attempt of a task."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Store Spark's settings; without any the engine's own session is used."""
        self._settings = settings
        self._created: tuple[SparkSession, SparkSession] | None = None
        """The engine's session, and the one that was created beside it."""

    def beside(self, spark: "SparkSession") -> "SparkSession":
        """Return the session to use, on the driver of the engine's; raises `ConfigInvalid`."""
        if not self._settings:
            return spark
        if self._created is None or self._created[0] is not spark:
            self._created = spark, _beside(spark, self._settings)
        return self._created[1]


def _beside(spark: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
    try:
        return session_beside(spark, settings)
    except SettingRefused as refused:
        raise ConfigInvalid(f"spark.conf.{refused}") from None
