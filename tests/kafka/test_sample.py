# pyright: basic
"""A sample of topics: the first records as a task would decode them, and no group is made."""

from typing import Any

import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.sample import SampledColumn, read_sample
from fairlead.runtime.pipeline.spi.context import Context
from fairlead_tests.kafka.pipes import source_config
from fairlead_tests.kafka.topics import Topics


def no_spark(job: Any) -> Any:
    raise AssertionError(f"{job} needs no Spark")


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_sample_of_topics_has_their_first_records_and_makes_no_group(
    topics: Topics, topic: str, reset: str
) -> None:
    topics.write(topic, [f"value {number}" for number in range(100)])
    config = source_config(
        topics.bootstrap,
        topics=topic,
        value_converter="string",
        auto_offset_reset=reset,
        group_id_shadow=f"shadow-{topic}",
    )
    before = topics.groups()
    sample = read_sample(config, Context(Resource("sample"), print), no_spark)
    assert SampledColumn("_value", "string") in sample.before.columns
    assert [row for row in sample.before.rows if "value 0" in row]
    assert (len(sample.before.rows), sample.after) == (10, None)
    assert topics.groups() == before
