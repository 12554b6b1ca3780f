# pyright: basic, reportPrivateImportUsage=false
"""Admin requests to a Kafka cluster, with a timeout: topics, offsets, limits.

A missing answer is raised as `SourceAway` or `SinkAway`, with the last error of librdkafka as the
reason, which says more than a timeout.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType
from confluent_kafka.cimpl import NewTopic

from ...spi.config import ConfigInvalid
from ...spi.errors import Away
from ...spi.offsets import Seek, SeekEnd
from .connection import REQUEST_S, SERVERS, Settings

T = TypeVar("T")
Client = TypeVar("Client")

# The names of librdkafka's local errors begin with an underscore.
PARTITION_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001
OUT_OF_RANGE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001
NO_TOPIC: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
)
"""The topic does not exist."""
_REFUSALS: Final = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)  # noqa: SLF001
_NO_TLS: Final = (KafkaError._SSL, KafkaError._TRANSPORT)  # noqa: SLF001
"""A failed TLS handshake; librdkafka may report it as a failed connection."""
_UNTRUSTED: Final = "certificate"
"""In librdkafka's error text if a certificate was refused."""
_OTHER_EPOCH: Final = (KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH)
FENCED: Final = (
    KafkaError._FENCED,  # noqa: SLF001
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
)
"""Another producer has the transactional id."""
_DOWN: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
LATE: Final = KafkaError._TIMED_OUT  # noqa: SLF001
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The topic id in a cluster without topic ids."""


class TopicPlace(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return the partition as Kafka's tools show it."""
        return f"{self.topic}-{self.partition}"


class TopicFacts(NamedTuple):
    """A topic's description; `id` changes if the topic is deleted and created again."""

    id: str
    partitions: int
    """The number of partitions."""


class TopicLimits(NamedTuple):
    """The limits of the records that a topic accepts."""

    record_bytes: int
    """The largest record, `max.message.bytes`."""
    needs_keys: bool
    """Whether it is compacted, so that each record must have a key."""
    before_ms: int | None
    """How far the time of a record may lie in the past; None: any time is fine."""
    after_ms: int | None
    """How far it may lie in the future, likewise."""


class LastError:
    """Keeps the last error that librdkafka reported, as the reason for a timeout."""

    def __init__(self) -> None:
        self.text = ""
        """The last error; empty: there was none."""
        self.is_new = False
        """Whether it came since the last check."""
        self.is_refused = False
        """Whether it is an authentication or certificate error."""

    def __call__(self, error: KafkaError) -> None:
        """Keep an error, but not "all brokers down" in place of the reason before it."""
        self.is_new = True
        if error.code() != _DOWN or not self.text:
            self.text = error.str()
            is_untrusted = error.code() in _NO_TLS and _UNTRUSTED in self.text
            self.is_refused = is_untrusted or error.code() in _REFUSALS

    def reason(self, error: KafkaError, servers: object, away: type[Away]) -> Exception:
        """Return the exception for an error: `ConfigInvalid`, or the given `Away`."""
        text = f"{servers}: {self.text or error.str()}"
        return ConfigInvalid(text) if self.is_refused else away(text)


def make_client(
    make: Callable[..., Client], settings: Settings, trouble: LastError, **own: object
) -> Client:
    """Create a client of librdkafka; raises `ConfigInvalid` for settings that it refuses."""
    try:
        return make({**settings, **own, "error_cb": trouble})
    except KafkaException as error:
        raise ConfigInvalid(error.args[0].str()) from None
    except (TypeError, ValueError) as error:
        raise ConfigInvalid(str(error)) from None


class KafkaCluster:
    """The admin client of one end of a pipeline; thread-safe."""

    def __init__(self, settings: Settings, away: type[Away], timeout_s: float = REQUEST_S) -> None:
        """Create a client, which connects at the first request; raises `ConfigInvalid`."""
        self.trouble = LastError()
        """The last error of the client."""
        self._settings = settings
        self._admin = make_client(AdminClient, settings, self.trouble)
        """The client; replaced if it has outdated metadata."""
        self._servers = settings.get(SERVERS, "")
        self._id: str | None = None
        """The cluster id; None: not requested yet."""
        self.away = away
        self._timeout_s = timeout_s

    def id(self) -> str:
        """Return the cluster id; empty: the cluster has none."""
        if self._id is None:
            with self.translate_errors():
                asked = self._admin.describe_cluster(request_timeout=self._timeout_s)
                self._id = str(asked.result(self._timeout_s).cluster_id or "")
        return self._id

    def topics(self) -> Collection[str]:
        """Return the names of all visible topics, without internal ones."""
        with self.translate_errors():
            found = self._admin.list_topics(timeout=self._timeout_s)
        return [name for name in found.topics if not name.startswith("__")]

    def facts(self, topics: Collection[str]) -> Mapping[str, TopicFacts]:
        """Describe topics; missing ones are left out."""
        if not topics:
            return {}
        with self.translate_errors():
            futures = self._admin.describe_topics(
                TopicCollection([*topics]), request_timeout=self._timeout_s
            )
        described: dict[str, TopicFacts] = {}
        for name, answer in futures.items():
            with self.translate_errors(f"topic {name}: "):
                topic = self._unless_missing(answer)
                if topic is not None:
                    topic_id = str(topic.topic_id)
                    described[name] = TopicFacts(
                        "" if topic_id == _NO_ID else topic_id, len(topic.partitions)
                    )
        return described

    def create(self, topic: str, replicas: int) -> None:
        """Create a topic with one partition, unless it exists."""
        with self.translate_errors(f"topic {topic} cannot be created with {replicas} replicas: "):
            asked = self._admin.create_topics(
                [NewTopic(topic, 1, replicas)], request_timeout=self._timeout_s
            )
            try:
                asked[topic].result(self._timeout_s)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def offsets(
        self, places: Collection[TopicPlace], to: Seek, *, is_committed: bool = True
    ) -> Mapping[TopicPlace, int]:
        """Return the offset of the first record, of the next one, or of the first after a time.

        The next offset (LATEST) is the last stable offset if `is_committed`, else the high
        watermark. It is also the result for a time after the last record.
        """
        if not places:
            return {}
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        with self.translate_errors():
            try:
                listed = self._listed(places, to, level)
            except KafkaException as error:
                if error.args[0].code() not in _OTHER_EPOCH:
                    raise
                # The leader has changed; this client would use its cached metadata for minutes.
                self._admin = make_client(AdminClient, self._settings, self.trouble)
                listed = self._listed(places, to, level)
        late = [place for place, at in listed.items() if at < 0]
        return {**listed, **self.offsets(late, SeekEnd.LATEST, is_committed=is_committed)}

    def _listed(
        self, places: Collection[TopicPlace], to: Seek, level: IsolationLevel
    ) -> Mapping[TopicPlace, int]:
        futures = self._admin.list_offsets(
            {TopicPartition(*place): _spec(to) for place in places},
            isolation_level=level,
            request_timeout=self._timeout_s,
        )
        return {
            TopicPlace(each.topic, each.partition): answer.result(self._timeout_s).offset
            for each, answer in futures.items()
        }

    def limits(self, topics: Iterable[str]) -> Mapping[str, TopicLimits]:
        """Return what each topic accepts."""
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        with self.translate_errors():
            futures = self._admin.describe_configs(resources, request_timeout=self._timeout_s)
        limits: dict[str, TopicLimits] = {}
        for resource, answer in futures.items():
            with self.translate_errors(f"topic {resource.name}: "):
                config = answer.result(self._timeout_s)
            limits[resource.name] = _limits({name: each.value for name, each in config.items()})
        return limits

    def unreachable(self, error: KafkaError) -> Exception:
        """Return the exception for a missing answer."""
        self._admin.poll(0)  # lets librdkafka report its errors
        return self.trouble.reason(error, self._servers, self.away)

    def _unless_missing(self, answer: "Future[Any]") -> Any:  # noqa: ANN401  # Kafka's own
        try:
            return answer.result(self._timeout_s)
        except KafkaException as error:
            if error.args[0].code() in NO_TOPIC:
                return None
            raise

    @contextmanager
    def _within(self) -> Generator[None]:
        try:
            yield
        except TimeoutError:
            raise self.unreachable(KafkaError(LATE)) from None

    @contextmanager
    def translate_errors(self, what: str = "") -> Generator[None]:
        """Raise `KafkaException` and timeouts as this end's `Away`, with `what` as the prefix.

        Authentication and certificate errors are `ConfigInvalid`.
        """
        try:
            with self._within():
                yield
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() < 0:  # an error of the client, not of a broker
                raise self.unreachable(cause) from None
            raise self.away(f"{what}{cause.str()}") from None
        self.trouble.is_refused = False


def _limits(config: Mapping[str, str]) -> TopicLimits:
    is_given = config.get("message.timestamp.type") != "LogAppendTime"
    times = (config.get(f"message.timestamp.{each}.max.ms") for each in ("before", "after"))
    before_ms, after_ms = (int(each) if each and is_given else None for each in times)
    is_compacted = "compact" in config.get("cleanup.policy", "").split(",")
    return TopicLimits(int(config["max.message.bytes"]), is_compacted, before_ms, after_ms)


def _spec(to: Seek) -> OffsetSpec:
    if isinstance(to, SeekEnd):
        made: Any = OffsetSpec.earliest() if to is SeekEnd.EARLIEST else OffsetSpec.latest()
        return made
    return OffsetSpec.for_timestamp((to - EPOCH) // timedelta(milliseconds=1))
