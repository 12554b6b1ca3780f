"""The last error of librdkafka is the reason for a timeout, and may be the config's fault."""

import pytest
from confluent_kafka import KafkaError

from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.errors import SourceAway
from fairlead.runtime.pipeline.stores.kafka.cluster import LastError

DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 brokers are down")
REFUSED = KafkaError(KafkaError._TRANSPORT, "connection refused")
UNTRUSTED = KafkaError(KafkaError._SSL, "broker certificate could not be verified")
LATE = KafkaError(KafkaError._TIMED_OUT, "timed out")


@pytest.mark.parametrize(
    ("errors", "kind", "told"),
    [
        ((), SourceAway, "timed out"),
        ((DOWN,), SourceAway, "2/2 brokers are down"),
        ((REFUSED, DOWN), SourceAway, "connection refused"),
        ((UNTRUSTED, DOWN), ConfigInvalid, "broker certificate could not be verified"),
        ((UNTRUSTED, REFUSED), SourceAway, "connection refused"),
        ((KafkaError(KafkaError._AUTHENTICATION, "no"),), ConfigInvalid, "no"),
    ],
)
def test_a_timeout_has_the_last_error_before_it_as_its_reason(
    errors: tuple[KafkaError, ...], kind: type[Exception], told: str
) -> None:
    last = LastError()
    assert not last.is_new
    for each in errors:
        last.is_new = False
        last(each)
        assert last.is_new
    found = last.reason(LATE, "b:9092", SourceAway)
    assert (type(found), str(found)) == (kind, f"b:9092: {told}")
