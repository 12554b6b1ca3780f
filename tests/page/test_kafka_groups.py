"""Groups of Kafka's clients on the page of a node, whose logs are recorded ones."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from msgspec import structs
from playwright.sync_api import Browser, Locator, Page, expect
from rest.conftest import service_over
from starlette.requests import Request

from fairlead.runtime.interfaces.replies.live.state import PageChange
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands.service import Service
from fairlead.runtime.interfaces.rest.reading.changes import LogChanges
from fairlead.runtime.interfaces.rest.reading.ends import EndOffsets, EndsUnknown, Partition
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.interfaces.rest.watch.page.node import NodeLooks
from fairlead.runtime.interfaces.rest.watch.page.watch import PageWatch
from fairlead.runtime.security.rights import Access, Role
from fairlead_tests.page.browser import (
    NARROW,
    PATIENCE_MS,
    WIDE,
    grave_findings,
    opened,
    overflow,
    visited,
)
from fairlead_tests.page.drawn_node import served
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.rest.group_process import running_group_process
from fairlead_tests.shards.recorded import live
from fairlead_tests.soaks import thinned

pytestmark = pytest.mark.xdist_group("page")


def read_ends(partitions: Collection[Partition]) -> Mapping[Partition, int]:
    return dict.fromkeys(partitions, 1_020)


def refuse_ends(_: Collection[Partition]) -> Mapping[Partition, int]:
    raise EndsUnknown("none answers")


def node_with_group(data_dir: Path) -> Iterator[Service]:
    """Yield a node whose own group has a worker, and whose page was read from its log."""
    with running_group_process() as process, process.serving(data_dir / "groups/connect") as group:
        group.ask("seat", "w1")
        service = service_over(data_dir, FakeGateway(group))
        changes = LogChanges(service.logs)
        changes.subscribe_to_looks(PageWatch(service, NodeLooks(service, lambda: True)).follow)
        changes.look()
        yield service
        service.page.close()
        service.logs.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The groups billing, pay, registry and resets."""
    data_dir = tmp_path_factory.mktemp("recorded")
    live(data_dir)
    for each in node_with_group(data_dir):
        yield replace(each, ends=EndOffsets(read_ends))


@pytest.fixture(scope="module")
def url(recorded: Service) -> Iterator[str]:
    with served(make_app(recorded)) as address:
        yield address


def row(page: Page, region: str, text: str) -> Locator:
    """Return the first row of a table that has some text."""
    table = page.get_by_role("region", name=region, exact=True)
    return table.get_by_role("row").filter(has_text=text).first


@pytest.mark.parametrize(
    ("width", "scheme"),
    thinned([(WIDE, "light"), (WIDE, "dark"), (NARROW, "dark"), (NARROW, "light")], 2),
)
def test_the_views_fit_and_are_for_everybody(
    browser: Browser, url: str, scheme: Literal["dark", "light"], width: int
) -> None:
    one = "#/groups/billing?partition=orders-2"
    with opened(browser, url, scheme=scheme, width=width) as page:
        for place in ("#/groups", one, one.replace("?", "/6?"), f"{one}&as=table", "#/groups/pay"):
            page.goto(url + place)
            page.wait_for_selector("main canvas, main table")
            expect(page.locator("main")).to_contain_text("lag", ignore_case=True)
            assert overflow(page) <= 0
            assert width == NARROW or grave_findings(page) == []


def test_the_list_has_state_members_and_lag_and_its_filters_are_in_the_address(
    browser: Browser, url: str
) -> None:
    with visited(browser, f"{url}#/groups") as page:
        expect(page.locator("h1")).to_have_text("4 Kafka groups")
        billing = page.get_by_role("row").filter(has_text="billing")
        expect(billing).to_have_text(re.compile("consumer.*Stable.*2,019.*1.*4.*6.*uniform", re.S))
        page.get_by_label("Only this type").select_option("classic")
        expect(page.locator("tbody tr")).to_have_count(3)
        page.get_by_label("Find a group by a part of its name").fill("re")
        expect(page.locator("tbody tr")).to_have_count(2)
        assert page.url.endswith("#/groups?type=classic&text=re")
        page.reload()
        expect(page.locator("td.name")).to_have_text([re.compile("registry"), re.compile("resets")])
        expect(page.get_by_label("Only this type")).to_have_value("classic")


def test_one_group_has_a_map_its_members_offsets_and_each_rebalance_with_its_reason(
    browser: Browser, url: str
) -> None:
    with visited(browser, f"{url}#/groups/billing") as page:
        expect(page.locator("h1")).to_have_text("Stable: billing")
        expect(page.locator("canvas")).to_have_attribute(
            "aria-label", "1 member; partitions: 4 assigned"
        )
        expect(page.locator(".sub")).to_contain_text("2,019 records left to read")
        expect(row(page, "Members", "w1")).to_contain_text("w1(X3yFKHtl)stable42,0196consumerweb")
        expect(row(page, "Offsets", "17")).to_contain_text(re.compile(r"w1\(X3yFKHtl\)1710201,003"))
        expect(row(page, "Offsets", "nothing")).to_be_visible()
        epochs = page.get_by_role("region", name="Epochs")
        expect(epochs.locator("tbody tr")).to_have_count(6)
        expect(row(page, "Epochs", "session expired")).to_contain_text("app(1111aaaa)")
        epochs.get_by_role("link", name="6", exact=True).click()
        expect(page.get_by_role("region", name="What moved")).to_contain_text(
            re.compile(r"orders-0\s*app\(1111aaaa\)\s*w1\(X3yFKHtl\)")
        )
        assert page.url.endswith("#/groups/billing/6")


def test_the_keyboard_finds_where_a_partition_has_been(browser: Browser, url: str) -> None:
    with visited(browser, f"{url}#/groups/billing") as page:
        page.get_by_role("button", name="the same as a table").press("Enter")
        partitions = page.get_by_role("region", name="Partitions by member")
        partitions.get_by_role("button", name="orders-2").press("Enter")
        moves = page.get_by_role("region", name="Moves of orders-2")
        expect(moves.locator("tbody tr").first).to_contain_text("member joined w1(X3yFKHtl)")
        assert page.url.endswith("#/groups/billing?as=table&partition=orders-2")
        page.get_by_label("Find by topic, partition or member").fill("nothing")
        expect(page.locator("main")).to_contain_text("No partition or member matches.")
        page.get_by_label("Find by topic, partition or member").fill("orders-3")
        expect(partitions.get_by_role("button")).to_have_text(["orders-3"])
        expect(page.get_by_role("region", name="Offsets").locator("tbody tr")).to_have_count(1)


def test_the_search_finds_a_group_by_a_part_of_its_name(browser: Browser, url: str) -> None:
    with visited(browser, url) as page:
        page.wait_for_selector("h1")
        page.keyboard.press("/")
        page.keyboard.type("BILL")
        expect(page.get_by_role("option")).to_have_text(["billingKafka group"])
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Stable: billing")
        page.keyboard.press("/")
        page.keyboard.type("no such name")
        expect(page.locator("#results")).to_have_text("Nothing has this name.")


def test_a_page_that_nobody_sees_reads_no_groups(
    browser: Browser, recorded: Service, url: str
) -> None:
    feed = recorded.page
    with visited(browser, f"{url}#/groups") as page:
        expect(page.locator("h1")).to_have_text("4 Kafka groups")
        page.evaluate("""() => {
            const [read, reads] = [window.fetch, []];
            Object.assign(window, { isHidden: true, reads });
            Object.defineProperty(document, "hidden", { get: () => window.isHidden });
            window.fetch = (url, ...more) => {
                if (String(url).includes("client-groups")) reads.push(window.isHidden);
                return read(url, ...more);
            };
        }""")
        view = feed.view
        assert view is not None
        change = PageChange(feed.sequence + 1, view.position, view.time_ms)
        feed.publish(view, structs.replace(change, epoch=4711, client_groups=["billing"]))
        expect(page.locator("header.top")).to_contain_text("epoch 4711")
        page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
        page.evaluate("() => { window.isHidden = false; }")
        page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
        page.wait_for_function("() => window.reads.length > 0", timeout=PATIENCE_MS)
        assert page.evaluate("() => window.reads.includes(true)") is False


def test_a_classic_group_has_generations_and_its_leader(browser: Browser, url: str) -> None:
    with visited(browser, f"{url}#/groups/pay") as page:
        expect(page.locator(".sub")).to_contain_text("classic, Stable · generation 5, led by x(1)")
        expect(page.locator("main h2").last).to_contain_text("Generations")
        expect(row(page, "Epochs", "to the classic protocol")).to_contain_text("member left")


def test_a_group_that_is_none_is_said_to_be_none(browser: Browser, url: str) -> None:
    with visited(browser, f"{url}#/groups/<i>nobody", expected="404 (Not Found)") as page:
        expect(page.locator("main")).to_contain_text("there is no group <i>nobody")


def test_why_no_lag_is_known_is_said_beside_the_offsets(
    browser: Browser, recorded: Service
) -> None:
    with served(make_app(replace(recorded, ends=EndOffsets(refuse_ends)))) as address:
        for place in ("#/groups", "#/groups/billing"):
            with visited(browser, address + place) as page:
                expect(page.locator("main")).to_contain_text(
                    "No lag is known: the brokers do not say how far partitions were written"
                )
                expect(page.locator("main")).to_contain_text("billing")


def test_a_caller_who_sees_some_connectors_sees_no_group(
    browser: Browser, recorded: Service
) -> None:
    async def identify(_: Request) -> Principal:
        ends = ("192.0.2.7", 4711), ("127.0.0.1", 8083)
        return Principal(*ends, Access.of(Role.VIEWER, ("orders-*",)), proven="ann")

    with served(make_app(recorded, identify=identify)) as address:
        for place in ("#/groups", "#/groups/billing"):
            with visited(browser, address + place, expected="403 (Forbidden)") as page:
                expect(page.locator("main")).to_contain_text("ann may view only connectors")
                expect(page.locator("main")).not_to_contain_text("uniform")


def test_without_a_listener_it_is_said_how_to_get_one(browser: Browser, tmp_path: Path) -> None:
    for service in node_with_group(tmp_path):
        with served(make_app(service)) as url, visited(browser, f"{url}#/groups") as page:
            expect(page.locator("main")).to_contain_text("fairlead up --set kafka.listeners=")
            assert grave_findings(page) == []
