# pyright: basic, reportPrivateImportUsage=false
"""The clients of a log in Kafka, and its two topics: how they are made, and what is asked of them.

All clients are librdkafka's. What one cannot do is raised as `StoreAwayError`, with the last error
that it reported as the reason, which says more than a timeout.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from string import ascii_letters, digits
from threading import Thread
from typing import Any, Final, NamedTuple

from ..log.errors import LogError
from .port import StoreAwayError

try:
    from confluent_kafka import (
        OFFSET_END,
        Consumer,
        KafkaError,
        KafkaException,
        Producer,
        TopicCollection,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient, ConfigResource
    from confluent_kafka.cimpl import NewTopic
except ImportError:
    raise LogError(
        "a log in Kafka needs confluent-kafka: pip install 'fairlead-connect[kafka]'"
    ) from None

__all__ = (
    "ANSWER_S",
    "GONE",
    "OUT_OF_RANGE",
    "KafkaException",
    "MissingTopicError",
    "Settings",
    "StoreClients",
    "StoreTopics",
    "TopicNames",
    "TopicPartition",
)

Settings = Mapping[str, str | int | float | bool]
"""Those of a client of librdkafka, `bootstrap.servers` among them."""

ANSWER_S: Final = 4.0
"""How long a call waits for its answer: a partition whose leader fails over needs some of it."""
_MAKE_S: Final = 10.0
"""How long new topics may take until they have leaders, once in the life of a log."""
_COMMON: Final[Settings] = {
    "log_level": 2,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 300,
    "socket.keepalive.enable": True,
    "socket.nagle.disable": True,
}
_PRODUCER: Final[Settings] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": int(ANSWER_S * 1000) - 200,
    "retry.backoff.ms": 50,
}
_CONSUMER: Final[Settings] = {
    "group.id": "fairlead-log",  # it joins none
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "fetch.error.backoff.ms": 50,
    "fetch.queue.backoff.ms": 20,
    "fetch.wait.max.ms": 1_000,  # of what comes it is told at once
    "fetch.message.max.bytes": 4 << 20,
    "queued.max.messages.kbytes": 16 << 10,
}
GONE: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001  # librdkafka's own errors are named so
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
)
"""There is no such topic, or the broker does not know it yet."""
OUT_OF_RANGE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001

_PLAIN: Final = (ascii_letters + digits + "-.").encode()
_HOUR_MS: Final = 3_600_000
_KEPT: Final = {"cleanup.policy": "delete", "unclean.leader.election.enable": "false"}
_LOG: Final = {**_KEPT, "retention.ms": "-1", "retention.bytes": "-1"}
_BEATS: Final = {**_KEPT, "retention.ms": str(_HOUR_MS), "segment.ms": str(_HOUR_MS)}
_LEAST_REPLICAS: Final = 3
_LEAST_IN_SYNC: Final = 2
_LOOKS: Final = 4
_LOOK_S: Final = 0.2
"""So often, and so far apart, a topic is looked for before it counts as missing: a broker that has
just started may not know it yet."""


class MissingTopicError(Exception):
    """There is no such topic, or the broker does not know it yet."""


class TopicNames(NamedTuple):
    """The topics of a log."""

    log: str
    beats: str

    @classmethod
    def of(cls, prefix: str, log: str) -> "TopicNames":
        """Return the names for a log: what Kafka allows in none is written in hexadecimal."""
        name = "".join(
            chr(each) if each in _PLAIN else f"_{each:02x}" for each in (prefix + log).encode()
        )
        return cls(name, name + "-beats")

    def configs(self) -> Mapping[str, Mapping[str, str]]:
        """Return how each topic is set up."""
        return {self.log: _LOG, self.beats: _BEATS}


class StoreClients:
    """Makes clients, and keeps the last error that one of them reported."""

    def __init__(self, settings: Settings) -> None:
        self._settings = {**_COMMON, **settings, "error_cb": self._note}
        self._trouble = ""
        self._admin: AdminClient | None = None
        self._asker: Consumer | None = None

    def producer(self) -> Producer:
        """Make a producer whose records come in their order, once each."""
        return self._made(Producer, _PRODUCER)

    def consumer(self) -> Consumer:
        """Make a consumer without a group."""
        return self._made(Consumer, _CONSUMER)

    def admin(self, *, is_new: bool = False) -> AdminClient:
        """Return the admin client; a new one asks who the controller is at this moment."""
        kept = None if is_new else self._admin
        made = self._admin = kept or self._made(AdminClient, {})
        return made

    def asker(self) -> Consumer:
        """Return the consumer that asks where topics end: one that reads may not be asked."""
        made = self._asker = self._asker or self.consumer()
        return made

    def close(self) -> None:
        """Close those that are kept, without waiting: a close may hang while a broker is away."""
        if self._asker is not None:
            Thread(target=self._asker.close, name="kafka-close", daemon=True).start()
        self._admin = self._asker = None

    def _made(self, make: Callable[[Any], Any], own: Settings) -> Any:  # noqa: ANN401
        try:
            return make({**self._settings, **own})
        except KafkaException as error:
            raise LogError(f"the settings of Kafka's clients: {error.args[0].str()}") from None
        except (TypeError, ValueError):
            raise LogError("the settings of Kafka's clients have a value of a wrong type") from None

    def _note(self, error: KafkaError) -> None:
        is_new = error.code() != KafkaError._ALL_BROKERS_DOWN or not self._trouble  # noqa: SLF001
        self._trouble = error.str() if is_new else self._trouble

    @contextmanager
    def translated(self, what: str, error_type: type[LogError] = StoreAwayError) -> Generator[None]:
        """Raise what a client raises as an error of the log; others are used from then on.

        One that knew a leader which is none any more may go by that for minutes.
        """
        try:
            yield
        except (KafkaException, MissingTopicError, TimeoutError) as error:
            self.close()
            cause = error.args[0] if isinstance(error, KafkaException) else None
            is_own = cause is None or cause.code() < 0
            said = cause.str() if cause is not None else str(error) or "no answer"
            text = f"{said} ({self._trouble})" if is_own and self._trouble else said
            raise error_type(f"{what}: {text}") from None


class StoreTopics:
    """The topics of a log."""

    def __init__(self, clients: StoreClients, names: TopicNames, replicas: int) -> None:
        self._clients = clients
        self.names = names
        self._replicas = replicas
        self._deletion: Future[Any] | None = None
        """The last one."""

    def id(self) -> str | None:
        """Return the identity that Kafka gave the log's topic; None if there is none."""
        topic = self._described().get(self.names.log)
        return str(topic.topic_id) if topic else None

    def ranges(self, asker: Consumer | None = None) -> Sequence[tuple[int, int]]:
        """Return the first offset and the end of the log and of the beats, as they are now.

        A consumer that asks learns of the topics so, which else may take it a second. Raises
        `MissingTopicError`.
        """
        return [self._range(each, asker) for each in self.names]

    def ends(self) -> Sequence[int]:
        """Return the ends of the log and of the beats, as they are now.

        It takes half of the requests that their ranges take. Raises `MissingTopicError`.
        """
        return self._ends(*self.names)

    def log_end(self) -> int:
        """Return the end of the log; raises `MissingTopicError`."""
        (end,) = self._ends(self.names.log)
        return end

    def _ends(self, *topics: str) -> Sequence[int]:
        places = [TopicPartition(each, 0, OFFSET_END) for each in topics]
        with _missing_if_gone():
            found = self._clients.asker().offsets_for_times(places, timeout=ANSWER_S)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
        return [each.offset for each in found]

    def _range(self, topic: str, asker: Consumer | None = None) -> tuple[int, int]:
        place, asker = TopicPartition(topic, 0), asker or self._clients.asker()
        with _missing_if_gone():
            low, end = asker.get_watermark_offsets(place, ANSWER_S, cached=False)
        return low, end

    def are_missing(self) -> bool:
        """Return whether there is no topic of the log, also after a while."""
        for _ in range(_LOOKS):
            if self.id() is not None:
                return False
            time.sleep(_LOOK_S)
        return True

    def make(self) -> None:
        """Make what is missing, and wait until it has leaders."""
        asked = self._clients.admin().describe_cluster(request_timeout=ANSWER_S)
        replicas = min(self._replicas, len(asked.result(ANSWER_S).nodes))
        least = str(_LEAST_IN_SYNC if replicas >= _LEAST_REPLICAS else 1)
        wanted = [
            NewTopic(name, 1, replicas, config={**config, "min.insync.replicas": least})
            for name, config in self.names.configs().items()
        ]
        made = self._clients.admin().create_topics(wanted, request_timeout=ANSWER_S)
        for each in made.values():
            _unless(KafkaError.TOPIC_ALREADY_EXISTS, each)
        deadline = time.monotonic() + _MAKE_S
        while not self._are_served():
            if time.monotonic() > deadline:
                raise TimeoutError("the new topics have no leaders yet")
            time.sleep(0.05)

    def delete_before(self, offset: int) -> None:
        """Ask to delete the records of the log before an offset, and do not wait for it."""
        place = TopicPartition(self.names.log, 0, offset)
        asked = self._clients.admin().delete_records([place], request_timeout=ANSWER_S)
        self._deletion = asked[place]

    def warnings(self) -> Sequence[str]:
        """Return what is not as it should be, and loses nothing."""
        if self._deletion is None or not self._deletion.done():
            return []
        error = self._deletion.exception()
        what = f"topic {self.names.log} keeps the records before its snapshot"
        return [f"{what}: {error.args[0].str()}"] if isinstance(error, KafkaException) else []

    def flaws(self) -> Sequence[str]:
        """Return how Kafka is set up to lose what it has acknowledged, as sentences.

        Of topics that there are not yet nothing is known.
        """
        described = self._described()
        resources = [ConfigResource(ConfigResource.Type.TOPIC, each) for each in described]
        if not resources:
            return []
        asked = self._clients.admin().describe_configs(resources, request_timeout=ANSWER_S)
        flaws: list[str] = []
        for resource, answer in asked.items():
            config = {name: each.value for name, each in answer.result(ANSWER_S).items()}
            (partition, *_) = described[resource.name].partitions
            wanted = self.names.configs()[resource.name]
            found = [*_copies(config, len(partition.replicas)), *_other(config, wanted)]
            flaws += [f"topic {resource.name} {each}" for each in found]
        return flaws

    def _described(self) -> Mapping[str, Any]:
        """Describe the topics that there are.

        A client that is kept waits for the controller that it knew, also after that was lost.
        """
        names, admin = TopicCollection([*self.names]), self._clients.admin(is_new=True)
        asked = admin.describe_topics(names, request_timeout=ANSWER_S)
        found = {
            name: _unless(KafkaError.UNKNOWN_TOPIC_OR_PART, each) for name, each in asked.items()
        }
        return {name: each for name, each in found.items() if each is not None}

    def _are_served(self) -> bool:
        try:
            self.ranges()
        except (KafkaException, MissingTopicError):
            self._clients.close()  # the next one does not go by what this one has heard
            return False
        return True


@contextmanager
def _missing_if_gone() -> Generator[None]:
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() not in GONE:
            raise
        raise MissingTopicError(error.args[0].str()) from None


def _copies(config: Mapping[str, str], replicas: int) -> Sequence[str]:
    least = int(config["min.insync.replicas"])
    flaws = {
        f"has {replicas} replicas, and needs {_LEAST_REPLICAS}": replicas < _LEAST_REPLICAS,
        f"has min.insync.replicas={least}, and needs {_LEAST_IN_SYNC}": least < _LEAST_IN_SYNC,
    }
    return [flaw for flaw, is_there in flaws.items() if is_there]


def _other(config: Mapping[str, str], wanted: Mapping[str, str]) -> Sequence[str]:
    return [
        f"has {name}={config[name]}, and needs {value}"
        for name, value in wanted.items()
        if config[name] != value and name != "segment.ms"
    ]


def _unless(code: int, asked: "Future[Any]") -> Any:  # noqa: ANN401  # Kafka's own
    try:
        return asked.result(ANSWER_S)
    except KafkaException as error:
        if error.args[0].code() != code:
            raise
        return None
