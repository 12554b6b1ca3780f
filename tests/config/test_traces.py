"""Where traces are sent: settings that are refused, and what becomes of those that are not."""

from pathlib import Path

import pytest
from config.conftest import Refused

from fairlead.runtime.config import contradictions
from fairlead.runtime.config.load import load_config
from fairlead.runtime.config.references.resolving import ReferenceBroken
from fairlead.runtime.config.references.trace_target import TraceTarget, trace_target
from fairlead.runtime.node.launcher.rest_process import prepare_rest

SECRET = "hunter-2"


def target(headers: str, endpoint: str = "http://c:4318", own: Path = Path("/own")) -> TraceTarget:
    words = [f"traces.endpoint={endpoint}", f"traces.headers={headers}"]
    config = load_config(environ={}, overrides=words)
    return trace_target(config.trace_values(), own)


def test_a_node_sends_no_traces_unless_it_is_told_to_whom() -> None:
    assert b'"traces": null' in prepare_rest(load_config(environ={})).brief


def test_a_collector_has_an_url_headers_and_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", f" Bearer {SECRET},x\n")
    collector = target("Authorization=${env:TOKEN}, x-tenant=a")
    assert collector == TraceTarget(
        "http://c:4318/v1/traces",
        {"Authorization": f"Bearer {SECRET},x", "x-tenant": "a"},
        "fairlead",
    )
    assert SECRET not in repr(collector)
    assert target("", "https://c/own/path").endpoint == "https://c/own/path"


@pytest.mark.parametrize("value", ["a\nb", "ü"])
def test_a_value_that_no_header_can_have_is_refused_without_being_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", SECRET + value)
    with pytest.raises(ReferenceBroken, match="the value of k is none that a header can") as error:
        target("k=${env:TOKEN}")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("override", "why"),
    [
        ("traces.endpoint=c:4318", "it is no http or https URL"),
        ("traces.endpoint=http://me:hunter-2@c:4318", "a password belongs into traces.headers"),
        ("traces.headers=hunter-2", "a header is not NAME=VALUE"),
        ("traces.headers=a b=hunter-2", "a header is not NAME=VALUE"),
        ("traces.service.name= ", "it is blank or cannot be printed"),
    ],
)
def test_what_leads_to_no_collector_is_refused(override: str, why: str, refused: Refused) -> None:
    (told,) = refused(override)
    assert why in told
    assert SECRET not in told


def test_a_reference_that_leads_nowhere_is_told_with_its_header() -> None:
    with pytest.raises(ReferenceBroken, match=r"^traces.headers: k: \$\{env:NO_SUCH\} cannot be"):
        target("k=${env:NO_SUCH}")


def test_without_its_packages_the_command_that_installs_them_is_told(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contradictions, "has_exporter", lambda: False)
    (told,) = refused("traces.endpoint=http://c:4318")
    assert told.startswith(
        "traces.endpoint = http://c:4318 needs packages that are not installed:"
        " pip install 'fairlead-connect[otel]'"
    )
