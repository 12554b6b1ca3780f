# pyright: basic
"""Options of Spark's readers and writers: which are taken, and that none loses a row in silence."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from connectors.conftest import Run
from hypothesis import given
from hypothesis import strategies as st

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.formats.csv.line_ends import CommentFilter
from fairlead.runtime.pipeline.formats.spark.options import READING, WRITING
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.stores.files.keys import refuse_flaws_in_reading

Config = dict[str, str]
GOOD = {
    "name": "c",
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "source.path": "/in",
    "sink.format": "parquet",
    "sink.path": "/out",
}
BLIND = {"source.header": "false", "source.schema": "n INT, s STRING"}


@pytest.mark.parametrize(
    ("more", "key", "told"),
    [
        (
            {"source.option.sep": "||"},
            "source.separator",
            "must be one character, or \\t, and is '||'",
        ),
        ({"source.option.SEP": ""}, "source.separator", "source.option.sep must be one character"),
        ({"source.option.delimiter": "::", **BLIND, "source.option.Header": "true"}, "", ""),
        (
            {"source.option.Quote": "''"},
            "source.quote",
            "source.option.quote must be one character",
        ),
        ({"source.option.escape": "\\\\"}, "source.escape", "must be one character"),
        ({"source.option.comment": "//"}, "source.format", "must be one character, and is '//'"),
        ({"source.option.lineSep": "|"}, "source.format", "leave out source.option.lineSep"),
        (
            {"source.option.pathGlobFilter": "*.x"},
            "source.glob",
            "only this key selects files: leave out",
        ),
        (
            {"source.option.MODIFIEDAFTER": "2026-01-01"},
            "source.glob",
            "with which Spark would skip files",
        ),
        (
            {"source.option.ignoreCorruptFiles": "true"},
            "source.glob",
            "leave out source.option.ignoreCorruptFiles",
        ),
    ],
)
def test_an_option_that_cannot_be_followed_is_refused_before_anything_is_read(
    more: Config, key: str, told: str
) -> None:
    errors = SparkPipeline.validate(GOOD | more).errors
    key = key or "source.separator"
    assert list(errors) == [key]
    assert told in errors[key][0]
    # A reference is resolved by the worker alone, so it is the first to know.
    with pytest.raises(ConfigInvalid, match=f"^{key}: "):
        refuse_flaws_in_reading(GOOD | more)


@pytest.mark.parametrize(
    "more",
    [
        {"source.option.sep": "||", **BLIND},
        {"source.option.sep": "\\t", "source.option.quote": "", "source.option.lineSep": "\r\n"},
        {"source.option.ignoreMissingFiles": "false"},
        {"source.option.quote": "'", "source.option.escape": "'", "source.option.comment": "#"},
        {"source.option.sep": "${env:SEP}"},
        {"source.format": "json", "source.option.lineSep": "||"},
    ],
)
def test_an_option_that_can_be_followed_is_taken(more: Config) -> None:
    assert SparkPipeline.validate(GOOD | more).errors == {}


LINES = st.lists(st.lists(st.text(st.sampled_from('a#,"\n\r'), max_size=3), min_size=2, max_size=2))


@given(rows=LINES, chunk=st.integers(1, 9), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_lines_that_begin_with_a_comments_letter_are_left_out_and_texts_stay(
    rows: list[list[str]], chunk: int, end: str
) -> None:
    wanted, commented = io.StringIO(newline=""), io.StringIO(newline="")
    commented.write(f'#"{end}')
    for row in rows:
        for stream in (wanted, commented):
            csv.writer(stream, lineterminator=end, quoting=csv.QUOTE_ALL).writerow(row)
        commented.write(f'# it\'s 5", "or so{end}')
    text = commented.getvalue().encode()
    comments = CommentFilter("#", ",", '"', "")
    parts = [text[at : at + chunk] for at in range(0, len(text), chunk)]
    assert b"".join(comments.without(parts)).decode() == wanted.getvalue()
    assert comments.found


def json_rows(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in folder.glob("*.json") for line in file.read_text().splitlines()]
    return sorted((json.loads(line) for line in lines), key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("given_schema", [{}, {"source.schema": "n INT, s STRING"}])
def test_comments_are_no_rows_no_header_and_no_part_of_a_schema(
    run: Run, folders: Config, tmp_path: Path, given_schema: Config
) -> None:
    texts = ['#, it\'s 5" x\nn,s\n#\n1,"a\n#b"\n# x', "n,s\r\n#,\r\n2,#\r\n", "n,s\n3,z\n"]
    for number, text in enumerate(texts):
        (tmp_path / "in" / f"{number}.csv").write_text(text, newline="")
    config = {**folders, **given_schema, "source.format": "csv", "source.option.Comment": "#"}
    reports = run({**config, "sink.format": "json"})
    assert [each.trace for each in reports.statuses if each.trace] == []
    found = [{"n": 1, "s": "a\n#b"}, {"n": 2, "s": "#"}, {"n": 3, "s": "z"}]
    assert json_rows(tmp_path / "out") == found


@pytest.mark.spark
def test_options_are_alike_in_upper_and_lower_case(
    run: Run, folders: Config, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n;s\n1;it's\nNA;'NA'\nx;y\n2\n")
    config = {**folders, **BLIND, "source.option.HEADER": "true", "errors.tolerance": "all"}
    config |= {
        "source.option.SEP": ";",
        "source.option.QUOTE": "'",
        "source.option.nullVALUE": "NA",
    }
    # Bad rows are kept in a column of this name: under another one they would be rows of nulls.
    config |= {"source.option.columnnameofcorruptRECORD": "s"}
    config |= {"source.format": "csv", "sink.format": "csv", "sink.option.QUOTE": "'"}
    reports = run({**config, "sink.option.lineSEP": "|"})
    assert [each.trace for each in reports.statuses if each.trace] == []
    (file,) = (tmp_path / "out").glob("*.csv")
    assert file.read_text() == "n,s|1,'it''s'|,|"


@pytest.mark.spark
def test_what_ends_lines_is_found_out_whatever_an_option_says(
    run: Run, folders: Config, tmp_path: Path
) -> None:
    # Taken at its word all of it would be one line, the header.
    (tmp_path / "in" / "a.csv").write_text('n,s\n1,"a\nb"\n')
    config = {"source.option.lineSep": "\r\n", "source.option.multiLine": "false"}
    run({**folders, **config, "source.format": "csv", "sink.format": "json"})
    assert json_rows(tmp_path / "out") == [{"n": 1, "s": "a\nb"}]


def _flaws(config: Config) -> dict[str, tuple[str, ...]]:
    """Return the errors of a config, which a worker finds as well in an old log."""
    errors = SparkPipeline.validate(config).errors
    told = "; ".join(f"{key}: {each}" for key, some in errors.items() for each in some)
    with pytest.raises(ConfigInvalid) as caught:
        SparkPipeline().pipeline(Context(Resource("c", 0), print), config)
    assert str(caught.value) == told
    return dict(errors)


@pytest.mark.parametrize("fmt", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    "name",
    [
        "fs.file.impl",
        "fs.viewfs.mounttable.default.link./in",
        "fs.defaultFS",
        "fs.file.impl.disable.cache",
        "io.compression.codecs",
        "hadoop.security.credential.provider.path",
        "parquet.crypto.factory.class",
        "parquet.encryption.kms.client.class",
        "parquet.read.support.class",
        "mapreduce.input.fileinputformat.input.dir",
        "mapreduce.outputcommitter.factory.class",
        "recursiveFileLookup",
        "wholetext",
        "inputBufferSize",
        "ignoreExtension",
        "a{b}c",
        "",
    ],
)
def test_an_option_of_spark_or_hadoop_that_is_not_on_the_list_is_refused(
    fmt: str, name: str
) -> None:
    config = {**GOOD, "source.format": fmt, "sink.format": fmt}
    told = f"{{}}.option.{name} is none of the options that {fmt} takes here: leave it out"
    assert _flaws({**config, f"source.option.{name}": "x"}) == {
        "source.format": (told.replace("{}", "source", 1),)
    }
    assert _flaws({**config, f"sink.option.{name}": "x"}) == {
        "sink.format": (told.replace("{}", "sink", 1),)
    }


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("source.option.maxColumns", "2147483647", "must be a number, at most 100000"),
        ("source.option.maxCharsPerColumn", "2e9", "must be a number, at most 67108864"),
        ("sink.option.compression", "java.lang.Object", "must be a short name, such as gzip"),
        ("sink.option.codec", "org.apache.hadoop.io.compress.GzipCodec", "must be a short name"),
    ],
)
def test_a_value_of_an_option_that_would_fill_the_jvm_or_load_a_class_is_refused(
    option: str, value: str, why: str
) -> None:
    config = {**GOOD, "sink.format": "csv", option: value}
    ((told,),) = _flaws(config).values()
    assert told.startswith(f"{option} {why}")


def test_each_option_that_is_taken_has_a_reason_and_its_name_counts_in_any_case() -> None:
    for end, lists in (("source", READING), ("sink", WRITING)):
        for fmt, names in lists.items():
            assert all(names.values())
            config = {**GOOD, "source.format": fmt, "sink.format": fmt}
            given = {
                f"{end}.option.{name.upper() if '.' not in name else name}": "1" for name in names
            }
            told = SparkPipeline.validate({**config, **given}).errors
            assert not [each for some in told.values() for each in some if "none of the" in each]
    column = {"sink.option.parquet.bloom.filter.enabled#id": "true"}
    assert SparkPipeline.validate({**GOOD, **column}).errors == {}
