import logging
import os
import re
import shutil
import ssl
import subprocess
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

from fairlead.runtime.security import followed_files
from fairlead.runtime.security.tls import (
    ServerTls,
    TlsRefusedError,
    TlsSettings,
    subject_of,
    tls_settings,
)
from fairlead_tests.certificates import DAY, Authority, Issued

CA = Authority()
OWN = CA.issue("own")
HOUR = timedelta(hours=1)


def stored(path: Path, content: bytes) -> TlsSettings:
    """Write a key store that only its owner may read."""
    path.touch(mode=0o600)
    path.write_bytes(content)
    return TlsSettings(keystore_location=str(path))


def shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, name: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Connect the two in memory; raises `ssl.SSLError`."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname=name)
    other = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [one, other, one, other, one]
    for each in waiting:
        with suppress(ssl.SSLWantReadError):
            each.do_handshake()
    return one, other


def client(authority: Authority = CA, own: Path | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts an authority."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    if own is not None:
        context.load_cert_chain(own)
    return context


def served(tls: ServerTls) -> str:
    """Return the subject of the certificate that a client sees."""
    one, _ = shake_hands(tls.context(), client())
    certificate = one.getpeercert(binary_form=True)
    assert certificate is not None
    return subject_of(certificate)


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "", "JKS"])
def test_a_key_comes_from_pem_and_pkcs12_whatever_its_type_is_called(
    tmp_path: Path, kind: str
) -> None:
    content = OWN.pem() if kind == "PEM" else OWN.pkcs12("secret")
    settings = stored(tmp_path / "store", content)
    tls = ServerTls(replace(settings, keystore_type=kind, keystore_password="secret"))
    assert served(tls) == "CN=own"
    assert tls.not_after == OWN.chain[0].not_valid_after_utc.timestamp()


def test_a_chain_reaches_the_client_in_its_order_from_each_kind_of_store(tmp_path: Path) -> None:
    middle = Authority("below", Authority("middle", CA))
    issued = middle.issue("own")
    mixed = Issued(issued.key, (issued.chain[0], *reversed(issued.chain[1:])))
    for settings in (
        stored(tmp_path / "pem", issued.pem()),
        replace(stored(tmp_path / "p12", mixed.pkcs12("x")), keystore_password="x"),
    ):
        assert served(ServerTls(settings)) == "CN=own"


def test_an_encrypted_key_opens_with_its_password(tmp_path: Path) -> None:
    settings = stored(tmp_path / "pem", OWN.pem("secret"))
    assert served(ServerTls(replace(settings, key_password="secret"))) == "CN=own"
    with pytest.raises(TlsRefusedError, match=r"is encrypted: set ssl\.key\.password"):
        ServerTls(settings)
    with pytest.raises(TlsRefusedError, match=r"is its password ssl\.key\.password\?"):
        ServerTls(replace(settings, key_password="other"))


@pytest.mark.parametrize("separator", ["\n", " "])
def test_a_key_in_the_settings_serves_also_where_properties_joined_its_lines(
    separator: str,
) -> None:
    key, chain = (
        each.decode().replace("\n", separator) for each in (OWN.key_pem(), OWN.chain_pem())
    )
    settings = tls_settings(
        {"kafka.ssl.keystore.key": key, "kafka.ssl.keystore.certificate.chain": chain},
        "kafka.ssl.",
    )
    assert served(ServerTls(settings)) == "CN=own"
    assert OWN.key_pem().decode()[30:60] not in repr(settings)


def test_no_file_is_written_and_none_stays_open(tmp_path: Path) -> None:
    settings = stored(tmp_path / "pem", OWN.pem())
    before = len([*Path("/proc/self/fd").iterdir()])
    ServerTls(settings)
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    assert [*tmp_path.iterdir()] == [tmp_path / "pem"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\xfe\xed\xfe\xed" + bytes(40), r"keytool -importkeystore .* -deststoretype PKCS12"),
        (os.urandom(200), "cannot be opened as a PKCS12 store"),
        (OWN.pem()[:-60], "has no whole certificate"),
        (OWN.pem()[:120], "has no private key"),
        (OWN.key_pem(), "has no whole certificate"),
        (OWN.chain_pem(), "has no private key"),
        (OWN.key_pem()[:60] + b"!" + OWN.key_pem()[61:] + OWN.chain_pem(), "cannot be read"),
        (OWN.key_pem() + CA.issue("other").chain_pem(), r"do not belong together"),
        (CA.issue(ends=-HOUR).pem(), r"expired at .* UTC: renew it"),
        (CA.issue(begins=HOUR).pem(), r"valid only from .* check the clock of this host"),
        (OWN.pkcs12("another"), r"is its password ssl\.keystore\.password"),
    ],
    ids=[
        "empty",
        "jks",
        "garbage",
        "half certificate",
        "half key",
        "key only",
        "certificate only",
        "damaged key",
        "other key",
        "expired",
        "not yet",
        "other password",
    ],
)
def test_a_store_that_cannot_serve_is_refused_in_a_sentence(
    tmp_path: Path, content: bytes, why: str
) -> None:
    settings = stored(tmp_path / "store", content)
    with pytest.raises(TlsRefusedError, match=why):
        ServerTls(replace(settings, keystore_password="secret"))


@pytest.mark.parametrize(
    ("mode", "is_refused"), [(0o600, False), (0o400, False), (0o604, True), (0o640, True)]
)
def test_a_key_that_others_may_read_is_refused(
    tmp_path: Path, mode: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_files, "ROOT", -1)  # tests may run as root
    settings = stored(tmp_path / "pem", OWN.pem())
    (tmp_path / "pem").chmod(mode)
    if is_refused:
        with pytest.raises(TlsRefusedError, match=rf"mode {mode:o}\): chmod 600 "):
            ServerTls(settings)
    else:
        assert served(ServerTls(settings)) == "CN=own"


def test_a_key_that_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("pipe", "is no file"), ("none", "no such file"), (".", "Is a directory")):
        with pytest.raises(TlsRefusedError, match=why):
            ServerTls(TlsSettings(keystore_location=str(tmp_path / name)))
    with pytest.raises(TlsRefusedError, match=r"set ssl\.keystore\.location"):
        ServerTls(TlsSettings())


def test_a_changed_file_gives_new_connections_its_certificate_and_a_bad_one_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "pem"
    tls = ServerTls(stored(path, OWN.pem()))
    first = tls.context()
    assert tls.context() is first
    for bad in (
        OWN.pem()[:-80],
        CA.issue(ends=-HOUR).pem(),
        OWN.key_pem() + CA.issue().pem()[300:],
    ):
        path.write_bytes(bad)
        assert [tls.context() is first for _ in range(3)] == [True] * 3
    path.unlink()
    assert tls.context() is first
    new = CA.issue("new", ends=2 * DAY)
    new.write(path)
    assert served(tls) == "CN=new"
    assert tls.not_after == new.chain[0].not_valid_after_utc.timestamp()
    levels = [each.levelname for each in caplog.records]
    assert levels == ["WARNING"] * 4 + ["INFO"]
    assert "stays in force until it changes again" in caplog.messages[0]


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_clients_are_asked_for_certificates_of_the_trusted_authorities(
    tmp_path: Path, kind: str
) -> None:
    trust = tmp_path / "trust"
    if kind == "PEM":
        trust.write_bytes(CA.pem)
    else:
        entry = pkcs12.PKCS12Certificate(CA.certificate, b"ca")
        trust.write_bytes(
            pkcs12.serialize_key_and_certificates(None, None, None, [entry], NoEncryption())
        )
    settings = replace(
        stored(tmp_path / "pem", OWN.pem()), truststore_location=str(trust), truststore_type=kind
    )
    ann = CA.issue("ann", organization="acme").write(tmp_path / "ann")
    other = Authority().issue("eve").write(tmp_path / "eve")
    for wanted, needs in (("requested", False), ("required", True)):
        server = ServerTls(replace(settings, client_auth=wanted)).context()
        _, at_server = shake_hands(server, client(own=ann))
        certificate = at_server.getpeercert(binary_form=True)
        assert certificate is not None
        assert subject_of(certificate) == "CN=ann,O=acme"
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            shake_hands(server, client(own=other))
        if needs:
            with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
                shake_hands(server, client())
        else:
            assert shake_hands(server, client())[1].getpeercert() is None


def test_one_certificate_may_be_trusted_without_its_authority(tmp_path: Path) -> None:
    ann = CA.issue("ann")
    settings = replace(
        stored(tmp_path / "pem", OWN.pem()),
        truststore_certificates=ann.chain_pem().decode().replace("\n", " "),
        client_auth="required",
    )
    server = ServerTls(settings).context()
    shake_hands(server, client(own=ann.write(tmp_path / "ann")))
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands(server, client(own=CA.issue("bob").write(tmp_path / "bob")))


@pytest.mark.parametrize(
    ("given", "version", "cipher"),
    [
        ({}, "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
        ({"enabled_protocols": "TLSv1.2"}, "TLSv1.2", ""),
        ({"protocol": "TLSv1.2"}, "TLSv1.2", ""),
        (
            {"cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
            "TLSv1.2",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            {"cipher_suites": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
            "TLSv1.2",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        (
            {"cipher_suites": "ECDHE-ECDSA-AES256-SHA384"},
            "TLSv1.2",
            "ECDHE-ECDSA-AES256-SHA384",
        ),
        ({"cipher_suites": "TLS_AES_256_GCM_SHA384"}, "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
    ],
)
def test_versions_and_cipher_suites_are_those_of_the_settings(
    tmp_path: Path, given: dict[str, str], version: str, cipher: str
) -> None:
    settings = replace(stored(tmp_path / "pem", OWN.pem()), **given)
    one, _ = shake_hands(ServerTls(settings).context(), client())
    agreed = one.cipher()
    assert agreed is not None
    assert (one.version(), agreed[0]) == (version, cipher or agreed[0])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"enabled_protocols": "TLSv1.1,TLSv1.2"}, "TLSv1.1 is no protocol that is safe"),
        ({"protocol": "SSL"}, "SSL is no protocol that is safe"),
        ({"protocol": "TLSv1.2", "enabled_protocols": "TLSv1.3"}, "leave no version of TLS"),
        ({"cipher_suites": "TLS_RSA_WITH_NOTHING"}, "has no suite that OpenSSL knows"),
        ({"client_auth": "maybe"}, "write none, requested, required"),
        ({"client_auth": "required"}, r"needs ssl\.truststore\.location"),
        ({"keystore_key": "x"}, "both give a key"),
        ({"keystore_type": "BKS"}, "BKS is not supported: write PEM or PKCS12"),
        ({"keystore_type": "PKCS12"}, r"is a PEM file: set ssl\.keystore\.type=PEM"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_in_a_sentence(
    tmp_path: Path, given: dict[str, str], why: str
) -> None:
    settings = replace(stored(tmp_path / "pem", OWN.pem()), **given)
    with pytest.raises(TlsRefusedError, match=why):
        ServerTls(settings)


@pytest.mark.skipif(shutil.which("keytool") is None, reason="needs keytool of a JDK")
def test_stores_of_keytool_serve_and_its_remedy_for_jks_works(tmp_path: Path) -> None:
    jks = tmp_path / "own.jks"
    options = [
        "-storepass",
        "secret1",
        "-keypass",
        "secret1",
        "-alias",
        "own",
        "-dname",
        "CN=own",
        "-keyalg",
        "EC",
    ]
    subprocess.run(
        ["keytool", "-genkeypair", "-keystore", jks, "-storetype", "JKS", *options],
        check=True,
        capture_output=True,
    )
    jks.chmod(0o600)
    settings = TlsSettings(keystore_location=str(jks), keystore_password="secret1")
    with pytest.raises(TlsRefusedError) as refused:
        ServerTls(settings)
    command = re.search(r"keytool .* PKCS12", str(refused.value))
    assert command is not None
    passwords = ["-srcstorepass", "secret1", "-deststorepass", "secret1"]
    subprocess.run([*command[0].split(), *passwords], check=True, capture_output=True)
    remedy = tmp_path / "own.p12"
    remedy.chmod(0o600)
    tls = ServerTls(replace(settings, keystore_location=str(remedy), keystore_type="PKCS12"))
    assert tls.not_after > 0
