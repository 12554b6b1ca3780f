"""Connectors of files and of object stores: FileStream, S3, GCS, Azure Blob, HDFS."""

from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from .draft import Draft

FORMATS: Final = {
    "JsonFormat": "json",
    "ParquetFormat": "parquet",
    "AvroFormat": "parquet",
    "json": "json",
    "jsonl": "json",
    "parquet": "parquet",
    "avro": "parquet",
    "csv": "csv",
}
"""Formats of Confluent's classes and of Aiven's `format.output.type`, and those here."""
CODECS: Final = {"gzip": "gzip", "snappy": "snappy", "zstd": "zstd", "none": "none", "": ""}
BUCKETS: Final = (
    "s3.bucket.name",
    "aws.s3.bucket.name",
    "aws_s3_bucket",
    "gcs.bucket.name",
    "azblob.container.name",
    "azure.storage.container.name",
)
FOLDERS: Final = ("aws.s3.prefix", "aws_s3_prefix", "file.name.prefix", "prefix")
CREDENTIALS: Final = (
    "aws.",
    "aws_",
    "s3.",
    "gcs.",
    "azblob.",
    "azure.",
    "hdfs.",
    "hadoop.",
    "store.",
)
NEVER: Final = "\x1f", "\x1e"
"""A separator and a quote that no line of text has: each line is one column."""


def file_stream_source(draft: Draft) -> None:
    """Read files of one column, and write their lines to a topic."""
    file = PurePosixPath(draft.take("file", "/dev/stdin"))
    draft.put(
        source_type="files",
        source_format="csv",
        source_path=str(file.parent),
        source_glob=file.name,
        source_header="false",
        source_schema="line STRING",
        source_separator=NEVER[0],
        source_quote=NEVER[1],
    )
    draft.remark("file", "a file is read once, when it is complete: what is appended later is not")
    if not file.is_absolute():
        draft.remark(
            "file", f"{file} is relative: give source.path the absolute path of its folder"
        )
        draft.put(source_path=f"/{file.parent}".rstrip("./") or "/")
    draft.drop("batch.target.ms says how large a batch is", "batch.size")
    draft.write_topic(draft.take("topic", "topic"))


def file_stream_sink(draft: Draft) -> None:
    """Write the rows of topics to files of a folder, not to lines of one file."""
    draft.read_topics()
    file = draft.take("file", "/tmp/connect.sink")  # noqa: S108  # a file is required there
    path = f"{file if file.startswith('/') else f'/{file}'}.d"
    draft.put(sink_type="files", sink_format="json", sink_path=path)
    draft.remark(
        "file", f"there are many files in the folder {path}, one line of JSON for each row"
    )


def object_store(draft: Draft) -> None:
    """Write topics to files in the folder where a bucket is mounted."""
    draft.read_topics()
    given = draft.take("format.class") or draft.take("format.output.type", "json")
    kind = given.rpartition(".")[2]
    written = FORMATS.get(kind, "json")
    draft.put(sink_type="files", sink_format=written, sink_path=_folder(draft))
    if written != kind.removesuffix("Format").lower():
        draft.remark("sink.format", f"{kind} is not written here, {written} is")
    _codec(draft)
    _partitions(draft)
    draft.rename({"rotate.interval.ms": "sink.rotate.interval.ms"})
    sizes = "files are as large as sink.file.max.bytes and batch.target.ms make them"
    draft.drop(sizes, "flush.size", "file.size", "file.max.records", "rotate.schedule.interval.ms")
    names = "names of files are fairlead's own"
    draft.drop(names, "file.name.template", "file.delim", "filename.offset.zero.pad.width")
    columns = "all columns are written; `transforms` of type select choose others"
    draft.drop(columns, "format.output.fields", "format.output.fields.value.encoding")
    draft.drop(columns, "format.output.envelope", "store.kafka.keys", "store.kafka.headers")
    draft.drop("columns that come later: sink.auto.evolve", "schema.compatibility")
    for prefix in CREDENTIALS:
        draft.drop_prefix(prefix, "a mount has the credentials and the tuning of the store")
    draft.drop("a mount is a folder like others", "storage.class", "part.size")


def _folder(draft: Draft) -> str:
    """Return where the objects are, below the folder in which buckets are mounted."""
    bucket = next((name for key in BUCKETS if (name := draft.take(key))), "")
    url = draft.take("store.url") or draft.take("hdfs.url")
    if url:
        place = urlsplit(url)
        bucket = bucket or f"{place.hostname or ''}{place.path}".strip("/")
    inside = draft.take("topics.dir") or next(
        (name for key in FOLDERS if (name := draft.take(key))), ""
    )
    if "{{" in inside or "${" in inside:
        draft.remark("sink.path", f"the folder {inside!r} is not made of dates here")
        inside = inside.partition("{{")[0].partition("${")[0]
    parts = [each for each in (bucket or "bucket", inside or "topics") if each]
    path = "/".join([draft.mount.rstrip("/"), *(each.strip("/") for each in parts)])
    draft.remark("sink.path", f"mount the store there (s3fs, gcsfuse, blobfuse, hdfs-fuse): {path}")
    return path


def _codec(draft: Draft) -> None:
    codec_name = next(
        (
            name
            for key in (
                "parquet.codec",
                "s3.compression.type",
                "gcs.compression.type",
                "az.compression.type",
                "file.compression.type",
                "avro.codec",
            )
            if (name := draft.take(key))
        ),
        "",
    )
    if codec := CODECS.get(codec_name):
        draft.config["sink.option.compression"] = codec
    elif codec_name:
        draft.remark("sink.option.compression", f"{codec_name} is not written here")


def _partitions(draft: Draft) -> None:
    """Folders by columns; by topic, if there may be several."""
    partitioner = draft.take("partitioner.class").rpartition(".")[2]
    columns = draft.take("partition.field.name")
    if columns:
        draft.config["sink.partition.by"] = columns
    elif "," in draft.config.get("source.topics", "") or "source.topics.regex" in draft.config:
        draft.config["sink.partition.by"] = "_topic"
    if "Time" in partitioner or "path.format" in draft.left:
        text = "make a column of the time with a transform, and name it in sink.partition.by"
        draft.remark("partitioner.class", text)
    by = "folders are by columns: sink.partition.by"
    draft.drop(by, "path.format", "partition.duration.ms", "locale", "timezone")
    draft.drop(by, "timestamp.extractor", "timestamp.field", "directory.delim")
