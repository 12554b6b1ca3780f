"""What the demo does, and when: the connector, the settings, the moments."""

from collections.abc import Mapping
from pathlib import Path

CONNECTOR = "flights"
GROUP = "demo"
TASKS = 4
FEED_SECONDS = 30.0
JOIN_AFTER_SECONDS = 1.0
"""From the first file to the start of a third worker."""
KILL_AFTER_SECONDS = 3.0
"""From the third worker's first batch to the kill."""
LONGEST_SECONDS = 240.0
VICTIM = "w1"

SCHEMA = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, "
    "arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, "
    "tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT, hour INT, "
    "minute INT, time_hour TIMESTAMP"
)
QUERY = (
    "SELECT time_hour, carrier, flight, tailnum, origin, dest, dep_delay, arr_delay, air_time, "
    "distance, distance / (air_time / 60) AS miles_per_hour, arr_delay > 15 AS late FROM input"
)

SETTINGS: Mapping[str, str] = {
    "group.id": GROUP,
    "listeners": "http://127.0.0.1:0",
    "heartbeat.interval.ms": "1000",
    "fence.margin.ms": "1000",
    "session.timeout.ms": "6000",
    "scheduled.rebalance.max.delay.ms": "0",
    "spark.heap": "640m",
}
"""Kafka Connect's settings, but for a shorter session: a kill is to be noticed soon."""


def connector(source: Path, sink: Path) -> dict[str, str]:
    """Return the config of the demo's connector."""
    return {
        "connector.class": "SparkPipeline",
        "tasks.max": str(TASKS),
        "source.format": "csv",
        "source.path": str(source),
        "source.min.age.ms": "0",  # the feeder moves files in
        "source.schema": SCHEMA,
        "source.null.values": "NA",
        "transforms": "late",
        "transforms.late.type": "sql",
        "transforms.late.query": QUERY,
        "sink.format": "parquet",
        "sink.path": str(sink),
        "sink.partition.by": "carrier",
    }
