"""Configs of Kafka Connect's connectors: what does that here, and what has no counterpart."""

from typing import Final

import pytest

from fairlead.runtime.pipeline.connectors.connect_configs.draft import Remark, TranslatedConfig
from fairlead.runtime.pipeline.connectors.connect_configs.makers import COORDINATES, origin_of
from fairlead.runtime.pipeline.connectors.connect_configs.table import (
    COUNTERPARTS,
    counterpart_of,
    hint_for,
    translate,
)
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.plugins.ivy import Coordinates

JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
OF_JSON = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
OF_AVRO = {"value.converter": AVRO, "value.converter.schema.registry.url": "http://registry:8081"}
PG = {"connection.url": "jdbc:postgresql://db:5432/shop", "connection.user": "me"}
PASSWORD = {"connection.password": "s3cret"}
MYSQL = {"connection.url": "jdbc:mysql://db:3306/shop", "connection.user": "me"}

CONFIGS: Final[dict[str, dict[str, str]]] = {
    "file source": {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": "/data/test.txt",
        "topic": "connect-test",
        "batch.size": "100",
    },
    "file sink": {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "topics": "connect-test",
        "file": "/data/test.sink.txt",
        "key.converter": STRING,
        "value.converter": STRING,
    },
    "jdbc source of postgres": {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        **PG,
        **PASSWORD,
        **OF_AVRO,
        "mode": "timestamp+incrementing",
        "incrementing.column.name": "id",
        "timestamp.column.name": "modified",
        "table.whitelist": "public.orders",
        "topic.prefix": "pg-",
        "numeric.mapping": "best_fit",
        "validate.non.null": "false",
        "poll.interval.ms": "5000",
        "dialect.name": "PostgreSqlDatabaseDialect",
    },
    "jdbc source of many tables": {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        **PG,
        **OF_JSON,
        "mode": "bulk",
        "schema.pattern": "shop_1",
        "table.blacklist": "audit",
        "topic.prefix": "pg.",
        "table.poll.interval.ms": "10000",
        "batch.max.rows": "500",
    },
    "jdbc source of mysql": {
        "connector.class": "io.aiven.connect.jdbc.JdbcSourceConnector",
        **MYSQL,
        **PASSWORD,
        **OF_JSON,
        "mode": "timestamp",
        "timestamp.column.name": "modified",
        "query": "SELECT * FROM orders",
        "topic.prefix": "orders",
        "sql.quote.identifiers": "false",
        "connection.attempts": "3",
    },
    "jdbc sink of postgres": {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": "orders,customers",
        **PG,
        **PASSWORD,
        **OF_AVRO,
        "key.converter": JSON,
        "insert.mode": "UPSERT",
        "pk.mode": "record_key",
        "pk.fields": "id",
        "delete.enabled": "true",
        "auto.create": "true",
        "auto.evolve": "true",
        "table.name.format": "lake.${topic}",
        "batch.size": "3000",
        "max.retries": "10",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "bad",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.log.include.messages": "true",
    },
    "jdbc sink of mysql": {
        "connector.class": "io.aiven.connect.jdbc.JdbcSinkConnector",
        "topics": "orders",
        **MYSQL,
        **PASSWORD,
        **OF_JSON,
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "auto.create": "true",
    },
    "debezium": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": "db",
        "database.port": "5433",
        "database.user": "me",
        "database.password": "s3cret",
        "database.dbname": "shop",
        "database.sslmode": "require",
        "topic.prefix": "shop",
        "table.include.list": "public.orders,public.customers",
        "slot.name": "shop_slot",
        "publication.name": "shop_pub",
        "publication.autocreate.mode": "filtered",
        "snapshot.mode": "never",
        "decimal.handling.mode": "double",
        "tombstones.on.delete": "true",
        "heartbeat.interval.ms": "10000",
        "column.exclude.list": "public.orders.note",
        "transforms": "unwrap,route",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.drop.tombstones": "true",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "shop\\.public\\.(.*)",
        "transforms.route.replacement": "$1",
        **OF_JSON,
    },
    "debezium of schemas": {
        "connector.class": "PostgresConnector",
        "database.hostname": "db",
        "database.user": "me",
        "database.password": "s3cret",
        "database.dbname": "shop",
        "database.server.name": "shop",
        "schema.include.list": "a,b",
        "snapshot.mode": "configuration_based",
    },
    "mirror": {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": "4",
        "source.cluster.alias": "east",
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": "east:9092",
        "target.cluster.bootstrap.servers": "west:9092",
        "source.cluster.security.protocol": "SASL_SSL",
        "source.cluster.sasl.mechanism": "PLAIN",
        "source.cluster.sasl.jaas.config": (
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="u"'
            ' password="p";'
        ),
        "topics": "orders.*, customers",
        "topics.exclude": ".*internal",
        "sync.topic.acls.enabled": "false",
        "replication.factor": "3",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    },
    "mirror of the same names": {
        "connector.class": "MirrorSource",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "source.cluster.bootstrap.servers": "east:9092",
        "target.cluster.bootstrap.servers": "west:9092",
    },
    "s3 of confluent": {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "orders,customers",
        "s3.bucket.name": "lake",
        "s3.region": "eu-central-1",
        "s3.part.size": "5242880",
        "topics.dir": "raw",
        "flush.size": "1000",
        "rotate.interval.ms": "60000",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
        "parquet.codec": "snappy",
        "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
        "path.format": "'year'=YYYY",
        "partition.duration.ms": "3600000",
        "locale": "en",
        "timezone": "UTC",
        "schema.compatibility": "NONE",
        **OF_AVRO,
    },
    "s3 of aiven": {
        "connector.class": "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
        "topics": "orders",
        "aws.access.key.id": "A",
        "aws.secret.access.key": "s3cret",
        "aws.s3.bucket.name": "lake",
        "aws.s3.region": "eu-central-1",
        "aws.s3.prefix": "raw/",
        "format.output.type": "jsonl",
        "format.output.fields": "key,value",
        "file.compression.type": "gzip",
        "file.name.template": "{{topic}}-{{partition}}",
        **OF_JSON,
    },
    "gcs of aiven": {
        "connector.class": "io.aiven.kafka.connect.gcs.GcsSinkConnector",
        "topics.regex": "orders.*",
        "gcs.bucket.name": "lake",
        "gcs.credentials.path": "/key.json",
        "file.name.prefix": "raw/{{timestamp:unit=yyyy}}/",
        "format.output.type": "csv",
        **OF_JSON,
    },
    "hdfs": {
        "connector.class": "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
        "topics": "orders",
        "hdfs.url": "hdfs://namenode:8020/lake",
        "hadoop.conf.dir": "/etc/hadoop",
        "flush.size": "3",
        "format.class": "io.confluent.connect.hdfs3.avro.AvroFormat",
        "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
        "partition.field.name": "day,country",
        **OF_AVRO,
    },
}


def translated(config: dict[str, str]) -> TranslatedConfig:
    found = translate("x", config)
    assert found is not None
    return found


@pytest.mark.parametrize("case", CONFIGS)
def test_a_translated_config_is_valid(case: str) -> None:
    config = translated(CONFIGS[case]).config
    validation = SparkPipeline.validate({"name": "x", **config})
    assert [
        (each.definition.name, each.error_messages)
        for each in validation.checked
        if each.error_messages
    ] == []
    assert validation.warnings == ()


SAME_WITHOUT: Final = {
    ("jdbc source of many tables", "mode"),
    ("s3 of aiven", "format.output.type"),
    ("debezium", "transforms.unwrap.drop.tombstones"),
    ("s3 of confluent", "partitioner.class"),
    ("hdfs", "partitioner.class"),
}
"""Keys whose value is what is taken without them, or that go with one that is told."""


@pytest.mark.parametrize("case", CONFIGS)
def test_each_key_is_translated_or_told(case: str) -> None:
    given = CONFIGS[case]
    whole = translated(given)
    without = {
        key: translated({name: each for name, each in given.items() if name != key})
        for key in given
        if key != "connector.class"
    }
    silent = {(case, key) for key, each in without.items() if each == whole}
    assert silent <= SAME_WITHOUT


def test_a_key_that_nobody_knows_is_told() -> None:
    for config in CONFIGS.values():
        remarks = translated({**config, "no.such.key": "1"}).remarks
        assert Remark("no.such.key", "there is no counterpart") in remarks


def test_a_table_of_postgresql_becomes_a_source_with_the_same_keys() -> None:
    assert translated(CONFIGS["jdbc source of postgres"]) == TranslatedConfig(
        "x",
        {
            "connector.class": "SparkPipeline",
            "source.type": "postgres",
            "source.connection.url": "jdbc:postgresql://db:5432/shop",
            "source.connection.user": "me",
            "source.connection.password": "s3cret",
            "source.mode": "timestamp+incrementing",
            "source.table.whitelist": "public.orders",
            "source.incrementing.column.name": "id",
            "source.timestamp.column.name": "modified",
            "source.validate.non.null": "false",
            "source.numeric.mapping": "best_fit",
            "sink.type": "kafka",
            "sink.bootstrap.servers": "localhost:9092",
            "sink.topic": "pg-orders",
            "sink.value.converter": "avro",
            "sink.value.converter.schema.registry.url": "http://registry:8081",
        },
        (
            Remark("dialect.name", "the database says how it is written"),
            Remark(
                "poll.interval.ms",
                "polls are as often as poll.interval.ms says, 500 ms by default",
            ),
            Remark(
                "sink.bootstrap.servers",
                "the brokers were those of the worker: --bootstrap-servers says which",
            ),
        ),
    )


def test_debezium_becomes_the_log_of_postgresql_without_its_envelope() -> None:
    found = translated(CONFIGS["debezium"])
    assert found.config == {
        "connector.class": "SparkPipeline",
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "shop\\.public\\.(.*)",
        "transforms.route.replacement": "$1",
        "source.type": "postgres",
        "source.mode": "log",
        "source.connection.url": "postgresql://db:5433/shop?sslmode=require",
        "source.connection.user": "me",
        "source.connection.password": "s3cret",
        "source.slot.name": "shop_slot",
        "source.publication.name": "shop_pub",
        "source.publication.autocreate.mode": "filtered",
        "source.table.include.list": "public.orders,public.customers",
        "source.topic.prefix": "shop.",
        "source.snapshot.mode": "no_data",
        "source.skipped.operations": "t",
        "sink.type": "kafka",
        "sink.bootstrap.servers": "localhost:9092",
        "sink.topic.column": "_topic",
        "sink.value.converter": "json",
        "sink.value.converter.schemas.enable": "false",
    }
    assert [key for key, _ in found.remarks] == [
        *("slot.name", "transforms.unwrap", "plugin.name", "decimal.handling.mode"),
        *("tombstones.on.delete", "column.exclude.list", "heartbeat.interval.ms"),
        "sink.bootstrap.servers",
    ]


def test_what_is_said_to_clients_is_said_here_or_told() -> None:
    consumer, producer = "consumer.override.", "producer.override."
    given = {
        f"{consumer}fetch.max.wait.ms": "100",
        f"{consumer}client.id": "me",
        f"{consumer}auto.offset.reset": "latest",
        f"{consumer}sasl.mechanism": "PLAIN",
        f"{consumer}ssl.engine.factory.class": "Mine",
        f"{consumer}fetch.max.bytes": "9999999999",
        f"{producer}linger.ms": "5",
        "admin.override.request.timeout.ms": "1",
    }
    found = translated({**CONFIGS["file sink"], **given})
    plain = translated(CONFIGS["file sink"])
    assert found.config == plain.config | {
        "source.consumer.override.fetch.wait.max.ms": "100",
        "source.consumer.override.client.id": "me",
        "source.auto.offset.reset": "latest",
        "source.sasl.mechanism": "PLAIN",
    }
    none = "is none of the settings that a config may make: leave it out"
    most = "must be a number, at most 268435456: all tasks of a worker share its memory"
    without = "there is no counterpart: the pipeline has no such client of its own"
    assert {*found.remarks} - {*plain.remarks} == {
        Remark(
            f"{consumer}ssl.engine.factory.class",
            f"source.{consumer}ssl.engine.factory.class {none}",
        ),
        Remark(f"{consumer}fetch.max.bytes", f"source.{consumer}fetch.max.bytes {most}"),
        Remark(f"{producer}linger.ms", without),
        Remark("admin.override.request.timeout.ms", without),
    }


def test_what_is_said_to_the_clients_of_a_mirror_is_said_to_its_ends() -> None:
    given = {
        "source.consumer.fetch.min.bytes": "1",
        "source.cluster.consumer.client.id": "in",
        "target.cluster.producer.compression.type": "lz4",
        "producer.override.linger.ms": "5",
    }
    found, plain = translated({**CONFIGS["mirror"], **given}), translated(CONFIGS["mirror"])
    assert found.config == plain.config | {
        "source.consumer.override.fetch.min.bytes": "1",
        "source.consumer.override.client.id": "in",
        "sink.producer.override.compression.type": "lz4",
        "sink.producer.override.linger.ms": "5",
    }
    assert {*found.remarks} == {*plain.remarks}


def test_what_is_of_the_worker_is_said_by_options() -> None:
    found = translate("x", CONFIGS["s3 of confluent"], bootstrap="b:1", mount="/buckets/")
    assert found is not None
    assert found.config["source.bootstrap.servers"] == "b:1"
    assert found.config["sink.path"] == "/buckets/lake/raw"


@pytest.mark.parametrize(
    ("kind", "end", "of_key"), [("Sink", "source", "string"), ("Source", "sink", "json")]
)
def test_a_converter_that_is_not_known_is_what_connectors_mostly_have(
    kind: str, end: str, of_key: str
) -> None:
    given = {"topics": "t", "topic": "t", "file": "/data/x", "key.converter": "org.other.Key"}
    found = translate("n", {"connector.class": f"FileStream{kind}", **given})
    assert found is not None
    wanted = {f"{end}.key.converter": of_key, f"{end}.value.converter": "json"}
    plain = [f"{key}.schemas.enable" for key, value in wanted.items() if value == "json"]
    converters = {key: value for key, value in found.config.items() if "converter" in key}
    assert converters == wanted | dict.fromkeys(plain, "false")
    assert {each.key: each.told for each in found.remarks if "converter" in each.key} == {
        "key.converter": f"org.other.Key is not known here: {of_key} is taken, look at it",
        "value.converter": "it was that of the worker: json is taken, look at it",
    }


def test_a_transformation_that_is_not_known_is_left_out_and_told() -> None:
    kind = "com.example.Shout$Value"
    given = {"transforms": "a", "transforms.a.type": kind, "transforms.a.loud": "true"}
    found = translated({**CONFIGS["file sink"], **given})
    assert not [key for key in found.config if key.startswith("transforms")]
    assert Remark("transforms.a", f"{kind} is not known here") in found.remarks


@pytest.mark.parametrize(
    "name",
    [
        *("JdbcSink", "JdbcSinkConnector", "io.confluent.connect.jdbc.JdbcSinkConnector"),
        *("io.aiven.connect.jdbc.JdbcSinkConnector", " JdbcSink "),
    ],
)
def test_a_class_is_known_by_its_full_and_its_short_name(name: str) -> None:
    assert counterpart_of(name) is COUNTERPARTS["JdbcSink"]
    assert hint_for(name) == (
        f"what {name.strip().rpartition('.')[2]} does is done here by source.type=kafka with"
        " sink.type=postgres or sink.type=jdbc: `fairlead translate FILE` writes such a config"
    )


def test_of_other_classes_nothing_is_said() -> None:
    assert hint_for("com.example.Mine") == hint_for("") == ""
    assert translate("x", {"connector.class": "MySqlConnector"}) is None
    assert hint_for("io.debezium.connector.mysql.MySqlConnector") == (
        "of MySqlConnector: no log but PostgreSQL's is read here: source.type=jdbc reads its tables"
    )


@pytest.mark.parametrize(
    ("connector", "told"),
    [
        (
            "io.debezium.connector.mysql.MySqlConnector",
            "the plugin of MySqlConnector comes by `fairlead plugins fetch"
            " io.debezium:debezium-connector-mysql:3.6.1.Final`",
        ),
        (
            "FileStreamSink",
            "the plugin of FileStreamSink comes by `fairlead plugins fetch"
            " org.apache.kafka:connect-file:4.3.0`",
        ),
        (
            " IcebergSinkConnector ",
            "the plugin of IcebergSinkConnector comes by `fairlead plugins fetch --name iceberg"
            " org.apache.iceberg:iceberg-kafka-connect:1.12.0"
            " org.apache.iceberg:iceberg-parquet:1.12.0`",
        ),
        (
            "io.debezium.connector.jdbc.JdbcSinkConnector",
            "the plugin of JdbcSinkConnector comes by `fairlead plugins fetch"
            " io.debezium:debezium-connector-jdbc:3.6.1.Final`",
        ),
        (
            "io.confluent.connect.jdbc.JdbcSinkConnector",
            "the plugin of JdbcSinkConnector comes from its maker's archive, by"
            " `fairlead plugins add`",
        ),
        ("JdbcSink", ""),
        ("Nothing", ""),
        ("fairlead.runtime.SparkConnector", ""),
        ("org.apache.kafka.connect.nothing.NoConnector", ""),
        ("", ""),
    ],
)
def test_a_class_of_connect_leads_to_the_command_that_brings_its_plugin(
    connector: str, told: str
) -> None:
    assert origin_of(connector) == told


def test_each_plugin_that_is_fetched_has_coordinates_that_the_command_takes() -> None:
    words = {word for each in COORDINATES.values() for word in each.split() if ":" in word}
    assert {str(Coordinates.parse(word)) for word in words} == words
