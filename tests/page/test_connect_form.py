"""The form of a connector whose class is a plugin of Kafka Connect, before a drawn node."""

import json
from collections.abc import Iterator, Sequence

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from fairlead_tests.page.browser import grave_findings, opened
from fairlead_tests.page.drawn_node import DrawnNode, served

pytestmark = pytest.mark.xdist_group("page")
OWN = "fairlead.runtime.pipeline.connectors.spark_pipeline.SparkPipeline"
FOREIGN = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def key(name: str, *, required: bool = False) -> dict[str, object]:
    """Return the definition of a key as Connect has it, without a group."""
    return {
        "name": name,
        "type": "STRING",
        "required": required,
        "default_value": None,
        "importance": "HIGH",
        "documentation": f"What {name} is.",
        "group": None,
        "order_in_group": -1,
        "width": "NONE",
        "display_name": name,
        "dependents": [],
    }


KEYS = [key("connector.class", required=True), key("file"), key("topic", required=True)]


def validated(config: dict[str, str]) -> dict[str, object]:
    """Return a validation that refuses one file; a key of Connect's own has no value."""
    configs: list[dict[str, object]] = [{"definition": key("unused"), "value": None}]
    for each in KEYS:
        name = str(each["name"])
        errors: Sequence[str] = ["It is not there."] if config.get(name) == "/gone" else ()
        value: dict[str, object] = {"name": name, "value": config.get(name), "visible": True}
        value["recommended_values"] = []
        configs.append({"definition": each, "value": {**value, "errors": errors}})
    return {"name": FOREIGN, "error_count": 0, "groups": [], "configs": configs}


def answer(route: Route, *, may_validate: bool) -> None:
    if route.request.method == "PUT" and not may_validate:
        told = "a plugin of Kafka Connect may connect to where a config leads"
        route.fulfill(status=403, json={"error_code": 403, "message": told})
    elif route.request.method == "PUT":
        route.fulfill(json=validated(json.loads(route.request.post_data or "{}")))
    elif "/config" in route.request.url:
        route.fulfill(json=KEYS)
    else:
        plugins = [{"class": FOREIGN, "type": "source", "version": "4.3.0"}]
        own = {"class": OWN, "type": "sink", "version": "1", "delivery": "exactly once"}
        route.fulfill(json=[own, *plugins])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(DrawnNode(connectors=1, tasks=1, workers=1).app()) as address:
        yield address


def choose(page: Page, url: str, *, may_validate: bool = True) -> None:
    """Open the form, and choose the class of Connect by its text."""
    page.route("**/connector-plugins**", lambda it: answer(it, may_validate=may_validate))
    page.route("**/connector-plugins/**", lambda it: answer(it, may_validate=may_validate))
    page.goto(f"{url}#/new")
    page.get_by_label("The config as text").fill(f"connector.class: {FOREIGN}\n")
    expect(page.get_by_label("Rows go to")).to_be_visible()


def test_keys_have_their_help_and_errors_as_one_types(browser: Browser, url: str) -> None:
    with opened(browser, url) as page:
        choose(page, url)
        offered = page.locator("datalist[id='key-connector.class-list'] option")
        expect(offered).to_have_count(2)
        page.get_by_label("topic").fill("lines")
        expect(page.get_by_text("What topic is.")).to_be_visible()
        page.get_by_label("The config as text").fill(
            f"connector.class: {FOREIGN}\ntopic: lines\nfile: /gone\n"
        )
        expect(page.get_by_text("It is not there.")).to_be_visible()
        expect(page.get_by_role("button", name="Look at ten rows")).to_have_count(0)
        assert grave_findings(page) == []


def test_a_plugin_begins_with_kafka_and_may_have_a_sink_instead(browser: Browser, url: str) -> None:
    with opened(browser, url) as page:
        choose(page, url)
        page.goto(f"{url}#/overview")
        page.goto(f"{url}#/new")
        text = page.get_by_label("The config as text")
        expect(text).to_have_value(
            "connector.class: SparkPipeline\nsource.type: files\nsink.type: files\n"
        )
        page.get_by_label("connector.class").fill("FileStreamSource")
        expect(text).to_have_value("connector.class: FileStreamSource\n")
        page.get_by_label("Rows go to").select_option("files")
        expect(text).to_have_value("connector.class: FileStreamSource\nsink.type: files\n")
        more = "connector.class: FileStreamSource\nsink.type: files\nsink.path: /out\ntopic: t\n"
        text.fill(more)
        page.get_by_label("Rows go to").select_option(label="topics of Kafka, as in Kafka Connect")
        expect(text).to_have_value("connector.class: FileStreamSource\ntopic: t\n")
        page.get_by_label("Rows go to").select_option(label="a sink connector of Kafka Connect's")
        expect(text).to_have_value(
            "connector.class: FileStreamSource\ntopic: t\nsink.type: connect\n"
        )


def test_who_may_not_have_it_validated_sees_the_keys_and_the_reason(
    browser: Browser, url: str
) -> None:
    with opened(browser, url) as page:
        choose(page, url, may_validate=False)
        status = page.get_by_role("status").filter(has_text="may connect to where a config leads")
        expect(status).to_be_visible()
        expect(page.get_by_label("topic")).to_be_visible()
