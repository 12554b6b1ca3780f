# pyright: basic, reportPrivateImportUsage=false
"""A Kafka cluster, asked with a deadline: which topics there are, and where their records begin.

What is no answer is told as `SourceAway` or `SinkAway`, in the words of librdkafka that say why:
it knows more than that an answer did not come.
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

# librdkafka's own errors are spelled with an underscore.
PARTITION_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001
OUT_OF_RANGE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001
NO_TOPIC: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
)
"""What says that a topic is not there."""
_REFUSALS: Final = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)  # noqa: SLF001
_NO_TLS: Final = (KafkaError._SSL, KafkaError._TRANSPORT)  # noqa: SLF001
"""A handshake that fails; as a connection that does if the first answer is all that it takes."""
_UNTRUSTED: Final = "certificate"
"""What librdkafka says if it is not the connection that failed, but the trust in who it is to."""
_OTHER_EPOCH: Final = (KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH)
FENCED: Final = (
    KafkaError._FENCED,  # noqa: SLF001
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
)
"""What says that another producer has taken over."""
_DOWN: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
LATE: Final = KafkaError._TIMED_OUT  # noqa: SLF001
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of a topic in a cluster that gives none."""


class TopicPlace(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Spell it as Kafka's tools do."""
        return f"{self.topic}-{self.partition}"


class TopicFacts(NamedTuple):
    """What a cluster says of a topic; `id` is another one if it is deleted and made anew."""

    id: str
    partitions: int


class Trouble:
    """What librdkafka last said is wrong, for whoever waits for an answer in vain."""

    def __init__(self) -> None:
        self.text = ""
        self.is_new = False
        """Whether it came since somebody last looked."""
        self.is_refused = False
        """Whether it is about who the client says it is, or the broker."""

    def __call__(self, error: KafkaError) -> None:
        """Take note of an error; the last word before all brokers are down says why."""
        self.is_new = True
        if error.code() != _DOWN or not self.text:
            self.text = error.str()
            is_untrusted = error.code() in _NO_TLS and _UNTRUSTED in self.text
            self.is_refused = is_untrusted or error.code() in _REFUSALS

    def reason(self, error: KafkaError, servers: object, away: type[Away]) -> Exception:
        """Return why an error came about: the config's fault, or what is outside."""
        told = f"{servers}: {self.text or error.str()}"
        return ConfigInvalid(told) if self.is_refused else away(told)


def made(
    make: Callable[..., Client], settings: Settings, trouble: Trouble, **own: object
) -> Client:
    """Return a client of librdkafka; raises `ConfigInvalid` for settings that it refuses."""
    try:
        return make({**settings, **own, "error_cb": trouble})
    except KafkaException as error:
        raise ConfigInvalid(error.args[0].str()) from None
    except (TypeError, ValueError) as error:
        raise ConfigInvalid(str(error)) from None


class KafkaCluster:
    """A cluster as one end of a pipeline reaches it; may be used from several threads."""

    def __init__(self, settings: Settings, away: type[Away], timeout_s: float = REQUEST_S) -> None:
        """Make a client, which connects when it is asked; raises `ConfigInvalid`."""
        self.trouble = Trouble()
        self._settings = settings
        self._admin = made(AdminClient, settings, self.trouble)
        self._servers = settings.get(SERVERS, "")
        self._id: str | None = None
        """Its id; None: it was not asked for yet."""
        self.away = away
        self._timeout_s = timeout_s

    def id(self) -> str:
        """Return what tells the cluster from others, whatever its brokers are; "": it has no id."""
        if self._id is None:
            with self.asking():
                asked = self._admin.describe_cluster(request_timeout=self._timeout_s)
                self._id = str(asked.result(self._timeout_s).cluster_id or "")
        return self._id

    def topics(self) -> Collection[str]:
        """Return the names of all topics that may be seen, Kafka's own left out."""
        with self.asking():
            found = self._admin.list_topics(timeout=self._timeout_s)
        return [name for name in found.topics if not name.startswith("__")]

    def facts(self, topics: Collection[str]) -> Mapping[str, TopicFacts]:
        """Return what there is to know of topics; what is not there is left out."""
        if not topics:
            return {}
        with self.asking():
            asked = self._admin.describe_topics(
                TopicCollection([*topics]), request_timeout=self._timeout_s
            )
        found: dict[str, TopicFacts] = {}
        for name, answer in asked.items():
            with self.asking(f"topic {name}: "):
                told = self._unless_missing(answer)
                if told is not None:
                    topic_id = str(told.topic_id)
                    found[name] = TopicFacts(
                        "" if topic_id == _NO_ID else topic_id, len(told.partitions)
                    )
        return found

    def create(self, topic: str, replicas: int) -> None:
        """Make a topic of one partition; one that somebody else makes meanwhile is fine."""
        with self.asking(f"topic {topic} cannot be made with {replicas} copies: "):
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
        """Return the offsets of the first records, of what comes next, or of the first of a time.

        The next is behind the last one whose transaction has ended, if only such are asked for; it
        is also what is younger than any record.
        """
        if not places:
            return {}
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        with self.asking():
            try:
                found = self._listed(places, to, level)
            except KafkaException as error:
                if error.args[0].code() not in _OTHER_EPOCH:
                    raise
                # The leader is another since: this client goes by what it knew for minutes.
                self._admin = made(AdminClient, self._settings, self.trouble)
                found = self._listed(places, to, level)
        late = [place for place, at in found.items() if at < 0]
        return {**found, **self.offsets(late, SeekEnd.LATEST, is_committed=is_committed)}

    def _listed(
        self, places: Collection[TopicPlace], to: Seek, level: IsolationLevel
    ) -> Mapping[TopicPlace, int]:
        asked = self._admin.list_offsets(
            {TopicPartition(*place): _spec(to) for place in places},
            isolation_level=level,
            request_timeout=self._timeout_s,
        )
        return {
            TopicPlace(each.topic, each.partition): answer.result(self._timeout_s).offset
            for each, answer in asked.items()
        }

    def largest_records(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Return how many bytes a batch of records may have in each topic."""
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        with self.asking():
            asked = self._admin.describe_configs(resources, request_timeout=self._timeout_s)
        found: dict[str, int] = {}
        for resource, answer in asked.items():
            with self.asking(f"topic {resource.name}: "):
                told = answer.result(self._timeout_s)["max.message.bytes"].value
                found[resource.name] = int(told)
        return found

    def unreachable(self, error: KafkaError) -> Exception:
        """Return why there was no answer."""
        self._admin.poll(0)  # which has librdkafka tell its trouble
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
    def asking(self, what: str = "") -> Generator[None]:
        """Tell what is no answer as this end's `Away`, with what it was about before it.

        Brokers that would not have this client, or that it does not trust, are `ConfigInvalid`.
        """
        try:
            with self._within():
                yield
        except KafkaException as error:
            told: KafkaError = error.args[0]
            if told.code() < 0:  # not an answer of a broker but the want of one
                raise self.unreachable(told) from None
            raise self.away(f"{what}{told.str()}") from None
        self.trouble.is_refused = False


def _spec(to: Seek) -> OffsetSpec:
    if isinstance(to, SeekEnd):
        made: Any = OffsetSpec.earliest() if to is SeekEnd.EARLIEST else OffsetSpec.latest()
        return made
    return OffsetSpec.for_timestamp((to - EPOCH) // timedelta(milliseconds=1))
