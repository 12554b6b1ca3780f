"""The metrics that a node tells of itself, and of the coordinators of its groups."""

from prometheus_client.metrics_core import Metric

from fairlead.projections.metrics import node as of_node
from fairlead.projections.metrics.coordinators import CoordinatorFigures, coordinators
from fairlead.projections.metrics.node import (
    DiskFigures,
    EngineFigures,
    HeapFigures,
    NodeFigures,
)

Sample = tuple[str, tuple[str, ...], float]


def samples(*families: Metric) -> list[Sample]:
    """Return the samples of families, with the values of their labels."""
    return [
        (each.name.removeprefix("fairlead_"), tuple(each.labels.values()), each.value)
        for family in families
        for each in family.samples
    ]


def test_a_coordinator_is_labelled_by_its_group_or_its_shard() -> None:
    durations = {"append": ((3.0, 1.0, 1.0), 6.5)}
    group = CoordinatorFigures("connect", "", 1_000.0, 0.5, 20.0, 1.5, 900, bounds=(0.01, 1.0))
    shard = CoordinatorFigures(
        "", "3", 2_000.0, 0.0, 4.0, 0.0, 7, 2, 5, {"FENCED": 4}, durations, (0.01, 1.0)
    )
    found = samples(*coordinators([group, shard]))
    assert sorted(found) == sorted(
        [
            ("coordinator_seconds_bucket", ("", "3", "append", "0.01"), 3),
            ("coordinator_seconds_bucket", ("", "3", "append", "1.0"), 4),
            ("coordinator_seconds_bucket", ("", "3", "append", "+Inf"), 5),
            ("coordinator_seconds_count", ("", "3", "append"), 5),
            ("coordinator_seconds_sum", ("", "3", "append"), 6.5),
            ("coordinator_start_timestamp_seconds", ("connect", ""), 1_000),
            ("coordinator_start_timestamp_seconds", ("", "3"), 2_000),
            ("coordinator_load_seconds", ("connect", ""), 0.5),
            ("coordinator_load_seconds", ("", "3"), 0),
            ("coordinator_busy_seconds_total", ("connect", ""), 20),
            ("coordinator_busy_seconds_total", ("", "3"), 4),
            ("coordinator_held_up_seconds_total", ("connect", ""), 1.5),
            ("coordinator_held_up_seconds_total", ("", "3"), 0),
            ("coordinator_requests_total", ("connect", ""), 900),
            ("coordinator_requests_total", ("", "3"), 7),
            ("coordinator_refusals_total", ("", "3", "FENCED"), 4),
            ("kafka_expired_offsets_total", ("3",), 2),
            ("kafka_deleted_offsets_total", ("3",), 5),
        ]
    )


def test_what_is_not_known_of_a_jvm_is_left_out() -> None:
    figures = NodeFigures(
        {
            "": EngineFigures(True, 2, 900, HeapFigures(10, 20, 30, 1_500)),
            "w1": DOWN,
        }
    )
    assert samples(*of_node.heaps(figures)) == [
        ("engine_heap_used_bytes", ("shared",), 10),
        ("engine_heap_committed_bytes", ("shared",), 20),
        ("engine_heap_max_bytes", ("shared",), 30),
        ("engine_gc_seconds_total", ("shared",), 1.5),
    ]
    assert samples(*of_node.engines(figures)) == [
        ("engine_up", ("shared",), 1),
        ("engine_up", ("w1",), 0),
        ("engine_restarts_total", ("shared",), 2),
        ("engine_restarts_total", ("w1",), 0),
        ("engine_resident_bytes", ("shared",), 900),
    ]


DOWN = EngineFigures(is_up=False, restarts=0)


def test_each_disk_is_told_by_its_folder_and_each_silent_process_by_its_name() -> None:
    disks = {"data": DiskFigures(1_000, 10, 50, 5), "logs": DiskFigures(900, 20, 0, 0)}
    figures = NodeFigures(disks=disks, silent={"group connect": 7.5})
    assert samples(*of_node.disks(figures), *of_node.processes(figures)) == [
        ("disk_size_bytes", ("data",), 1_000),
        ("disk_size_bytes", ("logs",), 900),
        ("disk_free_bytes", ("data",), 10),
        ("disk_free_bytes", ("logs",), 20),
        ("disk_inodes", ("data",), 50),
        ("disk_inodes", ("logs",), 0),
        ("disk_free_inodes", ("data",), 5),
        ("disk_free_inodes", ("logs",), 0),
        ("silent_processes", (), 1),
        ("process_silent_seconds", ("group connect",), 7.5),
    ]
    assert samples(*of_node.processes(NodeFigures())) == [("silent_processes", (), 0)]


def test_each_encrypted_listener_tells_the_end_of_its_certificate() -> None:
    figures = NodeFigures(certificates={"rest": 1.8e9}, failed_handshakes={"rest": 3})
    assert samples(*of_node.encryption(figures)) == [
        ("certificate_not_after_timestamp_seconds", ("rest",), 1.8e9),
        ("tls_failed_handshakes_total", ("rest",), 3),
    ]
    assert samples(*of_node.encryption(NodeFigures())) == []


def test_spans_are_counted_by_what_became_of_them() -> None:
    figures = NodeFigures(spans={"sent": 7, "dropped": 2})
    assert samples(*of_node.traces(figures)) == [
        ("trace_spans_total", ("dropped",), 2),
        ("trace_spans_total", ("sent",), 7),
    ]
