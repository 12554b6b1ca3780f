"""The page beside Kafka's metrics has every name of theirs, and what it names of ours is there."""

import re
from functools import cache
from pathlib import Path
from shutil import which
from subprocess import run
from zipfile import ZipFile

import pytest
import yaml
from pages.reference import metrics

from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka_clients.jars import classpath
from fairlead_tests.pages import HOUSE, codes_in

PAGE = HOUSE / "docs" / "operating" / "kafka-metrics.md"
CONNECT, COORDINATOR = "org/apache/kafka/connect/runtime", "org/apache/kafka/coordinator"
REGISTRIES = (
    ("connect-runtime", f"{CONNECT}/ConnectMetricsRegistry"),
    ("kafka-group-coordinator", f"{COORDINATOR}/group/metrics/GroupCoordinatorMetrics"),
    ("kafka-coordinator-common", f"{COORDINATOR}/common/runtime/CoordinatorRuntimeMetricsImpl"),
)
"""The classes of Kafka's jars that have the names of attributes."""
WORD = re.compile(rb"\x01\x00([\x01-\x7f])([a-z]+(?:-[a-z]+)+)")
"""A constant of a class file that may be the name of a metric: its length, then its letters."""
NO_ATTRIBUTES = re.compile(r"[a-z-]+-metrics")


@cache
def rows() -> dict[str, dict[str, str]]:
    """Return what stands beside each attribute, by the bean of its section."""
    found: dict[str, dict[str, str]] = {}
    for section in PAGE.read_text().split("\n### ")[1:]:
        head, *lines = section.splitlines()
        for bean in head.split(", "):
            found[bean] = {
                name: line.partition(" | ")[2]
                for line in lines
                if line.startswith("| `")
                for name in re.findall(r"`([^`]+)`", line.partition(" | ")[0])
            }
    return found


def test_every_row_names_a_metric_of_ours_or_says_why_there_is_none() -> None:
    known = {*metrics()}
    for bean, attributes in rows().items():
        for name, text in attributes.items():
            named = set(re.findall(r"\bfairlead_[a-z_]+", text))
            assert named <= known, (bean, name)
            assert named or re.match(r"(no|none|not|as)\b", text), (bean, name)


@pytest.mark.skipif(which("promtool") is None, reason="promtool is not installed")
def test_every_query_of_the_page_is_one_of_prometheus(tmp_path: Path) -> None:
    asked = [each.replace("\\|", "|") for each in codes_in(PAGE) if "fairlead_" in each]
    assert len(asked) > 70
    rules = [{"record": f"query:{n}", "expr": each} for n, each in enumerate(asked)]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    checked = run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_the_page_has_every_name_that_kafka_registers() -> None:
    try:
        jars = {re.sub(r"-\d.*", "", Path(each).name): each for each in classpath().split(":")}
    except NoPeer as error:
        pytest.skip(str(error))
    words: set[str] = set()
    for module, name in REGISTRIES:
        with ZipFile(jars[module]) as jar:
            found = WORD.findall(jar.read(f"{name}.class"))
        words |= {word.decode() for length, word in found if length[0] == len(word)}
    names = {each for each in words if not NO_ATTRIBUTES.fullmatch(each)}
    listed = {name for attributes in rows().values() for name in attributes}
    assert names - listed == set()
    of_client = {*rows()["connect-coordinator-metrics"]}
    assert {each for each in listed - names - of_client if "-" in each} == set()
