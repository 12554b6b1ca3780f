import re
from pathlib import Path

import pytest
from rest.conftest import KEY, RestApi
from starlette.requests import Request

from fairlead.actors.messages.orders import PutConnector
from fairlead.events.log.reader import LogReader
from fairlead.runtime.config.secrets import CannotUnseal, Vault, hide_secrets, mask
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.interfaces.rest.validation.stand_ins import StandInVault
from fairlead.runtime.security.rights import Access, Role
from fairlead_tests.rest.client import Client

SECRET = "hunter2-hunter2"
CONFIG = {"connector.class": "Locked", "password": SECRET, "extra.api_key": SECRET, "name": "a"}
SHOWN = {**CONFIG, "password": "********", "extra.api_key": "********"}
VAULT = Vault(KEY)
HIDDEN = "Invalid value ******** for configuration"


def sent(api: RestApi) -> dict[str, str]:
    """The last config that was ordered, with its secrets open."""
    command = api.gateway.sent[-1]
    assert isinstance(command, PutConnector)
    assert SECRET not in repr(command)
    return VAULT.open(command.connector, command.config).config


def test_a_secret_leaves_the_process_sealed_and_is_never_shown(api: RestApi) -> None:
    client = api.client
    created = client.post("/connectors", json={"name": "a", "config": CONFIG})
    assert created.json()["config"] == SHOWN
    assert sent(api) == CONFIG
    paths = ("", "/config", "/status", "/tasks", "?expand=info")
    pages = [client.get(f"/connectors/a{path}").text for path in paths]
    pages += [client.get("/connectors?expand=info").text, client.get("/groups/connect").text]
    assert not any(SECRET in page or "sealed" in page for page in pages)
    assert client.get("/connectors/a/config").json() == SHOWN


@pytest.mark.parametrize(
    "key",
    ["pass", "db.pass", "sink.connection.pswd", "my_pw", "Credentials", "x.clientKey"],
)
def test_a_key_that_nearly_says_password_is_sealed_as_one(api: RestApi, key: str) -> None:
    config = {"connector.class": "Locked", "password": "another", key: SECRET, "name": "a"}
    created = api.client.post("/connectors", json={"name": "a", "config": config})
    assert created.json()["config"] == {**config, "password": "********", key: "********"}
    assert sent(api) == config


def test_a_password_that_is_given_twice_is_sealed_in_both_places(api: RestApi) -> None:
    config = {**CONFIG, "note": SECRET, "more": f"say {SECRET}!", "other": "hunter"}
    created = api.client.post("/connectors", json={"name": "a", "config": config})
    assert created.json()["config"] == {
        **SHOWN,
        "note": "********",
        "more": "********",
        "other": "hunter",
    }
    assert sent(api) == config
    pages = [api.client.get(f"/connectors/a{path}").text for path in ("", "/config", "/status")]
    assert not any(SECRET in page for page in pages)


def test_a_password_within_a_secret_or_of_the_config_before_is_sealed_elsewhere_too(
    api: RestApi,
) -> None:
    login = f'org.x.PlainLoginModule,username="u",password="{SECRET}";'
    config = {**CONFIG, "password": login, "extra.api_key": "another", "other.label": SECRET}
    created = api.client.post("/connectors", json={"name": "a", "config": config})
    assert created.json()["config"] == {**SHOWN, "other.label": "********"}
    config = {**CONFIG, "password": "another-one", "extra.api_key": SECRET}
    api.client.put("/connectors/a/config", json=config)
    later = {**config, "extra.api_key": "no longer", "note": f"it was {SECRET}"}
    assert SECRET not in api.client.put("/connectors/a/config/diff", json=later).text
    assert api.client.put("/connectors/a/config", json=later).json()["config"] == {
        **SHOWN,
        "note": "********",
    }


def test_secrets_are_limited_together(api: RestApi) -> None:
    many = {f"secret.{number}": "x" * 1_000 for number in range(40)}
    reply = api.client.post("/connectors", json={"name": "a", "config": {**CONFIG, **many}})
    assert reply.status_code == 400
    told = "all secrets of a config have at most 32768 letters together"
    assert told in reply.json()["message"]
    stored = VAULT.seal_keys("a", many, many)
    with pytest.raises(CannotUnseal, match="have more than 32768 characters, and at most 32768"):
        VAULT.open("a", {**stored, "secret.x": VAULT.seal("a", "y" * 32_768)})


def test_a_reference_that_nothing_resolves_is_refused_and_within_a_value_a_warning(
    api: RestApi,
) -> None:
    config = {**CONFIG, "password": "${vault:secret/db:password}"}
    reply = api.client.post("/connectors", json={"name": "a", "config": config})
    assert reply.status_code == 400
    assert "nothing here resolves this reference: ${env:NAME} is a variable" in reply.text
    config = {**CONFIG, "note": "as in ${vault:secret/db:user}"}
    assert api.client.post("/connectors", json={"name": "a", "config": config}).status_code == 201
    told = api.client.put(
        "/connector-plugins/Locked/config/validate?extended=true", json=config
    ).text
    assert "note: ${vault:secret/db:user} is used as it is written" in told


@pytest.mark.parametrize("role", Role)
def test_no_guess_of_a_secret_is_confirmed_but_to_who_may_change_it(
    api: RestApi, role: Role
) -> None:
    async def identify(_: Request) -> Principal:
        return Principal(("192.0.2.7", 4711), ("127.0.0.1", 8083), Access.of(role))

    client = Client(make_app(api.service, identify=identify))
    api.client.put("/connectors/a/config", json=CONFIG)

    def answers(guess: str) -> list[str]:
        noted = {**SHOWN, "note": f"is it {guess}?", "tasks.max": f"or {guess}?"}
        configs = {**SHOWN, "password": guess}, {**SHOWN, "note": guess}, noted
        paths = "/connectors/a/config/diff", "/connector-plugins/Locked/config/validate"
        told = [client.put(path, json=config).text for path in paths for config in configs]
        return [each.replace(guess, "?") for each in told]

    confirms = answers(SECRET) != answers("hunter3-hunter3")
    kept = client.put("/connectors/a/config/diff", json=SHOWN).json()
    assert (confirms, kept["changes"]) == (role is Role.ADMIN, [])


@pytest.mark.parametrize(
    ("secret", "form"),
    [
        (
            "jdbc:mysql://db/x?user=ann&password=hunter2",
            r"jdbc:mysql://db/x\?user=ann&password=\w{32}",
        ),
        (
            'org.x.Login required username="u" password="hunter2";',
            r'.* username="u" password="\w{32}";',
        ),
        ("hunter2", r"\w{32}"),
    ],
)
def test_a_stand_in_has_the_form_of_its_secret_and_is_sealed_as_it(secret: str, form: str) -> None:
    vault, sealed = StandInVault(VAULT), VAULT.seal("a", secret)
    stand_in = vault.unseal("a", sealed)
    assert re.fullmatch(form, stand_in)
    assert vault.seal("a", stand_in) == sealed == VAULT.seal("a", secret) != vault.seal("a", secret)
    assert vault.seal("a", "${env:X}") == vault.unseal("a", "${env:X}") == "${env:X}"


def test_no_log_holds_a_secret(api: RestApi) -> None:
    api.client.post("/connectors", json={"name": "a", "config": CONFIG})
    api.service.logs.close()
    with LogReader.open(api.data_dir / "groups" / "connect" / "control") as log:
        assert SECRET.encode() not in b"".join(entry.value or b"" for entry in log.load().entries)


def test_what_is_shown_can_be_put_back_and_keeps_the_secret(api: RestApi) -> None:
    client = api.client
    client.put("/connectors/a/config", json=CONFIG)
    changed = client.put("/connectors/a/config", json={**SHOWN, "tasks.max": "2"})
    assert changed.json()["config"] == {**SHOWN, "tasks.max": "2"}
    assert sent(api) == {**CONFIG, "tasks.max": "2"}


def test_stars_without_a_secret_behind_them_are_refused(api: RestApi) -> None:
    reply = api.client.put("/connectors/a/config", json=SHOWN)
    assert reply.status_code == 400
    assert reply.json()["message"].split("\n")[1:3] == [
        f"{HIDDEN} password: ******** stands for a value that is kept, and there is none",
        f"{HIDDEN} extra.api_key: ******** stands for a value that is kept, and there is none",
    ]


def test_a_secret_that_is_too_long_to_be_hidden_is_refused(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = api.client.put("/connectors/a/config", json={**CONFIG, "password": 40_000 * "x"})
    assert f"{HIDDEN} password: a secret has at most 32768 letters" in reply.json()[
        "message"
    ].split("\n")
    monkeypatch.setenv("LONG", 40_000 * "x")
    with pytest.raises(CannotUnseal, match=r"\(\$\{env:LONG\}\) has 40000 characters, and at most"):
        VAULT.open("a", {"url": "host:${env:LONG}"})


def test_nobody_may_hand_in_a_sealed_value(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json=CONFIG)
    stolen = api.gateway.sent[-1]
    assert isinstance(stolen, PutConnector)
    config = {"connector.class": "Locked", "extra.shown": stolen.config["password"]}
    reply = api.client.put("/connectors/b/config", json=config)
    assert reply.json()["message"].split("\n")[1] == (
        f"{HIDDEN} extra.shown: ${{sealed:...}} is how the cluster stores a secret:"
        " give the secret itself"
    )


def test_a_complaint_about_a_secret_does_not_tell_it(api: RestApi) -> None:
    config = {"connector.class": "Locked", "password": "hunter two"}
    reply = api.client.put("/connectors/a/config", json=config)
    assert (
        reply.json()["message"].split("\n")[1] == f"{HIDDEN} password: ******** has a space in it"
    )
    path = "/connector-plugins/Locked/config/validate"
    validated = api.client.put(path, json=config)
    assert "hunter two" not in validated.text


def test_what_says_where_a_secret_is_stays_as_it_is(api: RestApi) -> None:
    config = {"connector.class": "Locked", "password": "${env:PASSWORD}", "name": "a"}
    assert api.client.put("/connectors/a/config", json=config).json()["config"] == config


def test_a_secret_with_a_reference_in_it_is_sealed() -> None:
    sealed = VAULT.seal("a", "abc${env:X}")
    assert sealed.startswith("${sealed:")
    assert VAULT.unseal("a", sealed) == "abc${env:X}"


def test_the_seal_of_one_value_is_always_the_same() -> None:
    assert VAULT.seal("a", SECRET) == VAULT.seal("a", SECRET) != VAULT.seal("b", SECRET)


def test_a_seal_opens_for_its_own_cluster_and_connector_only() -> None:
    sealed = VAULT.seal("a", SECRET)
    forged = sealed[:12] + ("A" if sealed[12] != "A" else "B") + sealed[13:]
    attempts = ((Vault(bytes(32)), "a", sealed), (VAULT, "b", sealed), (VAULT, "a", forged))
    for vault, connector, value in attempts:
        with pytest.raises(CannotUnseal, match=f"a secret of connector {connector}") as caught:
            vault.unseal(connector, value)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("junk", ["${sealed:", "${sealed:}", "${sealed:!!}", "${sealed:ä}"])
def test_what_only_looks_sealed_does_not_open(junk: str) -> None:
    with pytest.raises(CannotUnseal):
        VAULT.unseal("a", junk)


def test_a_task_config_is_written_down_without_what_its_connector_was_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    stored = {"password": VAULT.seal("a", SECRET), "token": "${env:TOKEN}", "path": "/in"}
    shown = VAULT.open("a", stored).config
    assert shown == {"password": SECRET, "token": "t0ken", "path": "/in"}
    task = {**shown, "url": f"db://me:{SECRET}@there", "task": "0"}
    written = VAULT.conceal("a", task, stored)
    url = written.pop("url")
    assert written == {**stored, "task": "0"}
    assert url.startswith("${sealed:")
    assert VAULT.open("a", {**written, "url": url}).config == task


URLS = {
    "jdbc:postgresql://me:hunter2-x@db/orders": "hunter2-x",
    "jdbc:postgresql://db/orders?user=me&password=hunter2-x&ssl=true": "hunter2-x",
    "jdbc:sqlserver://db:1433;user=me;password=hunter2-x;encrypt=true": "hunter2-x",
    "jdbc:oracle:thin:scott/hunter2-x@//db:1521/orders": "hunter2-x",
    "https://me:hunter2%40x@host/path?x=1": "hunter2%40x",
    "mongodb+srv://me:p@ss-hunter2@cluster/db": "p@ss-hunter2",
    "https://host/path?access_token=hunter2-x#top": "hunter2-x",
    "amqp://:hunter2-x@host": "hunter2-x",
    "host=db user=me password=hunter2-x dbname=orders": "hunter2-x",
}


@pytest.mark.parametrize("url", URLS)
def test_a_password_inside_a_url_is_sealed_and_never_shown(api: RestApi, url: str) -> None:
    password = URLS[url]
    client, path = api.client, "/connector-plugins/Locked/config/validate"
    config = {"connector.class": "Locked", "extra.url": url, "urll": url, "name": "a"}
    told = [client.put("/connectors/a/config", json=config).text]
    told += [client.get(f"/connectors/a{each}").text for each in ("", "/config", "/status")]
    told += [client.put(path, json=config).text, client.put(path, json=config | {"nam": url}).text]
    assert not any(password in each for each in told)
    command = api.gateway.sent[-1]
    assert isinstance(command, PutConnector)
    assert password not in repr(command)
    opened, secrets = VAULT.open("a", command.config)
    assert opened["extra.url"] == url
    assert password in secrets
    assert client.get("/connectors/a/config").json()["extra.url"] == "********"


@pytest.mark.parametrize(
    "value",
    [
        "jdbc:postgresql://db:5432/orders?ssl=true",
        "jdbc:postgresql://me@db/orders",
        "jdbc:postgresql://me:${env:PASSWORD}@db/orders?password=${file:/f:k}",
        "SELECT a FROM input WHERE password = 'x' AND token=3",
        "/data/in:out@2",
        "2013-01-01T05:00:00Z",
        "a://b, c:d@e",
    ],
)
def test_what_holds_no_password_is_shown(api: RestApi, value: str) -> None:
    config = {"connector.class": "Locked", "extra.url": value, "name": "a"}
    assert api.client.put("/connectors/a/config", json=config).json()["config"] == config


@pytest.mark.parametrize(
    "key",
    [
        "source.option.authorization",
        "source.option.header.Authorization",
        "extra.oauth.bearer",
        "spark.conf.spark.hadoop.fs.s3a.secret.key",
        "spark.conf.spark.ssl.keyPassword",
        "spark.conf.fs.azure.account.key.x",
        "db.pwd",
        "http.cookie",
        "my.token",
        "paswsord",
        "pasword",
    ],
)
def test_keys_that_sound_secret_are_masked_in_every_reply(api: RestApi, key: str) -> None:
    client = api.client
    config = {"connector.class": "Locked", key: SECRET, "name": "a"}
    replies = [client.put("/connectors/a/config", json=config)]
    replies += [client.get(f"/connectors/a{each}") for each in ("", "/config", "/status", "/tasks")]
    replies.append(
        client.put("/connector-plugins/Locked/config/validate?extended=true", json=config)
    )
    assert not any(SECRET in each.text for each in replies)


def test_a_setting_of_spark_that_sounds_secret_is_in_no_reply_though_it_is_refused(
    api: RestApi, tmp_path: Path
) -> None:
    key = "spark.conf.spark.sql.lake.token"
    config = {
        "connector.class": "SparkPipeline",
        "source.path": str(tmp_path / "in"),
        "source.format": "csv",
        "sink.path": str(tmp_path / "out"),
        "sink.format": "csv",
        key: SECRET,
    }
    reply = api.client.put("/connectors/a/config", json=config)
    assert reply.status_code == 400
    assert f"{key}: it is none of the settings that a connector may have" in reply.text
    assert SECRET not in reply.text


def test_what_was_logged_before_is_masked_too() -> None:
    assert hide_secrets({"url": "jdbc:postgresql://me:hunter2@db/x"}) == {"url": "********"}


def test_no_part_of_a_secret_remains_that_has_another_one_in_it() -> None:
    assert mask("key, key-and-more", ["key", "key-and-more"]) == "********, ********"
