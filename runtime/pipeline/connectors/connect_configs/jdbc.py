"""The JDBC connectors of Confluent and of Aiven, which have nearly the same keys."""

import re
from typing import Final

from .draft import Draft

POSTGRES: Final = re.compile(r"(jdbc:)?postgres(ql)?://", re.IGNORECASE)
CONNECTION: Final = ("connection.url", "connection.user", "connection.password")
DIALECTS: Final = (
    *("dialect.name", "quote.sql.identifiers", "sql.quote.identifiers", "catalog.pattern"),
    *("table.types", "db.fetch.size", "transaction.isolation.mode", "query.suffix"),
    *("numeric.precision.mapping", "mssql.use.merge.holdlock", "jdbc.credentials.provider.class"),
)
RETRIES: Final = (
    *("connection.attempts", "connection.backoff.ms", "query.retry.attempts", "max.retries"),
    *("retry.backoff.ms", "max.attempts"),
)
OF_POSTGRES: Final = (
    *("timestamp.column.name", "validate.non.null", "timestamp.delay.interval.ms"),
    *("numeric.mapping", "db.timezone", "table.include.list", "table.exclude.list"),
)
"""The keys of a source that only PostgreSQL's own type has."""


def jdbc_source(draft: Draft) -> None:
    """Read tables or a query, and write them to topics."""
    is_postgres = _connection(draft, "source.")
    mode = draft.take("mode", "bulk")
    if not is_postgres and mode not in {"bulk", "incrementing"}:
        column = "incrementing.column.name" in draft.left
        usual = "incrementing" if column else "bulk"
        draft.remark("mode", f"{mode} is of PostgreSQL alone here: {usual} is taken, look at it")
        mode = usual
    draft.config["source.mode"] = mode
    if mode == "bulk":
        draft.remark("source.mode", "bulk reads all rows once here, not again at each poll")
    prefix, tables = draft.take("topic.prefix"), _tables(draft, is_postgres=is_postgres)
    query = draft.take("query")
    if query:
        draft.config["source.query"] = query
    draft.keep("source.", ("incrementing.column.name", "table.poll.interval.ms"))
    _own_keys(draft, is_postgres=is_postgres)
    draft.drop("batches are as large as batch.target.ms makes them", "batch.max.rows")
    draft.drop("polls are as often as poll.interval.ms says, 500 ms by default", "poll.interval.ms")
    if query:
        draft.write_topic(prefix or "query")
    elif len(tables) == 1:
        draft.write_topic(f"{prefix}{tables[0].rpartition('.')[2]}")
    else:
        draft.config["source.topic.prefix"] = prefix
        reason = "topics are called PREFIXschema.table here, without a schema there"
        draft.remark("topic.prefix", reason)
        draft.write_topic()


def _tables(draft: Draft, *, is_postgres: bool) -> list[str]:
    """Translate the keys of the tables to read; return their names, none if they are patterns."""
    schema = draft.take("schema.pattern")
    named = [each.strip() for each in draft.take("table.whitelist").split(",") if each.strip()]
    if named:
        draft.config["source.table.whitelist"] = ",".join(named)
    elif schema and is_postgres and "table.include.list" not in draft.left:
        pattern = re.escape(schema).replace("%", ".*").replace("_", ".")
        draft.config["source.table.include.list"] = rf"{pattern}\..*"
    left_out = [each.strip() for each in draft.take("table.blacklist").split(",") if each.strip()]
    if left_out and is_postgres:
        patterns = (rf"(.*\.)?{re.escape(each)}" for each in left_out)
        draft.config["source.table.exclude.list"] = ",".join(patterns)
    elif left_out:
        draft.remark("table.blacklist", "name the tables to read in source.table.whitelist")
    return named


def _own_keys(draft: Draft, *, is_postgres: bool) -> None:
    if is_postgres:
        draft.keep("source.", OF_POSTGRES)
    else:
        draft.drop("it is of PostgreSQL alone here", *OF_POSTGRES)
        if not {"source.query", "source.table.whitelist"} & draft.config.keys() and (
            "query" not in draft.left
        ):
            draft.remark("source.table.whitelist", "name the tables to read, or source.query")
    reason = "what is new is found from the first row on: set offsets with `fairlead offsets`"
    draft.drop(reason, "timestamp.initial", "incrementing.initial", "timestamp.granularity")


def jdbc_sink(draft: Draft) -> None:
    """Translate Connect's JDBC sink, which writes topics to tables."""
    draft.read_topics()
    is_postgres = _connection(draft, "sink.")
    tables = draft.take("table.name.format", "${topic}")
    if is_postgres:
        draft.config["sink.table.name.format"] = tables
        _keys(draft)
        draft.keep("sink.", ("auto.create", "auto.evolve", "fields.whitelist", "delete.enabled"))
        _key_format(draft)
    else:
        topics = draft.config.get("source.topics", "")
        if "${topic}" in tables and "," in f"{topics or ','}":
            reason = "one table for each connector: name it in sink.table.name.format"
            draft.remark("table.name.format", reason)
        name = topics.partition(",")[0].strip() or "table"
        draft.config["sink.table.name.format"] = tables.replace("${topic}", name)
        mode = draft.take("insert.mode", "insert").lower()
        draft.put(sink_insert_mode="insert")
        if mode != "insert":
            draft.remark("insert.mode", f"{mode} is of PostgreSQL alone here: rows are added")
        draft.keep("sink.", ("auto.create",))
        only = "it is of PostgreSQL alone here"
        draft.drop(
            only, "pk.mode", "pk.fields", "delete.enabled", "auto.evolve", "fields.whitelist"
        )
    draft.drop("batches are as large as batch.target.ms makes them", "batch.size")
    draft.drop("its zone is that of the values", "db.timezone", "date.timezone")


def _keys(draft: Draft) -> None:
    draft.rename({"insert.mode": "sink.insert.mode", "pk.fields": "sink.pk.fields"})
    if "sink.insert.mode" in draft.config:
        draft.config["sink.insert.mode"] = draft.config["sink.insert.mode"].lower()
    mode = draft.take("pk.mode", "none").lower()
    if mode == "kafka":
        reason = "a row is added exactly once here without topic, partition and offset as its key"
        draft.remark("pk.mode", reason)
        mode = "none"
        draft.config.pop("sink.pk.fields", None)
    draft.config["sink.pk.mode"] = mode


def _key_format(draft: Draft) -> None:
    """Keys of several columns are in JSON: a text has none."""
    is_text = draft.config.get("source.key.converter", "string") == "string"
    if draft.config.get("sink.pk.mode") == "record_key" and is_text:
        draft.remark("key.converter", "it was that of the worker: json or avro have columns")


def _connection(draft: Draft, end: str) -> bool:
    """Translate how the database is reached; return whether it is PostgreSQL."""
    is_postgres = POSTGRES.match(draft.left.get("connection.url", "")) is not None
    kind = "postgres" if is_postgres else "jdbc"
    draft.config[f"{end}type"] = kind
    draft.keep(end, CONNECTION)
    if not is_postgres:
        draft.keep(end, ("connection.driver",))
        reason = (
            "the node's jdbc.allow must have its beginning, and the driver's jar be on its path"
        )
        draft.remark(f"{end}connection.url", reason)
    draft.drop("the database says how it is written", *DIALECTS)
    draft.drop("it is tried again by errors.retry.timeout", *RETRIES)
    draft.drop_prefix("connection.", "parameters of a driver stand in its URL")
    return is_postgres
