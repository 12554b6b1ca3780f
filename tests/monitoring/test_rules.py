"""The alerts say what the program has, and Prometheus's own tools find nothing wrong with them."""

import re
import shutil
import subprocess

import pytest
from pages.reference import metrics
from pages.test_what_pages_name import check_verb, words_of

from fairlead_tests.monitoring.rules import (
    CASES,
    RULES,
    SHIPPED,
    Alert,
    alerts,
    read_yaml,
    recorded,
)
from fairlead_tests.pages import HOUSE

by_alert = pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)


def run(tool: str, *words: str) -> str:
    """Run a tool on the shipped files, and return what it wrote; it finds nothing wrong."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not here: tests/servers/install-prometheus installs it")
    ended = subprocess.run(
        [tool, *words], cwd=SHIPPED, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_promtool_finds_nothing_wrong_with_the_configuration_and_the_rules() -> None:
    run("promtool", "check", "config", "--lint-fatal", "prometheus.yml")
    run("promtool", "check", "rules", "--lint-fatal", RULES.name)


def test_alertmanager_takes_its_configuration() -> None:
    run("amtool", "check-config", "alertmanager.yml")


def test_each_alert_fires_and_ends_and_is_silent_about_near_misses() -> None:
    run("promtool", "test", "rules", CASES.name)


def test_each_alert_is_tested_to_fire_and_to_end() -> None:
    fired: set[str] = set()
    for case in read_yaml(CASES)["tests"]:
        asked = [(each["exp_samples"], each["expr"]) for each in case["promql_expr_test"]]
        assert {query for _, query in asked} == {'ALERTS{alertstate="firing"}'}
        (before, *_, after) = (samples for samples, _ in asked)
        assert (before, after) == ([], []), case["name"]
        fired |= {
            name
            for samples, _ in asked
            for each in samples
            for name in re.findall(r'alertname="(\w+)"', each["labels"])
        }
    assert fired == {each.name for each in alerts()}


@by_alert
def test_an_alert_has_a_severity_and_says_what_to_do_on_its_page(alert: Alert) -> None:
    assert alert.severity in {"page", "ticket"}
    assert {*alert.texts} == {"summary", "description", "runbook_url"}
    page, _, heading = alert.texts["runbook_url"].partition("#")
    section = (HOUSE / page).read_text().partition(f"# {alert.name}\n\n")[2]
    assert heading == alert.name.lower()
    assert section.startswith(f"{alert.severity.title()}. ")


def test_the_pages_have_no_alert_that_is_gone() -> None:
    pages = [HOUSE / "docs" / "operating" / name for name in ("alerts.md", "connector-alerts.md")]
    text = "\n".join(each.read_text() for each in pages)
    headings = re.findall(r"^##+ (Fairlead\w+)$", text, re.MULTILINE)
    assert sorted(headings) == sorted(each.name for each in alerts())


@by_alert
def test_an_alert_asks_for_metrics_that_are_there(alert: Alert) -> None:
    named = set(re.findall(r"[\w:]*fairlead_\w+(?::\w+)*", alert.query))
    known = {*metrics(), *(f"{each}_bucket" for each in metrics()), *recorded()}
    assert named - known == set()


@by_alert
def test_the_commands_of_an_alert_are_ones(alert: Alert) -> None:
    text = re.sub(r"\{\{.*?\}\}", "flights", " ".join(alert.texts.values()))
    for command in re.findall(r"`(fairlead .*?)`", text):
        check_verb(words_of(command)[1:])
