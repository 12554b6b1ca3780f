"""A translation in progress: what a Connect config has, what was written for it, and remarks.

Pure: nothing is read, asked or loaded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...stores.kafka.connection import connection_keys
from ...stores.kafka.overrides import JAVA_NAMES, flaws_in_overrides

BOOTSTRAP: Final = "localhost:9092"
"""The brokers that are taken unless somebody says which."""
CONVERTERS: Final = {
    "JsonConverter": "json",
    "StringConverter": "string",
    "ByteArrayConverter": "bytes",
    "AvroConverter": "avro",
}
"""Connect's converters by the last part of their class, and their names here."""
OF_CONVERTERS: Final = (
    "schemas.enable",
    "schema.registry.url",
    "basic.auth.user.info",
    "schema.registry.basic.auth.user.info",
    "value.subject.name.strategy",
    "key.subject.name.strategy",
    "auto.register.schemas",
)
"""The keys of converters that have the same name here; the last one of sinks alone."""
OF_CLIENTS: Final = {
    "bootstrap.servers": ("source.", "sink."),
    "auto.offset.reset": ("source.",),
    "isolation.level": ("source.",),
}
"""The settings of Kafka clients that are keys of an end here."""
OF_CONNECTIONS: Final = frozenset(each.name.partition(".")[2] for each in connection_keys("source"))
"""The settings of Kafka clients that both ends have under the same names."""
OVERRIDES: Final = ("consumer.override.", "producer.override.", "admin.override.")
OTHER_CLIENT: Final = "there is no counterpart: the pipeline has no such client of its own"
UNCHANGED: Final = (
    "tasks.max",
    "config.action.reload",
    "errors.retry.timeout",
    "errors.retry.delay.max.ms",
    "errors.tolerance",
    "errors.log.enable",
    "errors.deadletterqueue.topic.name",
    "errors.deadletterqueue.topic.replication.factor",
    "errors.deadletterqueue.context.headers.enable",
)
TRANSFORMS: Final = frozenset(
    {
        *("Cast", "DropHeaders", "ExtractField", "Filter", "Flatten", "HeaderFrom", "HoistField"),
        *("InsertField", "InsertHeader", "MaskField", "RegexRouter", "ReplaceField"),
        *("SetSchemaMetadata", "TimestampConverter", "TimestampRouter", "ValueToKey"),
        "ExtractNewRecordState",
    }
)
"""The transformations that are known here by Connect's and Debezium's names."""


class Remark(NamedTuple):
    """A part of the config that has no translation, or that a person has to check."""

    key: str
    told: str


class TranslatedConfig(NamedTuple):
    """The config of a pipeline, and the remarks on its translation."""

    name: str
    config: dict[str, str]
    remarks: tuple[Remark, ...]


@dataclass(slots=True)
class Draft:
    """A translation in progress: the keys still left of a Connect config, and the new config."""

    left: dict[str, str]
    """The keys that are not translated yet, with their values."""
    bootstrap: str
    """The brokers of the worker, which no connector's config names."""
    mount: str
    """The folder below which object stores are mounted."""
    config: dict[str, str] = field(default_factory=dict[str, str])
    remarks: list[Remark] = field(default_factory=list[Remark])

    def take(self, key: str, default: str = "") -> str:
        """Return a value, which is then translated."""
        return self.left.pop(key, default).strip()

    def put(self, **values: str) -> None:
        """Write keys, with `_` for a dot."""
        self.config |= {key.replace("_", "."): value for key, value in values.items()}

    def rename(self, renamed: Mapping[str, str]) -> None:
        """Copy values to other keys; missing ones are skipped."""
        for key, name in renamed.items():
            if key in self.left:
                self.config[name] = self.take(key)

    def keep(self, end: str, keys: Iterable[str]) -> None:
        """Copy values to the same keys under the prefix of an end: `source.` or `sink.`."""
        self.rename({key: f"{end}{key}" for key in keys})

    def drop(self, reason: str, *keys: str) -> None:
        """Drop keys without a counterpart, with the reason as a remark."""
        for key in keys:
            if key in self.left:
                self.take(key)
                self.remark(key, reason)

    def drop_prefix(self, prefix: str, reason: str) -> None:
        """Leave out all keys of a kind."""
        self.drop(reason, *(key for key in [*self.left] if key.startswith(prefix)))

    def remark(self, key: str, text: str) -> None:
        """Add a remark on a key."""
        self.remarks.append(Remark(key, text))

    def add_transform(self, name: str, kind: str, **values: str) -> None:
        """Append a transform."""
        names = [each for each in self.config.get("transforms", "").split(",") if each]
        self.config["transforms"] = ",".join([*names, name])
        self.config[f"transforms.{name}.type"] = kind
        self.config |= {f"transforms.{name}.{key}": value for key, value in values.items()}

    def common(self) -> None:
        """Translate the keys of all connectors: tasks, errors, transforms, predicates."""
        self.rename({key: key for key in UNCHANGED})
        self.drop("a bad row is told with its reason in any case", "errors.log.include.messages")
        self._transforms()
        self.drop_prefix("topic.creation.", "topics are created by the brokers, or beforehand")
        self.drop_prefix("offset.flush.", "offsets are committed with each batch")
        exactly = "pipelines are exactly once by default (delivery.guarantee)"
        self.drop(exactly, "exactly.once.support", "transaction.boundary", "offsets.storage.topic")

    def _transforms(self) -> None:
        names = [each.strip() for each in self.take("transforms").split(",") if each.strip()]
        kept: list[str] = []
        for name in names:
            prefix = f"transforms.{name}."
            kind = self.left.get(f"{prefix}type", "")
            if short_name(kind.partition("$")[0]) not in TRANSFORMS:
                self.remark(f"transforms.{name}", f"{kind or 'no type'} is not known here")
                for key in [each for each in self.left if each.startswith(prefix)]:
                    self.take(key)
                continue
            kept.append(name)
            self.rename({key: key for key in [*self.left] if key.startswith(prefix)})
        if kept:
            self.config["transforms"] = ",".join(kept)
        predicates = [key for key in self.left if key.partition(".")[0] == "predicates"]
        self.rename({key: key for key in predicates})

    def converters(self, end: str) -> None:
        """Translate the converters of keys and values, for the end that is Kafka."""
        for part in ("key", "value"):
            converter = self.take(f"{part}.converter")
            name = CONVERTERS.get(short_name(converter), "")
            before = f"{part}.converter."
            if name:
                self.config[f"{end}{part}.converter"] = name
                self.keep(end, (f"{before}{each}" for each in OF_CONVERTERS))
                if name == "json":  # Connect's default, which a sink does not have here
                    self.config.setdefault(f"{end}{before}schemas.enable", "true")
            elif part == "value" or converter:
                is_sink = end == "sink."
                usual = "json" if is_sink or part == "value" else "string"
                self.config[f"{end}{part}.converter"] = usual
                if usual == "json":
                    self.config[f"{end}{before}schemas.enable"] = "false"
                why = f"{converter} is not known here" if converter else "it was that of the worker"
                self.remark(f"{part}.converter", f"{why}: {usual} is taken, look at it")
            self.drop_prefix(before, "the converter has no such key here")
        self.drop("headers are bytes here", "header.converter")

    def read_topics(self) -> None:
        """Read the topics of a sink connector."""
        self.put(source_type="kafka", source_bootstrap_servers=self.bootstrap)
        self.keep("source.", ("topics", "topics.regex"))
        self.converters("source.")
        self.client("consumer.override.", "source.consumer.override.")
        self._tell_bootstrap("source.bootstrap.servers")

    def write_topic(self, topic: str = "") -> None:
        """Set the topic of the sink: one topic, or those that rows name."""
        self.put(sink_type="kafka", sink_bootstrap_servers=self.bootstrap)
        self.config["sink.topic" if topic else "sink.topic.column"] = topic or "_topic"
        self.converters("sink.")
        self.client("producer.override.", "sink.producer.override.")
        self._tell_bootstrap("sink.bootstrap.servers")

    def client(self, prefix: str, to: str) -> None:
        """Translate the Kafka client's keys of one end, under another prefix."""
        end = f"{to.partition('.')[0]}."
        for key in [each for each in self.left if each.startswith(prefix)]:
            name = key.removeprefix(prefix)
            meant = JAVA_NAMES.get(name, name)
            flaw = dict(flaws_in_overrides({meant: self.left[key]})).get(meant)
            if name in OF_CONNECTIONS or end in OF_CLIENTS.get(name, ()):
                self.config[f"{end}{name}"] = self.take(key)
            elif flaw is None:
                self.config[f"{to}{meant}"] = self.take(key)
            else:
                self.drop(f"{to}{meant} {flaw}", key)

    def _tell_bootstrap(self, key: str) -> None:
        told = "the brokers were those of the worker: --bootstrap-servers says which"
        if self.config[key] == self.bootstrap == BOOTSTRAP:  # nobody has said which
            self.remark(key, told)

    def finish(self, name: str) -> TranslatedConfig:
        """Return the translation, with a remark on each key that is left."""
        for key in sorted(self.left):
            is_of_client = key.startswith(OVERRIDES)
            self.remark(key, OTHER_CLIENT if is_of_client else "there is no counterpart")
        return TranslatedConfig(name, self.config, tuple(self.remarks))


def short_name(connector: str) -> str:
    """Return the last part of a class, which is how most configs name it."""
    return connector.strip().rpartition(".")[2]
