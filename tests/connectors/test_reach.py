"""Sources and sinks lie where the operator of a node lets them, and never in the node's folder."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.queries.allowed_settings import ALLOWED as SETTINGS
from fairlead.runtime.pipeline.formats.spark.options import READING, WRITING
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import AccessLimits, Context
from fairlead.runtime.pipeline.stores.kafka.overrides import ALLOWED as LIBRDKAFKA
from fairlead.runtime.pipeline.stores.postgres.url import ALLOWED as LIBPQ
from fairlead_tests.pages import DOCS


@pytest.fixture
def node(tmp_path: Path) -> Path:
    for name in ("data/run", "data/logs", "landing/in", "lake", "lake-2"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "landing" / "run").symlink_to(tmp_path / "data" / "run")
    (tmp_path / "landing" / "away").symlink_to(tmp_path / "lake-2")
    (tmp_path / "shortcut").symlink_to(tmp_path / "data")
    return tmp_path


@pytest.mark.parametrize(
    "path",
    [
        "data",
        "data/run",
        "data/logs/new/folder",
        "landing/../data/run",
        "landing/run",
        "landing/run/../logs",
        "shortcut/run",
        "data/./run/.",
        "//data",
        "",
        "landing/..",
    ],
)
@pytest.mark.parametrize("paths", [(), ("/",)])
def test_no_connector_reaches_the_folder_of_its_node_whatever_the_setting(
    node: Path, path: str, paths: tuple[str, ...]
) -> None:
    reach = AccessLimits(str(node / "data"), paths)
    flaw = reach.flaw_in_path(f"{node}/{path}")
    assert flaw is not None
    assert "the node's own folder" in flaw


def test_a_node_whose_folder_is_reached_over_a_link_is_known_by_where_it_lies(node: Path) -> None:
    reach = AccessLimits(str(node / "shortcut"))
    assert reach.flaw_in_path(str(node / "data" / "run"))
    assert reach.flaw_in_path(str(node / "shortcut" / "x"))
    assert reach.flaw_in_path(str(node / "lake")) is None


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("landing", True),
        ("landing/in/deep/and/new", True),
        ("lake", True),
        ("lake/../landing/in", True),
        ("lake-2", False),
        ("landing/away", False),
        ("landing/../lake-2", False),
        ("landing/in/../../lake-2/x", False),
        ("lak", False),
        ("", False),
    ],
)
def test_folders_are_confined_to_those_of_the_setting_links_followed(
    node: Path, path: str, is_allowed: bool
) -> None:
    allowed = (str(node / "landing"), f"{node}/lake/")
    flaw = AccessLimits(str(node / "data"), allowed).flaw_in_path(f"{node}/{path}")
    assert (flaw is None) == is_allowed
    if path == "landing/away":
        assert flaw == (
            f"{node}/landing/away (that is {node}/lake-2) is in none of the folders of"
            f" paths.allow: {node}/landing, {node}/lake/"
        )


def test_without_the_setting_any_other_folder_is_in_reach(node: Path) -> None:
    assert AccessLimits(str(node / "data")).flaw_in_path("/anywhere/else") is None
    assert AccessLimits(str(node / "data")).flaw_in_path(f"{node}/data-2") is None


def test_what_is_no_path_is_refused_in_words() -> None:
    assert "is no path" in (AccessLimits("/data").flaw_in_path("/a\0b") or "")


@pytest.mark.parametrize("key", ["source.path", "sink.path"])
def test_a_connector_and_its_tasks_refuse_to_start_where_they_may_not_be(
    node: Path, key: str
) -> None:
    config = {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": str(node / "landing" / "in"),
        "source.schema": "a INT",
        "sink.format": "csv",
        "sink.path": str(node / "lake"),
        key: str(node / "landing" / "run"),
    }
    context = Context(Resource("c"), print, reach=AccessLimits(str(node / "data")))
    with pytest.raises(ConfigInvalid, match=f"{key}: .* lies in the node's own folder"):
        SparkPipeline().start(context, config)
    with pytest.raises(ConfigInvalid, match=f"{key}: .* lies in the node's own folder"):
        SparkPipeline().pipeline(context, {**config, "task.schema": "a INT"})


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ("source.option.path", "source.path"),
        ("source.option.Paths", "source.path"),
        ("source.option.basePath", "source.path"),
        ("sink.option.path", "sink.path"),
    ],
)
def test_no_option_of_spark_leads_elsewhere(option: str, key: str) -> None:
    errors = SparkPipeline.validate(
        {option: "/etc", "source.path": "/in", "sink.path": "/out"}
    ).errors
    assert errors[key] == (f"only this key sets the path: leave out {option}",)


@pytest.mark.parametrize(
    ("begin", "fits", "others"),
    [
        (
            "jdbc:mysql://db:3306/",
            "shop shop/a sho-p.x",
            "shop?allowLoadLocalInfile=true shop?autoDeserialize=true shop;INIT=1 ../x /evil/x"
            " x#y (host=evil) x,evil:1/y a//b shop&x=1 x@evil",
        ),
        ("jdbc:mysql://db", "/shop", ".example.org/x -2/x 2/x :1/x @evil/x"),
        ("jdbc:mysql://db:3306", "/shop", "1/x 0/shop"),
        ("jdbc:sqlite:/data/", "a.db b/c.db", "../etc/x b/../../etc/x /etc/x"),
        ("jdbc:h2:mem:", "a", "a;INIT=RUNSCRIPT a/../../x"),
        ("jdbc:postgresql://h/", "db", "db?socketFactory=x db?loggerFile=/etc/x db?sslfactory=y"),
    ],
)
def test_a_database_is_in_reach_by_the_beginning_of_its_url_and_has_no_parameters(
    begin: str, fits: str, others: str
) -> None:
    reach = AccessLimits(jdbc=("jdbc:other:", begin))
    assert [each for each in fits.split() if reach.flaw_in_jdbc(begin + each)] == []
    assert [each for each in others.split(" ") if not reach.flaw_in_jdbc(begin + each)] == []
    assert reach.flaw_in_jdbc(f"{begin}x\n") is not None
    assert reach.flaw_in_jdbc(begin.upper() + "x") is not None


def test_the_page_of_security_names_what_a_config_may_pass_on() -> None:
    text = (DOCS / "security.md").read_text()
    section = text.partition("## What a config may pass on")[2].partition("\n## ")[0]
    told = {each.lower() for each in re.findall(r"`([^`]+)`", section)}
    families = [each for each in told if "*" in each]
    settings = [each.removeprefix("spark.sql.") for each in SETTINGS]
    options = [name for lists in (READING, WRITING) for names in lists.values() for name in names]
    for name in (*settings, *options, *LIBRDKAFKA, *LIBPQ):
        if name in {"user", "password"}:
            continue
        known = name.lower() in told or any(fnmatch(name, each) for each in families)
        assert known, name
