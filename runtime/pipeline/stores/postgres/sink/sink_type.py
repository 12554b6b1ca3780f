"""`sink.type=postgres`: writes batches to tables of a PostgreSQL database."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Final

import psycopg

from ......events.commits import Manifest
from ....spi.config import ConfigInvalid, Definition, ParsedConfig, any_reference, has_reference
from ....spi.connector import Delivery, Promise
from ....spi.context import Context, ExternalAccess, ProbeResult
from ....spi.errors import Away
from ....spi.keys.common import TASKS_MAX
from ....spi.keys.delivery import is_at_least_once, promise_of
from ....spi.lineage import Dataset
from ....spi.types import SinkType
from ..connecting import Server, application_name, dataset_in
from ..names import TableName
from . import keys
from .layout import RowLayout
from .sink import PostgresSink
from .staging import Staging
from .tables import TableRules

_MAY_MAKE: Final = """
SELECT has_schema_privilege(oid, 'CREATE') AND has_schema_privilege(oid, 'USAGE')
FROM pg_namespace WHERE nspname = %s"""


class PostgresSinkType(SinkType):
    """Tables of a database, exactly once."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the definitions of its keys."""
        return keys.DEFINITIONS

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of keys that do not fit together, by the key to change."""
        return keys.complaints(config)

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return the guarantee that `delivery.guarantee` asks for."""
        return promise_of(config)

    @classmethod
    def datasets(cls, config: Mapping[str, str], manifest: Manifest) -> Collection[Dataset]:
        """Return the tables of a batch; the database if its manifest does not name them."""
        tables = [TableName(*json.loads(each.path)) for each in manifest.parts]
        return [dataset_in("sink", config, str(each)) for each in tables or ("",)]

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Connect, and check the schema and the privilege to create tables in it."""
        schema = config.get(keys.SCHEMA, "public")
        if any_reference("sink.connection.", config) or has_reference(schema):
            return ProbeResult()
        try:
            with Server.of("sink", config, reach=outside.reach).connect() as connection:
                found = _of_schema(connection, schema)
                if config.get(keys.STAGE_WITH) == keys.PREPARED:
                    found = found.plus(_of_prepared(connection, config.get(TASKS_MAX, "1")))
                return found
        except ConfigInvalid as error:
            return ProbeResult({keys.URL: str(error).removeprefix(f"{keys.URL}: ")})
        except Away as away:
            return ProbeResult(warnings=(f"{keys.URL}: {away}",))

    @classmethod
    def sink(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> PostgresSink:
        """Make the sink of one task."""
        application = application_name("sink", context.resource, context.cluster_id)
        layout = RowLayout(
            settings.text(keys.TABLE_FORMAT),
            settings.text(keys.SCHEMA),
            settings.text(keys.INSERT_MODE),
            settings.text(keys.PK_MODE),
            settings.items(keys.PK_FIELDS),
            settings.flag(keys.DELETE_ENABLED),
            settings.items(keys.WHITELIST),
            settings.flag(keys.TRUNCATE_ENABLED),
            settings.text(keys.ORDER),
        )
        rules = TableRules(
            settings.flag(keys.AUTO_CREATE),
            settings.flag(keys.AUTO_EVOLVE),
            layout.mode == keys.INSERT,
            layout.pk_mode != keys.NONE,
            layout.mode == keys.UPSERT,
            layout.pk_fields,
            layout.order,
            settings.flag(keys.DRY_RUN),
        )
        where = Staging(context.cluster_id, context.resource)
        return PostgresSink(
            Server.of("sink", config, application, context.reach),
            where,
            layout,
            rules,
            is_prepared=settings.text(keys.STAGE_WITH) == keys.PREPARED,
            is_at_once=is_at_least_once(config),
        )


def _of_prepared(connection: "psycopg.Connection[tuple[str]]", tasks: str) -> ProbeResult:
    row = connection.execute("SHOW max_prepared_transactions").fetchone()
    most = int(row[0]) if row else 0
    if not most:
        text = "max_prepared_transactions of the server is 0: raise it, and restart the server"
        return ProbeResult({keys.STAGE_WITH: text})
    if tasks.isdigit() and most < int(tasks):
        text = f"{keys.STAGE_WITH}: max_prepared_transactions of the server is {most}, and there "
        return ProbeResult(warnings=(f"{text}may be {tasks} tasks: some will wait for others",))
    return ProbeResult()


def _of_schema(connection: "psycopg.Connection[tuple[bool]]", schema: str) -> ProbeResult:
    row = connection.execute(_MAY_MAKE, (schema,)).fetchone()
    if row is None:
        return ProbeResult({keys.SCHEMA: f"there is no schema {schema}: make it, or name another"})
    if not row[0]:
        user = connection.info.user
        return ProbeResult(
            {keys.SCHEMA: f"{user} may not make tables in {schema}: GRANT CREATE, USAGE ON SCHEMA"}
        )
    return ProbeResult()
