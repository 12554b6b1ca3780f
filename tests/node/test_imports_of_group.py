"""A node without a store loads nothing of what only a cluster of nodes needs."""

import subprocess
import sys

OF_CLUSTERS = ("kio", "ssl", "asyncio", "psycopg", "confluent_kafka")


def test_the_processes_of_a_node_load_nothing_that_only_clusters_need() -> None:
    code = "import sys, fairlead.runtime.node.supervisor.supervisor; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*OF_CLUSTERS} & {*ran.stdout.split()} == set()
