"""A page that stays open while all processes of its node are killed, and it starts again."""

from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, expect

from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.monitoring.watched_node import WatchedNode
from fairlead_tests.page.browser import visited

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
SETTINGS = ("engine=noop", "workers=2", "heartbeat.interval.ms=300")
WATCH = """async () => {
  const { store } = await import("/ui/modules/store.js");
  window.isKept = true;
  window.mixed = [];
  store.subscribe(() => {
    const { epoch, epochs, connectors, workers, figures } = store.state;
    const members = workers.filter((each) => each.member_id).length;
    const shapes = Object.values(store.sums).reduce((sum, each) => sum + each, 0);
    const isOne =
      epoch === epochs[0].epoch &&
      members === figures.workers &&
      shapes === Object.keys(connectors).length;
    if (!isOne) window.mixed.push(JSON.stringify([epoch, epochs[0], members, figures, store.sums]));
  });
}"""
"""Looks at each state that is shown, whether all of it is of one moment."""


def test_a_page_whose_node_is_killed_says_so_and_goes_on_by_itself(
    tmp_path: Path, browser: Browser
) -> None:
    with without_remains() as nodes:
        home = WatchedNode(tmp_path / "home", nodes, SETTINGS)
        home.up()
        home.node.put("numbers", 3)
        home.node.settles("w1", "w2")
        with visited(browser, f"{home.url}/", expected="net::ERR_") as page:
            live = page.get_by_role("status").filter(has_text="live")
            expect(live).to_be_visible()
            expect(page.locator("h1")).to_have_text("The connector is fine")
            page.evaluate(WATCH)
            killed = home.node.processes()
            for each in killed:
                each.kill()
            expect(page.get_by_role("status").filter(has_text="no answer since")).to_be_visible()
            expect(page.locator("td.name")).to_have_text(["runs: numbers"])
            psutil.wait_procs(killed, timeout=60)
            home.up()
            home.node.put("letters", 2)
            expect(live).to_be_visible()
            expect(page.locator("td.name")).to_contain_text(["letters", "numbers"])
            home.node.settles("w1", "w2")
            expect(page.locator("h1")).to_have_text("All 2 connectors are fine")
            assert page.evaluate("[window.isKept, window.mixed]") == [True, []]
