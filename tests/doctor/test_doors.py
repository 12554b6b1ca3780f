"""What `doctor` says of a node's ports, its certificate and the file of its users."""

from pathlib import Path

import pytest

from fairlead.runtime.config.load import load_config
from fairlead.runtime.interfaces.doctor.doors import (
    check_certificates,
    check_store,
    check_users,
    ports_of,
)
from fairlead.runtime.interfaces.doctor.findings import ok
from fairlead.runtime.node.launcher.commands import FAILED, up
from fairlead_tests.certificates import Authority


def test_every_port_of_the_settings_is_looked_at(tmp_path: Path) -> None:
    listeners = "listeners=http://127.0.0.1:1,http://127.0.0.2:2,unix:///tmp/x"
    config = load_config(None, {}, [listeners, "actor.port=3", f"data.dir={tmp_path}"])
    assert [(key, *address) for key, address in ports_of(config)] == [
        ("listeners", "127.0.0.1", 1),
        ("listeners", "127.0.0.2", 2),
        ("actor.port", "127.0.0.1", 3),
    ]


def test_a_certificate_that_is_not_there_is_told(tmp_path: Path) -> None:
    settings = ["listeners=https://127.0.0.1:1", f"ssl.keystore.location={tmp_path}/none.pem"]
    kafka = [
        *("kafka.listeners=SASL_SSL://127.0.0.1:2", "kafka.bootstrap.servers=b:1"),
        f"kafka.ssl.keystore.location={tmp_path}/other.pem",
    ]
    config = load_config(None, {}, [*settings, *kafka, f"data.dir={tmp_path}"])
    findings = [*check_certificates(config)]
    assert {(each.check, each.level.value) for each in findings} == {("certificate", "fail")}
    assert [f"{tmp_path}/none.pem" in findings[0].text, "other.pem" in findings[1].text] == [
        True
    ] * 2
    assert findings[0].mend.endswith(f"-keyout {tmp_path}/none.pem -out {tmp_path}/none.pem")
    assert [*check_certificates(load_config(None, {}, [f"data.dir={tmp_path}"]))] == []


def test_a_certificate_that_fits_its_key_is_told(tmp_path: Path) -> None:
    store = Authority().issue().write(tmp_path / "server.pem")
    settings = ["listeners=https://127.0.0.1:1", f"ssl.keystore.location={store}"]
    (finding,) = check_certificates(load_config(None, {}, [*settings, f"data.dir={tmp_path}"]))
    assert finding == ok(
        "certificate",
        "key and certificate of the listener for REST fit together, and are valid now",
    )


def test_a_file_of_users_is_told_when_it_cannot_be_used(tmp_path: Path) -> None:
    assert [*check_users(tmp_path)] == []
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "access.json"
    path.write_text("{")
    path.chmod(0o600)
    (finding,) = check_users(tmp_path)
    assert (finding.check, finding.level.value) == ("users", "fail")
    assert str(path) in finding.text


def test_a_store_whose_file_is_missing_or_that_no_other_node_reaches_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = ["log.store=kafka", "log.store.bootstrap.servers=b:1", f"data.dir={tmp_path}/data"]
    alone = load_config(None, {}, store)
    assert [(each.check, each.level.value) for each in check_store(alone)] == [("store", "warn")]
    config = load_config(None, {}, [*store, f"log.store.client.config={tmp_path}/none"])
    missing, _ = check_store(config)
    assert (missing.check, missing.level.value) == ("store", "fail")
    assert f"the file of log.store.client.config, {tmp_path}/none, cannot be read" in missing.text
    assert up(config) == FAILED
    assert f"not started: {missing.text}" in capfd.readouterr().err
    assert [*check_store(load_config(None, {}, [f"data.dir={tmp_path}"]))] == []
