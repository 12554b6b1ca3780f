"""What every answer gets: headers of the settings, gzip, what pages of other origins need."""

import gzip
import time
from email.utils import parsedate_to_datetime

import pytest
from rest.conftest import RestApi

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.middleware.answers import AnswerSettings
from fairlead.runtime.security.rest_answers import HeaderRule, check_origin, parse_header_rules
from fairlead_tests.rest.client import Client

UI = "https://ui.example"


def client_with(api: RestApi, origins: str = "", methods: str = "", headers: str = "") -> Client:
    return Client(make_app(api.service, answers=AnswerSettings.parse(origins, methods, headers)))


def test_rules_for_headers_are_written_as_in_connect() -> None:
    text = (
        'add X-XSS-Protection: 1; mode=block, "set Cache-Control: no-cache, no-store",'
        " setDate Expires: 31540000000,addDate Last-Modified: 0"
    )
    assert parse_header_rules(text) == (
        HeaderRule("add", "X-XSS-Protection", "1; mode=block"),
        HeaderRule("set", "Cache-Control", "no-cache, no-store"),
        HeaderRule("setDate", "Expires", "31540000000"),
        HeaderRule("addDate", "Last-Modified", "0"),
    )
    assert parse_header_rules("") == ()


@pytest.mark.parametrize(
    "text",
    [
        *("X-A: b", "put X-A: b", "set X-A", "set X A: b", "set : b", 'set "X: a'),
        *("setDate Expires: soon", "set X-A: b\r\nX-C: d", "set X-A: ü", '"set X: a" b'),
    ],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|is no|quote"):
        parse_header_rules(text)


def test_headers_of_the_settings_are_in_every_answer_also_in_a_refusal(api: RestApi) -> None:
    rules = "set Content-Type: x/y, add X-A: 1, add X-A: 2, setDate Expires: 60000"
    client = client_with(api, headers=rules)
    for answer in (client.get("/connectors"), client.get("/", headers={"host": "evil.example"})):
        assert answer.headers["content-type"] == "x/y"
        assert answer.headers.get_list("x-a") == ["1", "2"]
        expires = parsedate_to_datetime(answer.headers["expires"]).timestamp()
        assert 0 < expires - time.time() < 120


def test_large_answers_are_compressed_for_those_who_take_that(api: RestApi) -> None:
    client = client_with(api)
    for path in ("/metrics", "/openapi.json"):
        plain = client.get(path, headers={"accept-encoding": "identity"})
        packed = client.get(path, headers={"accept-encoding": "gzip"})
        assert (plain.headers.get("content-encoding"), len(plain.content) > 4096) == (None, True)
        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) < len(gzip.compress(plain.content)) * 2
    small = client.get("/connectors", headers={"accept-encoding": "gzip"})
    assert small.headers.get("content-encoding") is None


@pytest.mark.parametrize("text", [UI, "http://10.0.0.1:3000", "https://*.example", "*"])
def test_an_origin_is_a_scheme_and_a_host(text: str) -> None:
    assert check_origin(text) == text


@pytest.mark.parametrize("text", ["ui.example", f"{UI}/", "https://a b", "https://u@h", "https://"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an origin"):
        check_origin(text)


def preflight(client: Client, origin: str, method: str) -> tuple[int, str | None]:
    headers = {"origin": origin, "access-control-request-method": method}
    told = client.request("OPTIONS", "/connectors", headers=headers)
    return told.status_code, told.headers.get("access-control-allow-origin")


def test_pages_of_a_named_origin_are_let_in_with_its_methods(api: RestApi) -> None:
    client = client_with(api, f"{UI},https://*.b.example", "GET,PUT")
    for origin in (UI, "https://x.b.example"):
        told = client.get("/connectors", headers={"origin": origin})
        assert (told.status_code, told.headers["access-control-allow-origin"]) == (200, origin)
        assert preflight(client, origin, "PUT") == (200, origin)
        assert preflight(client, origin, "DELETE")[0] == 400
        assert client.put("/connectors/x/pause", headers={"origin": origin}).status_code == 404
    for origin in ("https://b.example", "http://ui.example", f"{UI}.evil.example", "null"):
        assert client.get("/connectors", headers={"origin": origin}).status_code == 403
        assert preflight(client, origin, "PUT") == (403, None)


def test_with_any_origin_pages_may_read_and_change_nothing(api: RestApi) -> None:
    client = client_with(api, "*", "GET,POST,PUT")
    foreign = {"origin": "https://evil.example"}
    told = client.get("/connectors", headers=foreign)
    assert (told.status_code, told.headers["access-control-allow-origin"]) == (200, "*")
    refused = client.put("/connectors/x/pause", headers=foreign)
    assert refused.status_code == 403
    assert "access.control.allow.origin" in refused.text


def test_without_the_setting_no_page_of_another_origin_is_let_in(api: RestApi) -> None:
    client = client_with(api)
    assert client.get("/connectors", headers={"origin": UI}).status_code == 403
    told = client.get("/connectors")
    assert [each for each in told.headers if each.startswith("access-control")] == []
