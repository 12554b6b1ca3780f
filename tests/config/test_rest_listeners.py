"""Where REST may listen: what is refused, and what a listener beyond loopback needs."""

from pathlib import Path

import pytest

from fairlead.runtime.config.load import load_config, load_with_sources
from fairlead.runtime.config.references.rest_brief import RestBrief
from fairlead.runtime.config.sources import ConfigError
from fairlead.runtime.node.launcher.rest_process import prepare_rest
from fairlead.runtime.security.tls import TlsSettings, tls_settings

STORE = "ssl.keystore.location=/etc/fairlead/server.pem"
WIDE = "listeners=https://0.0.0.0:8443"
TOKEN = "rest.authentication=token"


def refusal(*settings: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load_config(None, {}, settings)
    (problem,) = refused.value.problems
    return problem


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("listeners=",),
        ("listeners=http://127.0.0.1:1, https://localhost:2, unix:///run/rest.sock", STORE),
        (WIDE, STORE, TOKEN),
        (WIDE, STORE, "rest.authentication=none,basic"),
        (WIDE, "ssl.keystore.key=x", TOKEN),
        (WIDE, STORE, "rest.authentication=mtls", "ssl.client.auth=requested"),
        ("listeners=http://0.0.0.0:8083", "rest.plaintext=anywhere", TOKEN),
        ("listeners=http://127.0.0.1:1", "admin.listeners=http://127.0.0.1:2"),
        ("admin.listeners=",),
    ],
)
def test_a_node_may_listen_there(settings: tuple[str, ...]) -> None:
    load_config(None, {}, settings)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (("listeners=http://0.0.0.0:8083", TOKEN), "use https:// (docs/operating/doors.md)"),
        (("admin.listeners=http://10.0.0.1:80", TOKEN), "admin.listeners has http://10.0.0.1:80"),
        (("listeners=http://0.0.0.0:80", "rest.plaintext=anywhere"), "every caller there could do"),
        ((WIDE, STORE), "every caller there could do everything: set rest.authentication"),
        ((WIDE, TOKEN), "which needs a certificate: set ssl.keystore."),
        (
            (WIDE, STORE, "rest.authentication=mtls"),
            "set ssl.client.auth = requested (or required) and ssl.truststore.location",
        ),
        (("listeners=https://:1", "rest.plaintext=anywhere"), "which needs a certificate"),
        (("rest.authentication=mtls",), "no listener is https://, by which alone clients send"),
        (("admin.listeners=http://:9", "actor.port=9"), "name the same port, 9"),
    ],
)
def test_a_listener_that_others_reach_needs_encryption_and_authentication(
    settings: tuple[str, ...], why: str
) -> None:
    assert why in refusal(*settings)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("listeners=http://:1,http://127.0.0.1:1", "a listener occurs twice"),
        ("access.control.allow.origin=ui.example", "'ui.example' is not an origin"),
        ("access.control.allow.methods=GET,EAT", "'EAT' is not a method"),
        ("response.http.headers.config=put X: y", "'put X: y' is not ACTION NAME: VALUE"),
        ("ssl.client.auth=maybe", "allowed is none, requested or required"),
    ],
)
def test_a_bad_setting_is_refused_with_what_is_allowed(setting: str, why: str) -> None:
    assert why in refusal(setting)


def tls_of(*settings: str, file: Path | None = None) -> TlsSettings:
    return tls_settings(load_with_sources(file, {}, settings).config.tls_values())


def test_settings_of_https_alone_come_before_the_others_of_ssl_all_or_none_as_in_connect() -> None:
    settings = ("ssl.keystore.location=/a", "ssl.keystore.password=p")
    own = "listeners.https.ssl.keystore.location=/b"
    assert tls_of(*settings) == TlsSettings(
        keystore_location="/a", keystore_password="p", client_auth="none"
    )
    assert tls_of(*settings, own) == TlsSettings(keystore_location="/b", client_auth="none")
    assert refusal("listeners.https.ssl.keystore.locatoin=/b") == (
        "unknown setting 'listeners.https.ssl.keystore.locatoin' (from the command line): did you"
        " mean ssl.keystore.location?"
    )


def test_a_key_may_have_lines_and_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "node.properties"
    file.write_text("ssl.keystore.key=-----BEGIN X-----\\nAA==\\n-----END X-----\n")
    assert tls_of(file=file).keystore_key == "-----BEGIN X-----\nAA==\n-----END X-----"
    config = load_config(file, {}, ["ssl.key.password=hunter2"])
    assert [each for each in ("AA==", "hunter2") if each in repr(config)] == []
    assert "control characters" in refusal("ssl.keystore.location=/a\nb")


def test_passwords_reach_the_rest_process_by_its_stdin_alone() -> None:
    secrets = ("ssl.key.password=hunter1", "ssl.keystore.password=hunter2")
    start = prepare_rest(load_config(None, {}, ["listeners=https://:0", STORE, *secrets]))
    assert "hunter" not in " ".join(start.command)
    brief = RestBrief.decode(start.brief)
    for values in (brief.tls or {}, brief.plugins["properties"]):
        found = sorted(each for each in values.values() if "hunter" in each)
        assert found == ["hunter1", "hunter2"]
    assert start.brief.count(b"hunter") == 4
    plain = prepare_rest(load_config(None, {}, [STORE, *secrets]))
    assert RestBrief.decode(plain.brief).tls is None


def test_each_port_0_is_one_free_port_also_where_admin_shares_it() -> None:
    listeners = "http://127.0.0.1:0,unix:///run/x"
    start = prepare_rest(
        load_config(None, {}, [f"listeners={listeners}", f"admin.listeners={listeners}"])
    )
    own, first, second = start.listeners
    assert (own.path.endswith("/run/rest.sock"), second.path) == (True, "/run/x")
    assert start.brief.count(first.url.encode()) == 1
    assert first.port > 0
