"""Whatever a power cut leaves of a sink, each batch that counts is published once."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from fairlead.events.commits import CommitId
from fairlead.events.model import Token
from fairlead.runtime.pipeline.stores.files.sink_folder.staging import replace_durably
from fairlead.runtime.pipeline.stores.kafka.sink.staging import StagingFolder, read
from fairlead_tests.connectors.sinks import (
    FIRST,
    TASK,
    Log,
    begin,
    claimed,
    commit,
    publish,
    published,
    sink_of,
    staged,
    write,
)
from fairlead_tests.power_cuts import PowerCuts

LAST = Token(9, 1)


class Logged(NamedTuple):
    """What the log holds, which is on another disk."""

    config: dict[str, str] | None
    """The task's config, with the claim on the sink."""
    log: Log
    rows: list[int]
    """The rows of the batches that count."""


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_whatever_a_power_cut_leaves_of_a_folder_each_batch_is_published_once(
    tmp_path: Path, form: str
) -> None:
    disk, root, log, rows = tmp_path / "disk", tmp_path / "disk/deep/out", Log(), list[int]()
    disk.mkdir()
    with PowerCuts(disk, Logged(None, Log(), [])) as cuts:
        config = claimed(root, sink_format=form)
        cuts.promise(Logged(config, log.copy(), []))
        sink = sink_of(config)
        begin(sink, log)
        for numbers in (range(4), range(4, 8)):
            commit(sink, log, numbers)
            rows += numbers
            cuts.promise(Logged(config, log.copy(), list(rows)))
            publish(sink, log)
            cuts.promise(Logged(config, log.copy(), list(rows)))
    states = 0
    for logged in cuts.replayed():
        states += 1
        known = logged.config or claimed(root, sink_format=form)
        sink, log = sink_of(known), logged.log.copy()
        begin(sink, log, LAST)
        assert (published(root), staged(root)) == (logged.rows, [])
        write(sink, log, [99], LAST)
        assert published(root) == [*logged.rows, 99]
    assert states > 50


def test_what_replaces_a_file_durably_leaves_the_old_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    with PowerCuts(tmp_path, [""]) as cuts:
        for number in range(3):
            new = f'{{"n": {number}}}'
            cuts.promise([f'{{"n": {number - 1}}}' if number else "", new])
            replace_durably(path, {"n": number})
            cuts.promise([new])
    for may_be in cuts.replayed():
        assert (path.read_text() if path.exists() else "") in may_be


def test_whatever_a_power_cut_leaves_a_batch_for_kafka_that_counts_is_whole(
    tmp_path: Path,
) -> None:
    folder, commit_id = StagingFolder(tmp_path / "deep" / "staging"), CommitId(*TASK, FIRST, 0)
    records = pa.table({"topic": ["t"] * 3})
    with PowerCuts(tmp_path, list[CommitId]()) as cuts:
        counted = list[CommitId]()
        for batch in range(2):
            folder.write(commit_id._replace(batch=batch), records)
            counted.append(commit_id._replace(batch=batch))
            cuts.promise(list(counted))
    for those in cuts.replayed():
        assert [read(folder.root / folder.name_of(each)).rows for each in those] == [3] * len(those)
