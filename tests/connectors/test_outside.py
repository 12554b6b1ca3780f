"""A new config is held against the node: what cannot work is an error before anything starts."""

import os
import re
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.queries.query_check import CheckFailed, QueryCheck
from fairlead.runtime.pipeline.formats.evolution.names import may_have_duplicates
from fairlead.runtime.pipeline.spi.context import AccessLimits, ExternalAccess, ProbeResult
from fairlead_tests.soaks import thinned

Config = dict[str, str]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "in").mkdir()
    return {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": f"{tmp_path}/in",
        "sink.format": "parquet",
        "sink.path": f"{tmp_path}/out/deep",
    }


def found(config: Mapping[str, str], outside: ExternalAccess = ExternalAccess()) -> ProbeResult:  # noqa: B008
    """Return what is found; nothing of the looking is left behind."""
    sink = Path(config["sink.path"]).parent
    before = sorted(sink.rglob("*")) if sink.is_dir() else []
    findings = SparkPipeline.probe(config, outside)
    assert (sorted(sink.rglob("*")) if sink.is_dir() else []) == before
    return findings


def sql(query: str) -> Config:
    return {"transforms": "t", "transforms.t.type": "sql", "transforms.t.query": query}


def test_a_config_that_works_gives_rise_to_nothing(config: Config) -> None:
    assert found(config) == ProbeResult()


def test_a_source_folder_that_is_still_to_come_is_a_warning(config: Config) -> None:
    config["source.path"] += "/later"
    told = f"source.path: {config['source.path']} does not exist: the connector waits for it"
    assert found(config) == ProbeResult(warnings=(told,))


def test_a_file_as_a_source_is_an_error(config: Config, tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    config["source.path"] = f"{tmp_path}/a.csv"
    told = f"{tmp_path}/a.csv is a file: give the folder that it lies in"
    assert found(config).errors == {"source.path": told}


def test_columns_that_differ_only_in_case_are_an_error(config: Config, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.csv").write_text("name,Name\nx,y\n")
    (told,) = found(config).errors.values()
    assert "columns (name, Name) differ at most in upper and lower case" in told


TWINS = (
    "columns `{}` and `{}` differ in case only, and the sink cannot have both: rename one of them "
    "by a transform, or leave it out"
)


@pytest.mark.spark
@pytest.mark.parametrize("fmt", thinned(["parquet", "json"], 2))
@pytest.mark.parametrize(
    ("query", "twins"),
    [
        ("SELECT id, 1 AS ID FROM input", ("id", "ID")),
        ("SELECT named_struct('a', 1, 'A', 2) AS s FROM input", ("s.a", "s.A")),
        ("SELECT array(named_struct('É', 1, 'é', 2)) AS s FROM input", ("s.É", "s.é")),
    ],
)
def test_columns_that_a_transform_makes_alike_but_for_their_case_are_no_files(
    config: Config, spark: QueryCheck, fmt: str, query: str, twins: tuple[str, str]
) -> None:
    made = {**config, "source.schema": "id INT", **sql(query), "sink.format": fmt}
    told = found(made, ExternalAccess(queries=spark)).errors
    assert told == {"transforms": TWINS.format(*twins)}


@pytest.mark.spark
def test_columns_of_a_source_alike_but_for_their_case_are_no_files(
    config: Config, spark: QueryCheck, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.json").write_text('{"s": {"b": 1, "B": 2}}\n')
    read = {**config, "source.format": "json"}
    told = found(read, ExternalAccess(queries=spark)).errors
    assert told == {"transforms": TWINS.format("s.b", "s.B")}


@pytest.mark.parametrize(
    ("ddl", "may"),
    [
        ("id BIGINT, ID BIGINT", True),
        ("`a b` INT, `A b` INT", True),
        ("s STRUCT<a: INT, A: INT>", True),
        ("id BIGINT, name STRING, d DECIMAL(10, 2)", False),
        ("", False),
    ],
)
def test_spark_is_asked_only_if_names_may_be_alike(ddl: str, *, may: bool) -> None:
    assert may_have_duplicates(ddl) is may


@pytest.mark.parametrize(
    ("path", "there", "why"),
    [
        ("/proc/sub/out", "/proc", "no such file or directory"),
        ("/dev/null/out", "/dev/null", "not a directory"),
        ("/sys/kernel/out", "/sys/kernel", "(permission denied|operation not permitted|read-only)"),
    ],
)
def test_a_sink_that_cannot_be_made_is_an_error_that_names_the_place(
    config: Config, path: str, there: str, why: str
) -> None:
    config["sink.path"] = path
    (told,) = found(config).errors.values()
    told = told.removeprefix(f"{path} cannot be written to: {there}: ")
    assert re.match(why, told)


def test_a_sink_in_a_file_or_behind_a_link_to_nowhere_is_an_error(
    config: Config, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        config["sink.path"] = f"{tmp_path}/{name}/out"
        assert f"cannot be written to: {tmp_path}/{name}: " in found(config).errors["sink.path"]


def test_a_sink_that_a_link_leads_into_its_source_is_an_error(
    config: Config, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(config["source.path"])
    config["sink.path"] = f"{tmp_path}/link/out"
    told = (
        f"{config['sink.path']} leads into {config['source.path']}: its output would be its input"
    )
    assert found(config).errors == {"sink.path": told}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_sink_without_the_right_to_write_is_an_error(config: Config, tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert "permission denied" in found(config).errors["sink.path"]
    finally:
        tmp_path.chmod(stat.S_IRWXU)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_sink_on_a_disk_that_is_read_only_or_full_is_an_error(
    config: Config, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["-o", "size=64k,nr_inodes=3", "-t", "tmpfs", "none", str(disk)]
    if subprocess.run(["mount", *options], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        config["sink.path"] = f"{disk}/out"
        assert found(config).errors == {}
        (disk / "1").touch()
        (disk / "2").touch()
        assert "no space left on device" in found(config).errors["sink.path"]
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert "read-only file system" in found(config).errors["sink.path"]
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_folders_out_of_reach_are_errors(config: Config, tmp_path: Path) -> None:
    outside = ExternalAccess(AccessLimits(str(tmp_path / "in"), ("/elsewhere",)))
    errors = found(config, outside).errors
    assert errors["source.path"] == f"{tmp_path}/in lies in the node's own folder {tmp_path}/in"
    assert "is in none of the folders of paths.allow" in errors["sink.path"]


def test_values_that_are_resolved_later_are_not_looked_at(config: Config) -> None:
    config |= {"source.path": "/${env:NO_SUCH}", "sink.path": "/${file:/x:y}"}
    assert found(config, ExternalAccess(AccessLimits("/data", ("/a",)))) == ProbeResult()


class Away(QueryCheck):
    """No Java is there."""

    def _call(self, call: object) -> object:  # type: ignore[override]
        del call
        raise CheckFailed("no Java")


def test_where_nobody_can_ask_spark_that_is_told(config: Config) -> None:
    warnings = found(config | sql("SELECT 1"), ExternalAccess(queries=Away())).warnings
    assert warnings == ("the SQL was not checked: no Java",)


def rows(config: Config, text: str) -> None:
    Path(config["source.path"], "1.csv").write_text(text)


@pytest.mark.spark
def test_what_spark_would_refuse_is_an_error_under_the_key_to_change(
    config: Config, spark: QueryCheck
) -> None:
    rows(config, "carrier,delay\nUA,3\n")
    outside = ExternalAccess(queries=spark)
    query, columns = "transforms.t.query", "transforms.t.columns"

    def errors(**more: str) -> Mapping[str, str]:
        changes = {key.replace("_", "."): value for key, value in more.items()}
        return found(config | changes, outside).errors

    assert found(config | sql("SELECT *, delay > 2 AS late FROM input"), outside) == ProbeResult()
    assert "Syntax error" in found(config | sql("SELEC *"), outside).errors[query]
    told = found(config | sql("SELECT carier FROM input"), outside).errors[query]
    assert "`carier` cannot be resolved" in told
    assert "`carrier`" in told
    told = found(config | sql("SELECT java_method('a', 'b') FROM input"), outside).errors[query]
    assert told.startswith("the function java_method calls any method of Java")
    told = found(config | sql("SELECT reflect('${', 'b') FROM input"), outside).errors[query]
    assert told.startswith("the function reflect calls any method of Java")
    select = {"transforms": "t", "transforms.t.type": "select"}
    assert errors(**select, **{columns: "carrier, delay / 60 AS h"}) == {}
    assert "`dely`" in errors(**select, **{columns: "dely"})[columns]
    assert errors(source_schema="a INTT").keys() == {"source.schema"}
    assert errors(source_schema="a INT", sink_partition_by="b") == {
        "sink.partition.by": "there is no column b; there are a"
    }
    assert errors(sink_partition_by="Carrier") == {}
    assert errors(sink_partition_by="carrier,delay") == {
        "sink.partition.by": "no column would be left for the files themselves"
    }


@pytest.mark.spark
@pytest.mark.parametrize("schema", ["a INT DEFAULT java_method('x', 'y')", '{"type": "struct"}'])
def test_a_schema_holds_columns_and_types_alone(
    config: Config, spark: QueryCheck, schema: str
) -> None:
    findings = found(config | {"source.schema": schema}, ExternalAccess(queries=spark))
    assert findings.errors.keys() == {"source.schema"}


@pytest.mark.spark
def test_files_are_sampled_as_they_will_be_read(config: Config, spark: QueryCheck) -> None:
    rows(config, "carrier;delay\nUA;3\n")
    config |= {"source.separator": ";"} | sql("SELECT carrier, delay FROM input")
    assert found(config, ExternalAccess(queries=spark)) == ProbeResult()
    assert found(config | {"source.separator": ","}, ExternalAccess(queries=spark)).errors


@pytest.mark.spark
def test_each_transform_sees_what_the_one_before_it_makes(
    config: Config, spark: QueryCheck
) -> None:
    config |= {
        "source.schema": "carrier STRING, delay INT",
        "transforms": "one,two",
        "transforms.one.type": "select",
        "transforms.one.columns": "carrier AS c, month(now()) AS m",
        "transforms.two.type": "sql",
        "transforms.two.query": "SELECT c, m, delay FROM input",
        "sink.partition.by": "m",
    }
    outside = ExternalAccess(AccessLimits(sql=frozenset({"now"})), spark)
    assert "`delay` cannot be resolved" in found(config, outside).errors["transforms.two.query"]
    config["transforms.two.query"] = "SELECT * FROM input"
    assert found(config, outside) == ProbeResult()
    assert found(config, ExternalAccess(queries=spark)).errors.keys() == {"transforms.one.columns"}


@pytest.mark.spark
def test_transforms_by_connects_names_are_held_against_the_columns_too(
    config: Config, spark: QueryCheck
) -> None:
    config |= {
        "source.schema": "carrier STRING, delay INT, at STRUCT<day: DATE, `x.y`: TIMESTAMP>",
        "transforms": "one,two,three",
        "transforms.one.type": "Flatten",
        "transforms.two.type": "Cast",
        "transforms.two.spec": "at.x.y:int64",
        "transforms.three.type": "sql",
        "transforms.three.query": "SELECT delay, `at.day`, `at.x.y` + 1 AS ms FROM input",
        "sink.partition.by": "at.day",
    }
    outside = ExternalAccess(queries=spark)
    assert found(config, outside) == ProbeResult()
    assert found(config | {"transforms.one.delimiter": "_"}, outside).errors.keys() == {
        "transforms.three.query"
    }
    keys = {"transforms.two.type": "InsertField", "transforms.two.topic.field": "t"}
    (told,) = found(config | keys, outside).errors.items()
    assert told[0] == "transforms.two.type"
    assert told[1].startswith("transforms.two: the rows have no column _topic with the topic")


@pytest.mark.spark
def test_each_rule_of_an_expectation_is_held_against_the_columns(
    config: Config, spark: QueryCheck
) -> None:
    config |= {
        "source.schema": "a INT",
        "transforms": "q",
        "transforms.q.type": "expect",
        "transforms.q.expect.one": "a > 0",
        "transforms.q.expect.two": "b > 0",
        "transforms.q.expect.three": "reflect('a', 'b') = ''",
        "sink.partition.by": "c",
    }
    errors = found(config, ExternalAccess(queries=spark)).errors
    assert errors.keys() == {
        "transforms.q.expect.two",
        "transforms.q.expect.three",
        "sink.partition.by",
    }
    assert "`b` cannot be resolved" in errors["transforms.q.expect.two"]


@pytest.mark.spark
def test_the_columns_that_dedupe_names_are_held_against_those_that_there_are(
    config: Config, spark: QueryCheck
) -> None:
    config |= {
        "source.schema": "`a b` INT, m MAP<INT, INT>",
        "transforms": "q",
        "transforms.q.type": "dedupe",
        "transforms.q.fields": "a b",
    }
    outside = ExternalAccess(queries=spark)
    assert found(config, outside) == ProbeResult()
    wrong = {"transforms.q.fields": "a b, m", "transforms.q.order.by": "at"}
    assert found(config | wrong, outside).errors.keys() == wrong.keys()


@pytest.mark.spark
def test_tables_that_a_query_looks_up_are_known_to_its_check(
    config: Config, spark: QueryCheck, tmp_path: Path
) -> None:
    config |= {"source.schema": "a INT"} | sql("SELECT * FROM input JOIN n USING (a)")
    keys = {"transforms.t.lookup.n.path": f"{tmp_path}/n", "transforms.t.lookup.n.format": "csv"}
    assert found(config, ExternalAccess(queries=spark)).errors.keys() == {"transforms.t.query"}
    told = f"transforms.t.lookup.n.path: {tmp_path}/n does not exist"
    assert found(config | keys, ExternalAccess(queries=spark)) == ProbeResult(warnings=(told,))
    reach = AccessLimits(data_dir=str(tmp_path))
    errors = found(config | keys, ExternalAccess(reach, spark)).errors
    assert "transforms.t.lookup.n.path" in errors


@pytest.mark.spark
def test_without_any_file_yet_sql_is_held_against_its_grammar_alone(
    config: Config, spark: QueryCheck
) -> None:
    outside = ExternalAccess(queries=spark)
    assert found(config | sql("SELECT anything FROM input"), outside) == ProbeResult()
    assert found(config | sql("SELECT anything FRM input,"), outside).errors
    assert found(config | sql("SELECT uuid() FROM input"), outside).errors


@pytest.mark.spark
def test_a_column_that_a_sample_of_json_lacks_is_a_warning_only(
    config: Config, spark: QueryCheck
) -> None:
    for number in range(150):
        Path(config["source.path"], f"{number}.json").write_text('{"a": 1}\n')
    config |= {"source.format": "json", "sink.partition.by": "rare"} | sql("SELECT * FROM input")
    findings = found(config, ExternalAccess(queries=spark))
    assert findings.errors == {}
    assert findings.warnings == (
        "sink.partition.by: by a sample of the files, there is no column rare; there are a",
    )
