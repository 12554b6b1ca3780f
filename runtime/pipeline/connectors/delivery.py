"""`delivery.guarantee`: a pipeline that is content with less than exactly once, and saves staging.

Each batch is put in place as it comes, and counts then: what was put in place and did not come to
count is read, and put in place, again.
"""

from collections.abc import Mapping
from typing import Final

from ..spi.config import Importance
from ..spi.connector import Delivery, Promise
from ..spi.key_kinds import choice_key

GUARANTEE: Final = "delivery.guarantee"

GUARANTEE_KEY: Final = choice_key(
    GUARANTEE,
    "exactly-once: batches are staged, and put in place once they count. at-least-once: sinks that "
    "gain by it (postgres, kafka) put each batch in place at once, which saves the staging; rows "
    "of the batch that a crash interrupts come twice.",
    Delivery.EXACTLY_ONCE.value,
    Delivery.AT_LEAST_ONCE.value,
    importance=Importance.LOW,
    group="Sink",
)


def is_at_least_once(config: Mapping[str, str]) -> bool:
    """Tell whether a config is content with that."""
    return config.get(GUARANTEE) == Delivery.AT_LEAST_ONCE.value


def promise_of(config: Mapping[str, str]) -> Promise:
    """Return what a sink promises that is exactly once unless the config is content with less."""
    if not is_at_least_once(config):
        return Promise(Delivery.EXACTLY_ONCE)
    why = f"{GUARANTEE}={Delivery.AT_LEAST_ONCE.value}: rows of a batch come twice after a crash"
    return Promise(Delivery.AT_LEAST_ONCE, (why,))
