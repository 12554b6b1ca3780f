from importlib.metadata import EntryPoint, EntryPoints

import pytest

from fairlead.runtime.pipeline.connectors.pipeline_keys import keys_of
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.transforms.connect.structure import SetSchemaMetadata
from fairlead.runtime.pipeline.transforms.types import GROUP, INSTALLED
from fairlead_tests.rest.client import Client

NAME = "fairlead_tests.rest.plugins.Locked"
VALIDATE = "/connector-plugins/Locked/config/validate"


def test_plugins_are_listed_with_what_they_promise(client: Client) -> None:
    (_, listed, _) = client.get("/connector-plugins").json()
    (_, extended, _) = client.get("/connector-plugins?extended=true").json()
    assert listed == {"class": NAME, "type": "source", "version": "0"}
    assert extended == {**listed, "delivery": "at-least-once"}


def test_the_keys_of_each_installed_type_are_listed_on_request(client: Client) -> None:
    path = "/connector-plugins/SparkPipeline/config"
    plain, extended = (client.get(f"{path}{query}").json() for query in ("", "?extended=true"))
    assert extended[: len(plain)] == plain
    optional = {(each["only_with"], each["name"]) for each in extended[len(plain) :]}
    assert {selection for selection, _ in optional} == {
        "sink.type=connect",
        "source.type=connect",
        "source.type=dead-letters",
        "source.type=dead-letter-topic",
        *(
            f"{end}.type={name}"
            for end in ("source", "sink")
            for name in ("jdbc", "kafka", "postgres")
        ),
    }
    assert {
        ("source.type=postgres", "source.table.include.list"),
        ("sink.type=kafka", "sink.bootstrap.servers"),
    } <= optional
    locked = "/connector-plugins/Locked/config"
    assert client.get(locked).json() == client.get(f"{locked}?extended=true").json()


def test_transforms_and_predicates_are_listed_where_they_are_asked_for(client: Client) -> None:
    connectors = client.get("/connector-plugins").json()
    listed = client.get("/connector-plugins?connectorsOnly=false").json()
    assert listed[: len(connectors)] == connectors
    package = "org.apache.kafka.connect.transforms"
    kinds = {each["class"]: each["type"] for each in listed[len(connectors) :]}
    assert kinds[f"{package}.InsertField$Key"] == "transformation"
    assert kinds["sql"] == "transformation"
    assert kinds[f"{package}.predicates.HasHeaderKey"] == "predicate"
    versions = {each["class"]: each["version"] for each in listed[len(connectors) :]}
    assert set(versions.values()) == {"1.0"}
    for name in kinds:
        assert client.get(f"/connector-plugins/{name}/config").status_code == 200
    (field,) = client.get(f"/connector-plugins/{package}.HoistField$Value/config").json()
    assert (field["name"], field["required"]) == ("field", True)


def test_converters_are_listed_as_connects_classes_with_the_keys_they_have_here(
    client: Client,
) -> None:
    listed = client.get("/connector-plugins?connectorsOnly=false").json()
    names = [each["class"] for each in listed if each["type"] == "converter"]
    assert names == [
        "org.apache.kafka.connect.converters.ByteArrayConverter",
        "io.confluent.connect.avro.AvroConverter",
        "org.apache.kafka.connect.json.JsonConverter",
        "org.apache.kafka.connect.storage.StringConverter",
    ]
    told = {
        name: client.get(f"/connector-plugins/{name}/config").json()
        for full in names
        for name in (full, full.rpartition(".")[2])
    }
    assert told["StringConverter"] == told["ByteArrayConverter"] == []
    assert all(told[full] == told[full.rpartition(".")[2]] for full in names)
    assert [each["name"] for each in told["JsonConverter"]] == ["schemas.enable"]
    config = {"source.type": "kafka", "sink.type": "kafka"}
    known = {each.name for each in keys_of(config).definitions}
    behind = {"key": "sink.key.converter", "value": "sink.value.converter"}
    for each in (*told["JsonConverter"], *told["AvroConverter"]):
        side = each["name"].partition(".")[0]
        assert f"{behind.get(side, behind['value'])}.{each['name']}" in known
    for name in ("Converter", "org.example.JsonConverter", "HeaderConverter"):
        assert client.get(f"/connector-plugins/{name}/config").status_code == 404


def test_a_transform_of_ones_own_has_its_own_version(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = f"{SetSchemaMetadata.__module__}:SetSchemaMetadata"
    points = [EntryPoint("own", there, GROUP), EntryPoint("gone", "no.such.module:X", GROUP)]
    monkeypatch.setitem(vars(INSTALLED), "_points", EntryPoints(points))
    monkeypatch.setattr(SetSchemaMetadata, "version", "2.7")
    listed = client.get("/connector-plugins?connectorsOnly=false").json()
    told = {each["class"]: each["version"] for each in listed}
    assert (told["own"], told["gone"]) == ("2.7", "undefined")
    config = {"transforms": "x", "transforms.x.type": "own", "transforms.x.schema.name": "s"}
    wanted = {"plugin.version": "[2.0,3.0)"}, {"plugin.version": "1.0"}
    flaws = [
        SparkPipeline.validate(config | {f"transforms.x.{key}": each for key, each in one.items()})
        .errors.get("transforms.x.plugin.version")
        for one in wanted
    ]  # fmt: skip
    assert [bool(each) for each in flaws] == [False, True]


def test_the_keys_of_a_class_are_found_by_its_short_and_its_full_name(client: Client) -> None:
    short = client.get("/connector-plugins/Locked/config").json()
    assert short == client.get(f"/connector-plugins/{NAME}/config").json()
    password = next(each for each in short if each["name"] == "password")
    assert (password["type"], password["default_value"]) == ("PASSWORD", "")


def test_a_config_is_validated_in_the_shape_of_connect(client: Client) -> None:
    config = {"connector.class": NAME, "name": "a", "tasks.max": 0, "password": "hunter2"}
    told = client.put(VALIDATE, json=config).json()
    values = {each["value"]["name"]: each["value"] for each in told["configs"]}
    assert (told["name"], told["error_count"]) == (NAME, 1)
    assert told.keys() == {"name", "error_count", "groups", "configs"}
    assert values["tasks.max"] == {
        "name": "tasks.max",
        "value": "0",
        "recommended_values": [],
        "errors": ["Invalid value 0 for configuration tasks.max: Value must be at least 1"],
        "visible": True,
    }
    assert values["password"]["value"] == "********"


def test_a_config_of_another_class_is_refused(client: Client) -> None:
    for other in ("SparkPipeline", "Unknown"):
        assert client.put(VALIDATE, json={"connector.class": other}).json() == {
            "error_code": 400,
            "message": f"Included connector type {other} does not match request type Locked",
        }


def test_null_is_no_value(client: Client) -> None:
    config = {"connector.class": "Locked", "name": "a", "tasks.max": None, "mine": None}
    told = client.put(VALIDATE, json=config).json()
    errors = {each["value"]["name"]: each["value"]["errors"] for each in told["configs"]}
    null = "Null value can not be supplied as the configuration value."
    assert (told["error_count"], errors["tasks.max"], errors["mine"]) == (2, [null], [null])
    assert told["configs"][-1]["definition"] is None


def test_a_class_that_is_not_installed_is_a_404(client: Client) -> None:
    message = "Unknown plugin Lokced."
    path = "/connector-plugins/Lokced/config"
    replies = (client.get(path), client.put(f"{path}/validate", json={}))
    assert [each.json() for each in replies] == [{"error_code": 404, "message": message}] * 2


def test_a_near_miss_is_refused_and_any_other_unknown_key_told_as_a_warning(
    client: Client,
) -> None:
    config = {"connector.class": "Locked", "task.max": "2", "owner": "me", "pasword": "hunter2"}
    told = client.put(f"{VALIDATE}?extended=true", json={**config, "name": "a"}).json()
    errors = {each["value"]["name"]: each["value"]["errors"] for each in told["configs"]}
    near = {key: texts for key, texts in errors.items() if texts}
    strange = "there is no such key: did you mean"
    assert near == {
        "task.max": [f"Invalid value 2 for configuration task.max: {strange} tasks.max?"],
        "pasword": [f"Invalid value ******** for configuration pasword: {strange} password?"],
    }
    assert (told["error_count"], told["warnings"]) == (2, ["unknown key owner: it has no effect"])
    assert "hunter2" not in str(told)
    refused = client.post("/connectors", json={"name": "a", "config": config})
    assert refused.status_code == 400
    lines = refused.json()["message"].splitlines()
    assert sorted(lines[1:3]) == sorted(text for (text,) in near.values())


def test_unknown_keys_are_told_by_create_describe_and_status(client: Client) -> None:
    config = {"connector.class": "Locked", "owner": "me"}
    warnings = ["unknown key owner: it has no effect"]
    body = {"name": "a", "config": config}
    created = client.post("/connectors?extended=true", json=body)
    assert (created.status_code, created.json()["warnings"]) == (201, warnings)
    assert client.get("/connectors/a?extended=true").json()["warnings"] == warnings
    assert client.get("/connectors/a/status?extended=true").json()["warnings"] == warnings
    expand = "/connectors?expand=status&expand=info"
    expanded = client.get(f"{expand}&extended=true").json()["a"]
    assert [each["warnings"] for each in expanded.values()] == [warnings, warnings]
    plain = client.get(expand).json()["a"].values()
    assert not any("warnings" in each for each in plain)
    sound = {"connector.class": "Locked"}
    put = client.put("/connectors/a/config?extended=true", json=sound)
    assert "warnings" not in put.json()


def test_a_connector_tells_what_it_promises_and_which_key_makes_it_less(client: Client) -> None:
    config = {
        "connector.class": "SparkPipeline",
        "source.type": "postgres",
        "source.connection.url": "postgresql://db/shop",
        "source.mode": "bulk",
        "sink.path": "/data/out",
        "sink.format": "parquet",
    }
    why = "source.mode=bulk may miss or double rows that change while it reads"
    warnings = [f"delivery is best-effort, and not exactly-once; {why}"]
    path = "/connector-plugins/SparkPipeline/config/validate"
    examined = client.put(f"{path}?extended=true", json={**config, "name": "a"}).json()
    assert (examined["error_count"], examined["warnings"]) == (0, warnings)
    body = {"name": "a", "config": config}
    created = client.post("/connectors?extended=true", json=body).json()
    assert (created["delivery"], created["warnings"]) == ("best-effort", warnings)
    put = client.put(
        "/connectors/a/config?extended=true", json={**config, "source.mode": "xmin"}
    ).json()
    assert (put["delivery"], "warnings" in put) == ("exactly-once", False)
    extended = client.get("/connectors/a/status?extended=true").json()
    assert extended["delivery"] == "exactly-once"
    assert "delivery" not in client.get("/connectors/a/status").json()
    assert "delivery" not in client.get("/connectors/a").json()


def test_a_version_that_is_not_installed_is_refused_with_the_one_that_is(client: Client) -> None:
    config = {
        "connector.class": "SparkPipeline",
        "source.path": "/data/in",
        "source.format": "json",
        "sink.path": "/data/out",
        "sink.format": "parquet",
        "transforms": "x",
        "transforms.x.type": "HoistField",
        "transforms.x.field": "all",
        "transforms.x.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "RecordIsTombstone",
    }
    asked = ("connector", "transforms.x", "predicates.p")
    path = "/connector-plugins/SparkPipeline/config/validate"

    def errors(version: str) -> list[str]:
        versions = {f"{each}.plugin.version": version for each in asked}
        told = client.put(path, json={**config, **versions, "name": "a"}).json()
        return sorted(error for each in told["configs"] for error in each["value"]["errors"])

    assert [errors(each) for each in ("1.0", "latest", "[1.0]", "[1.0,2)")] == [[]] * 4
    assert errors("2.0") == sorted(
        f"Invalid value 2.0 for configuration {each}.plugin.version: version 1.0 is installed here,"
        " and no other: give that, latest, or a range with it, such as [1.0,)"
        for each in asked
    )


def test_a_name_that_a_list_gives_twice_is_refused_in_connects_words(client: Client) -> None:
    config = {
        "connector.class": "SparkPipeline",
        "name": "a",
        "source.path": "/data/in",
        "source.format": "csv",
        "sink.path": "/data/out",
        "sink.format": "parquet",
        "transforms": "x, x",
        "transforms.x.type": "HoistField",
        "transforms.x.field": "all",
    }
    told = client.put("/connector-plugins/SparkPipeline/config/validate", json=config).json()
    assert [error for each in told["configs"] for error in each["value"]["errors"]] == [
        "Invalid value [x, x] for configuration transforms: Duplicate alias provided."
    ]


def test_a_config_has_no_more_keys_than_can_be_compared(client: Client) -> None:
    config = {f"pasword{number}": "x" for number in range(2_000)}
    refused = client.put(VALIDATE, json={"connector.class": "Locked", **config})
    assert refused.json() == {
        "error_code": 400,
        "message": "the config has 2001 keys, and at most 1000 are taken",
    }


def test_families_of_keys_are_listed_with_the_others(client: Client) -> None:
    keys = client.get("/connector-plugins/SparkPipeline/config").json()
    names = {each["name"] for each in keys if "*" in each["name"] or "<" in each["name"]}
    assert names == {
        "source.option.*",
        "sink.option.*",
        "spark.conf.spark.sql.*",
        "transforms.<name>.type",
        "transforms.<name>.plugin.version",
        "predicates.<name>.plugin.version",
        "transforms.<name>.predicate",
        "transforms.<name>.negate",
        "predicates.<name>.type",
        "transforms.<name>.query",
        "transforms.<name>.columns",
    }
