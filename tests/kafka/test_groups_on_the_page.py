"""Kafka's consumers come and go, and the page of the node shows it, with what is left to read."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients import clients
from fairlead_tests.kafka_clients.clients import GROUP, Client
from fairlead_tests.kafka_listener.live import PARTITIONS, Admin, Writer, reading
from fairlead_tests.kafka_listener.node import ListenerNode
from fairlead_tests.kafka_listener.told import Told
from fairlead_tests.page.browser import chromium, visited

PATIENCE_MS = 90_000.0
"""For what follows from a session timeout, on a slow machine."""


def has_members(page: Page, count: int) -> None:
    """The map has so many members, and all partitions."""
    members = f"{count} member{'' if count == 1 else 's'}"
    shown = f"{members}; partitions: {PARTITIONS} assigned"
    expect(page.locator("canvas")).to_have_attribute("aria-label", shown, timeout=PATIENCE_MS)


@pytest.mark.soak  # each run has such groups drawn: page/test_kafka_groups.py
@pytest.mark.parametrize("client", [clients.CONFLUENT, clients.CONFLUENT_MODERN])
def test_a_consumer_that_is_killed_is_on_the_map_and_in_the_history(
    node: ListenerNode, topics: Topics, tmp_path: Path, client: Client
) -> None:
    topic = topics.make(f"page.{client.protocol}", PARTITIONS)
    url = Told(node, GROUP).url
    with (
        reading(node, topic, tmp_path) as readers,
        chromium() as browser,
        visited(browser, f"{url}#/groups") as page,
    ):
        writer = Writer(node, topic)
        first = readers.add(client)
        page.get_by_role("link", name=GROUP).click(timeout=PATIENCE_MS)
        has_members(page, 1)
        second = readers.add(client)
        has_members(page, 2)
        writer.writes()
        readers.until(lambda: readers.read() >= writer.written, "all is read")
        left = page.locator(".sub")
        expect(left).to_contain_text("· 0 records left to read", timeout=PATIENCE_MS)
        second.kill()
        has_members(page, 1)
        rows = page.get_by_role("region", name="Epochs").locator("tbody tr")
        expired = rows.filter(has_text="session expired").first
        expect(expired).to_contain_text("rdkafka(")
        expired.get_by_role("link").click()
        moved = page.get_by_role("region", name="What moved")
        expect(moved).to_contain_text(re.compile(rf"{re.escape(topic)}-\d\s*rdkafka\("))
        with first.hanging():
            writer.writes()
            expect(left).to_contain_text("· 60 records left to read", timeout=PATIENCE_MS)
        expect(left).to_contain_text("· 0 records left to read", timeout=PATIENCE_MS)
        first.leave()
        expect(page.get_by_role("region", name="Members")).to_contain_text(
            "No member now.", timeout=PATIENCE_MS
        )
    Admin(node).deletes()  # other tests count the offsets of this group, on the same node
