"""Connectors that follow a log: Debezium's for PostgreSQL, and MirrorMaker's of topics."""

from typing import Final
from urllib.parse import quote

from .draft import OF_CONNECTIONS, Draft

SNAPSHOTS: Final = {
    "initial": "initial",
    "always": "initial",
    "initial_only": "initial_only",
    "never": "no_data",
    "no_data": "no_data",
    "when_needed": "when_needed",
    "exported": "initial",
}
RENAMED: Final = {
    "database.user": "source.connection.user",
    "database.password": "source.connection.password",
    "slot.name": "source.slot.name",
    "slot.drop.on.stop": "source.slot.drop.on.stop",
    "publication.name": "source.publication.name",
    "publication.autocreate.mode": "source.publication.autocreate.mode",
    "table.include.list": "source.table.include.list",
    "table.whitelist": "source.table.include.list",
    "table.exclude.list": "source.table.exclude.list",
    "table.blacklist": "source.table.exclude.list",
}
COLUMNS: Final = "choose columns with the transform select"
WITHOUT: Final = {
    "the plugin is pgoutput": ("plugin.name",),
    COLUMNS: ("message.key.columns",),
    "values are as the columns are: numeric as decimals, times as times": (
        *("decimal.handling.mode", "time.precision.mode", "hstore.handling.mode"),
        *("interval.handling.mode", "binary.handling.mode", "money.fraction.digits"),
    ),
    "batches are as large as batch.target.ms makes them": (
        *("max.batch.size", "max.queue.size", "poll.interval.ms", "max.queue.size.in.bytes"),
    ),
    "a deletion has no tombstone behind it": ("tombstones.on.delete",),
}
"""Debezium's keys that have no counterpart, by the reason."""
UNWRAP: Final = "ExtractNewRecordState"


def debezium_postgres(draft: Draft) -> None:
    """Read the changes of tables by logical replication, and write them to topics."""
    _database(draft)
    draft.rename(RENAMED)
    _schemas(draft)
    prefix = draft.take("topic.prefix") or draft.take("database.server.name")
    draft.config["source.topic.prefix"] = f"{prefix}." if prefix else ""
    _snapshot(draft)
    draft.config["source.skipped.operations"] = draft.take("skipped.operations", "t")
    if "source.slot.name" in draft.config:
        draft.remark("slot.name", "stop the connector of Debezium first: a slot has one reader")
    _unwrap(draft)
    for reason, names in WITHOUT.items():
        draft.drop(reason, *names)
    draft.drop_prefix("column.", COLUMNS)
    for before in ("snapshot.", "signal.", "heartbeat.", "read.only", "incremental.snapshot."):
        draft.drop_prefix(before, "the snapshot and the slot are looked after by the source itself")
    draft.write_topic()


def _database(draft: Draft) -> None:
    host, port = draft.take("database.hostname", "localhost"), draft.take("database.port", "5432")
    mode = draft.take("database.sslmode")
    query = f"?sslmode={mode}" if mode else ""
    database = quote(draft.take("database.dbname", "postgres"))
    url = f"postgresql://{host}:{port}/{database}{query}"
    draft.put(source_type="postgres", source_mode="log", source_connection_url=url)


def _snapshot(draft: Draft) -> None:
    mode = draft.take("snapshot.mode", "initial")
    draft.config["source.snapshot.mode"] = SNAPSHOTS.get(mode, "initial")
    if SNAPSHOTS.get(mode) != mode and mode != "never":
        draft.remark("snapshot.mode", f"{mode} is not known here: initial is taken")


def _schemas(draft: Draft) -> None:
    for kind in ("include", "exclude"):
        key = f"source.table.{kind}.list"
        schemas = draft.take(f"schema.{kind}.list").split(",")
        if key not in draft.config and (
            named := [each.strip() for each in schemas if each.strip()]
        ):
            draft.config[key] = ",".join(rf"{each}\..*" for each in named)


def _unwrap(draft: Draft) -> None:
    """Rows are flat already: the transform that flattens Debezium's envelope is left out."""
    names = [each.strip() for each in draft.config.get("transforms", "").split(",") if each]
    unwrapping = [
        each for each in names if draft.config[f"transforms.{each}.type"].endswith(UNWRAP)
    ]
    for each in unwrapping:
        for key in [key for key in draft.config if key.startswith(f"transforms.{each}.")]:
            del draft.config[key]
        draft.remark(f"transforms.{each}", "rows are flat already, with __op and __deleted")
    if kept := [each for each in names if each not in unwrapping]:
        draft.config["transforms"] = ",".join(kept)
    else:
        draft.config.pop("transforms", None)
    if not unwrapping:
        draft.remark("value", "rows are flat here, with __op: not in Debezium's envelope")


def mirror_source(draft: Draft) -> None:
    """Mirror topics of one cluster to another, as MirrorMaker 2 does."""
    servers = draft.take("source.cluster.bootstrap.servers", draft.bootstrap)
    target = draft.take("target.cluster.bootstrap.servers", draft.bootstrap)
    alias = draft.take("source.cluster.alias", "source")
    policy = draft.take("replication.policy.class")
    separator = draft.take("replication.policy.separator", ".")
    patterns = [each.strip() for each in draft.take("topics", ".*").split(",") if each.strip()]
    draft.put(source_type="kafka", source_bootstrap_servers=servers)
    draft.config["source.topics.regex"] = "|".join(patterns)
    draft.put(source_key_converter="bytes", source_value_converter="bytes")
    draft.put(sink_type="kafka", sink_bootstrap_servers=target, sink_topic_column="_topic")
    draft.put(sink_key_converter="bytes", sink_value_converter="bytes")
    if not policy.endswith("IdentityReplicationPolicy"):
        to = f"{alias}{separator}$0"
        draft.add_transform("renamed", "RegexRouter", regex=".*", replacement=to)
    _clusters(draft)
    back = "topics that the target must not give back: leave them out of source.topics.regex"
    draft.drop(back, "topics.exclude", "topics.blacklist")
    draft.remark("partitions", "a record's partition in the target is chosen by its key")
    _only_records(draft)


def _clusters(draft: Draft) -> None:
    """Translate the connections to both clusters, and the keys of their clients."""
    for end, client, cluster in (("source", "consumer", "source"), ("sink", "producer", "target")):
        for own in (f"{cluster}.{client}.", f"{cluster}.cluster.{client}.", f"{client}.override."):
            draft.client(own, f"{end}.{client}.override.")
        whole = f"{cluster}.cluster."
        for key in [each for each in draft.left if each.startswith(whole)]:
            if (name := key.removeprefix(whole)) in OF_CONNECTIONS:
                draft.config[f"{end}.{name}"] = draft.take(key)
        draft.drop_prefix(whole, "it is not needed here")


def _only_records(draft: Draft) -> None:
    """Drop the keys of MirrorMaker that are not about records."""
    for before in ("sync.", "emit.", "refresh.", "offset-syncs.", "offset.lag.", "heartbeats."):
        draft.drop_prefix(before, "only records are mirrored: no settings, ACLs, offsets of groups")
    for before in ("checkpoints.", "groups", "key.converter", "value.converter", "header.conv"):
        draft.drop_prefix(before, "records are mirrored as bytes, without offsets of groups")
    draft.drop(
        "topics are created by the brokers", "replication.factor", "config.properties.exclude"
    )
