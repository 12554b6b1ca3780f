"""`delivery.guarantee=at-least-once`: writes each batch to the sink directly, without staging.

The commit follows the write: after a crash between the two, the batch is read and written again.
"""

from collections.abc import Mapping
from typing import Final

from ..config import Importance
from ..connector import Delivery, Promise
from .kinds import choice_key

GUARANTEE: Final = "delivery.guarantee"

GUARANTEE_KEY: Final = choice_key(
    GUARANTEE,
    "exactly-once: batches are staged, committed, then published. at-least-once: the postgres and "
    "kafka sinks write each batch directly, which saves the staging; a crash may duplicate the "
    "rows of one batch.",
    Delivery.EXACTLY_ONCE.value,
    Delivery.AT_LEAST_ONCE.value,
    importance=Importance.LOW,
    group="Sink",
)


def is_at_least_once(config: Mapping[str, str]) -> bool:
    """Tell whether a config asks for at-least-once delivery."""
    return config.get(GUARANTEE) == Delivery.AT_LEAST_ONCE.value


def promise_of(config: Mapping[str, str]) -> Promise:
    """Return the guarantee of a sink that supports both, under a config."""
    if not is_at_least_once(config):
        return Promise(Delivery.EXACTLY_ONCE)
    why = f"{GUARANTEE}={Delivery.AT_LEAST_ONCE.value}: a crash may duplicate the rows of a batch"
    return Promise(Delivery.AT_LEAST_ONCE, (why,))
