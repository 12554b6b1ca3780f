"""The Spark session that the batches of a task run in.

Most tasks share that of the engine. One whose connector has settings of its own has a session of
its own, with the same driver, cores and caches; views and settings in it are seen by nobody else.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ..spark.failures import failure_text
from ..spi.config import ConfigInvalid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TaskSession:
    """The session of one attempt of a task."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take Spark's settings; without any the engine's own session is used."""
        self._settings = settings
        self._made: tuple[SparkSession, SparkSession] | None = None
        """The engine's session, and the one that was made beside it."""

    def beside(self, spark: "SparkSession") -> "SparkSession":
        """Return the session to use, on the driver of the engine's; raises `ConfigInvalid`."""
        if not self._settings:
            return spark
        if self._made is None or self._made[0] is not spark:
            own = spark.newSession()
            for name, value in self._settings.items():
                _set(own, name, value)
            self._made = spark, own
        return self._made[1]


def _set(session: "SparkSession", name: str, value: str) -> None:
    try:
        session.conf.set(name, value)
    except (PySparkException, Py4JJavaError) as error:
        why = (failure_text(error) or str(error)).strip().partition("\n")[0]
        raise ConfigInvalid(f"spark.conf.{name}: {why}") from None
