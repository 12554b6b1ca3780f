"""`source.type=jdbc`: tables of a database, assigned to tasks."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from .....events.commits import Document
from ...spi.config import Definition, ParsedConfig, has_reference
from ...spi.connector import Delivery, Promise
from ...spi.context import Context, ExternalAccess, ProbeResult
from ...spi.errors import OffsetRefused
from ...spi.lineage import Dataset
from ...spi.offsets import check_members
from ...spi.types import SourceType
from . import keys
from .connecting import dataset_in, options, probe_url
from .source import JdbcSource

_QUERY = "query"
"""The name of a query in source partitions, as in Connect JDBC."""


class JdbcSourceType(SourceType):
    """Tables that Spark reads by a JDBC driver, with the guarantee of Connect JDBC."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.BEST_EFFORT

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the definitions of its keys."""
        return keys.SOURCE

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the definition of a task's share."""
        return keys.SOURCE_TASK

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of keys that do not fit together, by the key to change."""
        return keys.complaints("source", config)

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return best effort, and why."""
        if config.get(keys.MODE) == keys.BULK:
            told = f"{keys.MODE}={keys.BULK} may miss or double rows that change while it reads"
        else:
            told = f"{keys.MODE}={keys.BY_NUMBER} does not see rows that commit behind a higher one"
        return Promise(cls.delivery, (told,))

    @classmethod
    def datasets(
        cls, config: Mapping[str, str], partitions: Iterable[Document]
    ) -> Collection[Dataset]:
        """Return the tables."""
        return [dataset_in("source", config, str(each.get("table"))) for each in partitions]

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check that the node allows the URL."""
        return probe_url("source", config, outside.reach)

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Check that an offset is the number of a table that is read, or marks it as read."""
        check_members("partition", partition, {"table": str})
        if offset is None:
            return
        is_bulk = config.get(keys.MODE) == keys.BULK
        check_members("offset", offset, {"done": bool} if is_bulk else {"incrementing": int})
        tables = config.get(keys.TABLES) or _QUERY
        known = [each.strip() for each in tables.split(",")]
        if not has_reference(tables) and partition["table"] not in known:
            raise OffsetRefused(f"partition.table: this connector reads {', '.join(known)}")

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign the tables in turn."""
        names = self.settings.items(keys.TABLES) or (_QUERY,)
        count = min(max_tasks, len(names))
        return [{keys.SHARE: json.dumps(names[each::count])} for each in range(count)]

    @classmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> JdbcSource:
        """Make the source of one task."""
        query = settings.text(keys.QUERY)
        names: list[str] = json.loads(settings.text(keys.SHARE))
        tables = {each: f"({query}) fairlead_query" if query else each for each in names}
        return JdbcSource(
            options("source", config, context.reach),
            tables,
            settings.text(keys.INCREMENTING),
            settings.text(keys.TOPIC_PREFIX),
            settings.number(keys.POLL_MS) / 1000,
            context.on_spark,
        )
