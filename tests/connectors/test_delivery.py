"""A pipeline promises no more about rows than the weaker of its two ends, under its config."""

from typing import ClassVar, cast

import pytest

from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.connector import Delivery, Promise
from fairlead.runtime.pipeline.stores.files.sink.sink_type import FilesSinkType

EXACTLY, AT_LEAST, BEST = Delivery
OUT_OF_RANGE, MODE = "source.offset.out.of.range", "source.mode"
BOTH = ("sink.type", MODE)


class Careless(FilesSinkType):
    """A sink that may write a row twice."""

    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE


@pytest.fixture(autouse=True)
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let configs name it as a type."""
    monkeypatch.setitem(cast(dict[str, object], keys.SINK_TYPES.built_in), "careless", Careless)


@pytest.mark.parametrize(
    ("config", "promised", "named"),
    [
        ({}, EXACTLY, ()),
        ({"errors.tolerance": "all"}, EXACTLY, ()),
        ({"sink.type": "careless"}, AT_LEAST, ("sink.type",)),
        ({"source.type": "postgres", MODE: "bulk", "sink.type": "careless"}, BEST, BOTH),
        ({"source.type": "kafka", OUT_OF_RANGE: "fail"}, EXACTLY, ()),
        ({"source.type": "kafka", OUT_OF_RANGE: "earliest"}, AT_LEAST, (OUT_OF_RANGE,)),
        ({"source.type": "kafka", OUT_OF_RANGE: "latest"}, BEST, (OUT_OF_RANGE,)),
        ({"source.type": "postgres", MODE: "xmin"}, EXACTLY, ()),
        ({"source.type": "postgres", MODE: "bulk"}, BEST, (MODE,)),
    ],
)
def test_what_a_pipeline_promises_follows_from_its_config(
    config: dict[str, str], promised: Delivery, named: tuple[str, ...]
) -> None:
    found = SparkPipeline.delivery_of(config)
    assert (found.delivery, tuple(each.partition("=")[0] for each in found.why)) == (
        promised,
        named,
    )


@pytest.mark.parametrize("one", Delivery)
@pytest.mark.parametrize("other", Delivery)
def test_of_two_promises_the_weaker_is_left(one: Delivery, other: Delivery) -> None:
    order = [EXACTLY, AT_LEAST, BEST]
    weaker = order[max(order.index(one), order.index(other))]
    both = Promise(one, ("a",)).and_also(Promise(other, ("b",)))
    assert both == Promise(weaker, ("a", "b"))
