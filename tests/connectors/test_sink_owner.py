# pyright: basic
"""A sink knows whose it is: who did not write it, or knows less than it, is refused."""

import errno
import os
import shutil
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.errors import SinkAway, SinkBroken
from fairlead.runtime.pipeline.stores.files import keys as files
from fairlead.runtime.pipeline.stores.files.sink_folder import marks
from fairlead.runtime.pipeline.stores.files.sink_folder.publishing import _Publication
from fairlead.runtime.pipeline.stores.files.sink_folder.root import claim_sink
from fairlead_tests.connectors.pipes import config_to
from fairlead_tests.connectors.sinks import (
    FIRST,
    NAME,
    SECOND,
    Log,
    begin,
    begun,
    claimed,
    commit,
    publish,
    published,
    sink_of,
    staged,
    write,
)

LATER = Token(3, 1)

SOME = Manifest("/there", "staged", 1, 10, 1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "out"


def adopted(root: Path, before: dict[str, str], cluster: str = "a") -> dict[str, str]:
    return claimed(root, cluster, before, sink_adopt="true")


def test_another_clusters_sink_is_refused_before_anything_is_staged(root: Path) -> None:
    _, sink, log = begun(root)
    write(sink, log, [1])
    seen = sorted(root.rglob("*"))
    with pytest.raises(SinkBroken) as refusal:
        claimed(root, "b")
    told = str(refusal.value)
    assert [word in told for word in ("belongs to another cluster", "Nothing was", "sink.adopt")]
    assert told.count(". ") == 2, "three sentences"
    assert sorted(root.rglob("*")) == seen


def test_connectors_of_one_cluster_share_a_root(root: Path) -> None:
    _, sink, log = begun(root)
    config = claimed(root)
    other = keys.keys_of(config).parse(config)
    assert claim_sink(other, "a", "another", None).writer
    write(sink, log, [1])
    assert published(root) == [1]


def test_a_folder_whose_file_system_has_no_hard_links_is_claimed_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = OSError(errno.EPERM, "Operation not permitted")
    monkeypatch.setattr(os, "link", Mock(side_effect=refused))
    _, sink, log = begun(root)
    write(sink, log, [1])
    assert published(root) == [1]
    with pytest.raises(SinkBroken, match="belongs to another cluster"):
        claimed(root, "b")
    assert [*root.rglob("*.new")] == []


def test_a_claim_that_fails_without_hard_links_leaves_no_half_mark(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "not permitted")))
        patch.setattr(Path, "rename", Mock(side_effect=OSError(errno.EIO, "gone")))
        with pytest.raises(SinkAway):
            claimed(root)
    assert [each for each in root.rglob("*") if each.is_file()] == []
    claimed(root)


def test_the_claim_of_a_connector_is_no_mark_of_one_whose_name_ends_in_a_dash(root: Path) -> None:
    config = claimed(root)
    task = Resource(f"{NAME}-", 1)
    assert marks.read_mark(root, task) is None
    mark = marks.TaskMark("claim", FIRST, marks.this_process(), "here")
    marks.write_mark(root, task, mark)
    marks.remove_older_marks(root, task, FIRST)
    assert marks.read_mark(root, task) == mark
    writer, *_ = config[files.TASK_CLAIM].split(":")
    assert marks.read_claim(root, NAME) == ("a", writer)


def test_a_restored_backup_is_refused_and_goes_on_once_it_adopts_the_sink(root: Path) -> None:
    config, sink, log = begun(root)
    write(sink, log, [1])
    backup = log.copy()
    write(sink, log, [2])
    with pytest.raises(
        SinkBroken,
        match=r"is newer than this log.*up to batch 1 .*none after batch 0.*"
        r"since the copy \(\d files with 1 rows: part-.*would be there twice",
    ):
        begin(sink_of(config), backup, SECOND)
    assert (published(root), staged(root)) == ([1, 2], [])
    anew = adopted(root, config)
    again = sink_of(anew)
    begin(again, backup, SECOND)
    write(again, backup, [2], SECOND)
    assert published(root) == [1, 2, 2], "what was not moved away is there twice, as was told"


def test_the_log_that_was_left_behind_is_refused_after_an_adoption(root: Path) -> None:
    config, sink, log = begun(root)
    write(sink, log, [1])
    adopted(root, config)
    for act in (lambda: commit(sink, log, [2]), lambda: begin(sink_of(config), log, SECOND)):
        with pytest.raises(SinkBroken, match="was adopted for c from another log"):
            act()
    assert published(root) == [1]


def test_the_word_to_adopt_counts_once(root: Path) -> None:
    config = claimed(root)
    first = adopted(root, config)
    assert adopted(root, first) == first, "it stays in the config and does nothing more"
    log = Log()
    sink = sink_of(first)
    begin(sink, log)
    write(sink, log, [1])
    backup = Log()
    with pytest.raises(SinkBroken, match=r"set sink\.adopt to false and then to true again"):
        begin(sink_of(adopted(root, first)), backup, SECOND)
    shutil.rmtree(root)
    assert adopted(root, first) == first
    assert not root.exists(), "a root that is gone is not made by a word that was obeyed before"
    without = claimed(root, before=first, sink_adopt="false")
    assert without[files.TASK_CLAIM] == first[files.TASK_CLAIM]
    assert adopted(root, without)[files.TASK_CLAIM] != first[files.TASK_CLAIM]
    assert root.is_dir()


def test_a_cluster_that_adopts_a_sink_ends_the_others_right_to_it(root: Path) -> None:
    _, sink, log = begun(root)
    left = commit(sink, log, [1])
    theirs = claimed(root, "b", None, sink_adopt="true")
    for act in (lambda: publish(sink, log), lambda: commit(sink, log, [2])):
        with pytest.raises(SinkBroken, match="belongs to another cluster"):
            act()
    other, their_log = sink_of(theirs, "b"), Log()
    begin(other, their_log)
    write(other, their_log, [10])
    assert (published(root), log.unpublished) == ([10], [left])


def test_a_fresh_data_folder_with_the_old_key_is_refused(root: Path) -> None:
    _, sink, log = begun(root)
    write(sink, log, [1])
    with pytest.raises(SinkBroken, match=r"is newer than this log.*knows of none of them"):
        begin(sink_of(claimed(root)), Log(), SECOND)


def test_a_connector_that_is_made_anew_in_the_same_log_goes_on(root: Path) -> None:
    _, sink, log = begun(root)
    write(sink, log, [1])
    again = sink_of(claimed(root))
    begin(again, log, SECOND)
    write(again, log, [2], SECOND)
    assert published(root) == [1, 2]


def test_of_a_log_and_its_living_copy_only_one_writes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, sink, log = begun(root)
    write(sink, log, [1])
    copy = log.copy()
    monkeypatch.setattr(marks, "this_process", lambda: "another")
    twin = sink_of(config)
    begin(twin, copy, SECOND)
    monkeypatch.undo()
    with pytest.raises(SinkBroken, match="from another log: process another"):
        commit(sink, log, [2])
    monkeypatch.setattr(marks, "this_process", lambda: "another")
    write(twin, copy, [2], SECOND)
    monkeypatch.undo()
    for token in (FIRST, SECOND, LATER):
        with pytest.raises(SinkBroken):
            begin(sink_of(config), log, token)
    assert published(root) == [1, 2]


def test_a_sink_that_came_back_with_older_content_is_refused_until_the_newer_is_back(
    root: Path, tmp_path: Path
) -> None:
    config, sink, log = begun(root)
    write(sink, log, [1])
    shutil.copytree(root, tmp_path / "older")
    write(sink, log, [2])
    root.rename(tmp_path / "newer")
    (tmp_path / "older").rename(root)
    for act in (lambda: commit(sink, log, [3]), lambda: begin(sink_of(config), log, SECOND)):
        with pytest.raises(SinkBroken, match=r"is older than this log: batch 1 of token 1-1"):
            act()
    root.rename(tmp_path / "older")
    (tmp_path / "newer").rename(root)
    begin(sink, log, SECOND)
    write(sink, log, [3], SECOND)
    assert published(root) == [1, 2, 3]
    root.rename(tmp_path / "newer")
    (tmp_path / "older").rename(root)
    anew = sink_of(adopted(root, config))
    begin(anew, log, LATER)
    write(anew, log, [4], LATER)
    assert published(root) == [1, 4]


def test_a_copy_is_refused_while_the_log_that_it_was_made_of_is_at_work(root: Path) -> None:
    config, sink, log = begun(root)
    write(sink, log, [1])
    copy = log.copy()
    copy.place = "there"
    with pytest.raises(SinkBroken, match="from another log"):
        begin(sink_of(config), copy, SECOND)
    write(sink, log, [2])
    assert published(root) == [1, 2]


def test_nodes_of_this_machine_whose_logs_are_copies_from_one_store_follow_each_other(
    root: Path,
) -> None:
    config, sink, log = begun(root)
    write(sink, log, [1])
    on_another_node = log.copy()
    assert on_another_node.place == log.place, "as of a ledger with a store"
    next_owner = sink_of(config)
    begin(next_owner, on_another_node, SECOND)
    write(next_owner, on_another_node, [2], SECOND)
    assert published(root) == [1, 2]


@pytest.mark.parametrize(
    ("token", "by"),
    [(SECOND, "this"), (FIRST, "1 on elsewhere since 0"), (SECOND, "1 on elsewhere since 0")],
)
def test_a_task_is_not_begun_beside_a_mark_of_a_token_that_its_log_has_not_given(
    root: Path, token: Token, by: str
) -> None:
    config, sink, log = begun(root)
    write(sink, log, [1])
    mark = marks.read_mark(root, Resource(NAME, 0))
    assert mark is not None
    process = marks.this_process() if by == "this" else by
    intruder = replace(mark, token=token, process=process)
    marks.write_mark(root, Resource(NAME, 0), intruder)
    with pytest.raises(SinkBroken) as refused:
        begin(sink_of(config), log)
    told = f"process {process} has token {token}, which this log, at token {FIRST}, has not given"
    assert told in str(refused.value)
    assert marks.read_mark(root, Resource(NAME, 0)) == intruder
    with pytest.raises(SinkBroken, match="which this log, at token 1-1, has not given"):
        commit(sink, log, [2])
    assert published(root) == [1]


def test_a_log_that_was_moved_goes_on_once_nobody_writes_from_its_old_place(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, log = claimed(root), Log()
    monkeypatch.setattr(marks, "this_process", lambda: "1 on nowhere since 1.00")
    sink = sink_of(config)
    begin(sink, log)
    write(sink, log, [1])
    monkeypatch.undo()
    log.place = "there"
    again = sink_of(config)
    begin(again, log, SECOND)
    write(again, log, [2], SECOND)
    assert published(root) == [1, 2]


def test_a_batch_that_was_committed_before_a_copy_took_over_is_not_published_as_well(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, sink, log = begun(root)
    copy = log.copy()
    commit(sink, log, [1])
    monkeypatch.setattr(marks, "this_process", lambda: "another")
    twin = sink_of(config)
    begin(twin, copy, SECOND)
    write(twin, copy, [1], SECOND)
    monkeypatch.undo()
    with pytest.raises(SinkBroken, match="from another log"):
        publish(sink, log)
    assert (published(root), len(log.unpublished)) == ([1], 1)


def test_rows_that_are_lost_for_good_are_given_up_by_adopting(root: Path) -> None:
    config, sink, log = begun(root)
    commit(sink, log, [1, 2])
    shutil.rmtree(root / "_fairlead")
    with pytest.raises(SinkBroken):
        publish(sink, log)
    told: list[str] = []
    again = sink_of(adopted(root, config), told=told)
    begin(again, log, SECOND)
    write(again, log, [3], SECOND)
    assert published(root) == [3]
    assert ["continues without them" in each and "2 rows" in each for each in told] == [True]


def test_of_a_batch_that_is_given_up_what_is_left_is_published(root: Path) -> None:
    config, sink, log = begun(root)
    commit(sink, log, [1, 2, 3])
    sorted(staged(root))[0].unlink()
    with pytest.raises(SinkBroken):
        publish(sink, log)
    begin(sink_of(adopted(root, config)), log, SECOND)
    assert (published(root), staged(root)) == ([2, 3], [])


def test_a_sink_path_that_changed_is_claimed_anew_and_what_is_left_goes_to_the_old_one(
    root: Path, tmp_path: Path
) -> None:
    config, sink, log = begun(root)
    commit(sink, log, [1])
    moved = claimed(tmp_path / "other", before=config)
    root.rename(tmp_path / "aside")
    with pytest.raises(SinkAway, match=f"{root} is gone"):
        begin(sink_of(moved), log, SECOND)
    (tmp_path / "aside").rename(root)
    again = sink_of(moved)
    begin(again, log, SECOND)
    write(again, log, [2], SECOND)
    assert (published(root), published(tmp_path / "other")) == ([1], [2])


def test_rows_that_are_lost_in_the_folder_of_an_earlier_config_are_given_up_by_going_back_to_it(
    root: Path, tmp_path: Path
) -> None:
    config, sink, log = begun(root)
    commit(sink, log, [1, 2])
    shutil.rmtree(root / "_fairlead/staging")
    moved = claimed(tmp_path / "other", "a", config, sink_adopt="true")
    remedy = f"set the path back to {root}, with sink.adopt=true, until the batch is published"
    with pytest.raises(SinkBroken, match=remedy):
        begin(sink_of(moved), log, SECOND)
    back = claimed(root, "a", moved, sink_adopt="true")
    begin(sink_of(back), log, LATER)
    assert (log.unpublished, published(root)) == ([], [])


def test_an_unreadable_mark_is_named(root: Path) -> None:
    config = claimed(root)
    (root / marks.OWNER).write_text("{")
    with pytest.raises(SinkBroken, match=f"^{root / marks.OWNER} is corrupt"):
        begin(sink_of(config), Log())
    assert NAME in config.values()


def test_a_batch_that_waits_in_the_folder_of_an_earlier_config_is_published_there(
    root: Path, tmp_path: Path
) -> None:
    config, former, log = begun(root)
    write(former, log, [1])
    commit(former, log, [2])
    elsewhere = tmp_path / "elsewhere"
    moved = sink_of(claimed(elsewhere, "a", config))
    begin(moved, log, SECOND)
    write(moved, log, [3], SECOND)
    assert (published(root), staged(root), published(elsewhere)) == ([1, 2], [], [3])


def test_a_former_owner_that_wakes_while_it_publishes_leaves_the_mark_of_its_successor(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, log = claimed(root), Log()
    former, successor = sink_of(config), sink_of(config)
    begin(former, log)
    write(former, log, [1])
    left = commit(former, log, [2])
    move = _Publication.move

    def overtaken(*given: Any) -> None:
        monkeypatch.undo()
        begin(successor, log, SECOND)
        write(successor, log, [3], SECOND)
        move(*given)

    monkeypatch.setattr(_Publication, "move", overtaken)
    former.publish(left.manifest, left.commit_id, 0)
    write(successor, log, [4], SECOND)
    assert published(root) == [1, 2, 3, 4]
    begin(sink_of(config), log, LATER)


def test_a_former_owner_that_wakes_while_it_acquires_leaves_the_mark_of_its_successor(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, log = claimed(root), Log()
    successor = sink_of(config)
    write_mark = marks.write_mark

    def overtaken(*given: Any) -> None:
        monkeypatch.undo()
        begin(successor, log, SECOND)
        write(successor, log, [1], SECOND)
        write_mark(*given)

    monkeypatch.setattr(marks, "write_mark", overtaken)
    begin(sink_of(config), Log())
    write(successor, log, [2], SECOND)
    begin(sink_of(config), log, LATER)
    assert published(root) == [1, 2]


def test_a_batch_that_waits_is_kept_for_the_type_of_sink_that_staged_it(tmp_path: Path) -> None:
    postgres = {"table_name_format": "t", "connection_url": "postgresql://127.0.0.1:1/none"}
    kafka = {"topic": "t", "bootstrap_servers": "127.0.0.1:1", "staging_path": str(tmp_path)}
    kinds = {
        "files": {"path": str(tmp_path), "format": "parquet"},
        "postgres": postgres,
        "kafka": kafka,
    }
    pipelines = {
        kind: SparkPipeline().pipeline(
            Context(Resource("orders", 0), print),
            {**config_to(kind, given), files.TASK_SCHEMA: "id BIGINT"},
        )
        for kind, given in kinds.items()
    }
    for kind, pipeline in pipelines.items():
        nothing = Manifest("/there", "staged", 0, 0, 0)
        assert pipeline.with_sink_type(nothing) == nothing
        assert replace(pipeline, sink_type="").with_sink_type(SOME) == SOME
        assert pipeline.with_sink_type(SOME) == replace(SOME, note={"sink.type": kind})
    for before, now in permutations(kinds, 2):
        manifest = pipelines[before].with_sink_type(SOME)
        with pytest.raises(SinkBroken, match=f"sink.type={before}.*now has sink.type={now}"):
            pipelines[now].publish(manifest, CommitId("orders", 0, Token(1, 1), 1), 1)
