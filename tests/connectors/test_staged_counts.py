"""How many rows a staged file has, and what Spark says when such files vanish."""

import gzip
import zlib
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from fairlead.runtime.pipeline.spi.errors import SinkAway
from fairlead.runtime.pipeline.stores.files.sink.row_counts import counter_of
from fairlead.runtime.pipeline.stores.files.sink.sink import explain_lost_files
from fairlead.runtime.pipeline.stores.files.sink.writing import WriteFormat

RFC = {"escape": '"', "header": "true"}
TEXT = b'a,b\n1,"x\ny"\n2,"""\n"""\n'


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("json", {"encoding": "utf-16"}),
        ("json", {"charset": "UTF-32"}),
        ("json", {"compression": "LZ4"}),
        ("json", {"codec": "snappy"}),
        ("json", {"pretty": "TRUE"}),
        ("json", {"linesep": "\r"}),
        ("csv", {**RFC, "quote": ""}),
        ("csv", {**RFC, "quote": "'"}),
        ("csv", {"header": "true"}),
        ("csv", {**RFC, "escapequotes": "false"}),
    ],
)
def test_rows_of_which_other_bytes_may_stand_for_line_ends_are_not_counted(
    form: str, options: dict[str, str]
) -> None:
    assert counter_of(WriteFormat(form, options=options)) is None


@pytest.mark.parametrize(
    ("form", "options", "name", "content", "rows"),
    [
        ("json", {}, "p.json", b"{}\n{}\n", 2),
        (
            "json",
            {"encoding": "US-ASCII", "linesep": "\n"},
            "p.json.gz",
            gzip.compress(b"{}\n", mtime=0),
            1,
        ),
        ("json", {}, "p.json.deflate", zlib.compress(b"{}\n{}\n{}\n"), 3),
        ("json", {}, "p.lz4", b"{}\n", -1),
        ("csv", RFC, "p.csv", TEXT, 2),
        ("csv", {**RFC, "header": "false"}, "p.csv", TEXT, 3),
        ("csv", RFC, "p.csv", b"", 0),
    ],
)
def test_rows_are_counted_by_their_line_ends_outside_of_quotes(
    tmp_path: Path, form: str, options: dict[str, str], name: str, content: bytes, rows: int
) -> None:
    (tmp_path / name).write_bytes(content)
    count = counter_of(WriteFormat(form, options=options))
    assert count is not None
    assert count(tmp_path / name) == rows


@pytest.mark.parametrize(
    ("said", "is_lost"),
    [
        ("File /out/_fairlead/staging/x/part-0 does not exist", True),
        ("/out/_fairlead/staging/x: No such file or directory", True),
        ("File /out/x does not exist", False),
        ("File /out/_fairlead/staging/x/part-0 is odd", False),
    ],
)
def test_staged_files_that_vanish_under_spark_are_told_as_that(said: str, is_lost: bool) -> None:
    found = explain_lost_files(Path("/out"), PySparkException(said))
    told = (
        "files of a batch vanished from /out/_fairlead/staging while Spark wrote them. Nothing of"
        " the batch counts, and it is written again. Keep whatever cleans up away from"
        " /out/_fairlead/staging"
    )
    assert (type(found), str(found)) == ((SinkAway, told) if is_lost else (type(None), "None"))
