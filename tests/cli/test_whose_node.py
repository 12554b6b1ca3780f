"""A verb that means the node of a data folder takes nobody else's answers for its."""

import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead.runtime.cluster.identity import identity_of

DELETE = ("delete", "connector", "flights")
WHO = Asked("GET", "/", None)


def folder_of_a_node(path: Path, rest: str | None = None) -> Path:
    """Write what a node leaves in its data folder, and where it is reached while it runs."""
    run = path / "run"
    run.mkdir(parents=True)
    (run / "key").touch(0o600)
    (run / "key").write_bytes(os.urandom(32))
    (run / "node.id").write_text(os.urandom(8).hex())
    if rest is not None:
        (run / "node.json").write_text(json.dumps({"rest": rest}))
    return path


@contextmanager
def refused(run: Run, cluster: Cluster, *arguments: str | Path) -> Generator[str]:
    """Run a verb that is to be refused, and give what it says."""
    cluster.asked.clear()
    ended = run(*arguments)
    assert (ended.code, ended.out) == (3, "")
    assert f"(pid {os.getpid()}), which is not the node of " in ended.err
    yield ended.err
    assert all(each.method == "GET" for each in cluster.asked)


def test_the_node_that_is_meant_is_asked_who_it_is_before_it_is_told_what_to_do(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    mine = folder_of_a_node(tmp_path / "mine", cluster.url)
    cluster.node = identity_of(mine / "run")
    cluster.answer("DELETE", "/connectors/flights", None, 204)
    assert run(*DELETE, "--data-dir", mine).code == 0
    assert cluster.asked == [WHO, Asked("DELETE", "/connectors/flights", None)]
    assert run("get", "groups", "--data-dir", mine).code == 0


@pytest.mark.parametrize("verb", [DELETE, ("get", "groups"), ("status",)])
def test_a_port_that_another_node_has_is_not_the_node_that_is_meant(
    verb: tuple[str, ...], run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    mine = folder_of_a_node(tmp_path / "mine", cluster.url)
    cluster.node = identity_of(folder_of_a_node(tmp_path / "other") / "run")
    with refused(run, cluster, *verb, "--data-dir", mine) as said:
        assert f"the node of {mine} (node " in said
        assert "nothing was changed" in said


def test_what_says_of_no_node_is_none(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    mine = folder_of_a_node(tmp_path / "mine", cluster.url)
    with refused(run, cluster, *DELETE, "--data-dir", mine) as said:
        assert "(it does not say which node it is)" in said


def test_a_node_that_is_down_is_not_who_has_its_port_by_now(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    mine = folder_of_a_node(tmp_path / "mine")
    cluster.node = identity_of(folder_of_a_node(tmp_path / "other") / "run")
    at = ("--set", f"listeners={cluster.url}")
    with refused(run, cluster, *DELETE, "--data-dir", mine, *at):
        pass


def test_a_copy_of_a_data_folder_is_another_node(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    original = folder_of_a_node(tmp_path / "original", cluster.url)
    cluster.node = identity_of(original / "run")
    copy = shutil.copytree(original, tmp_path / "copy")
    with refused(run, cluster, *DELETE, "--data-dir", copy):
        pass
    moved = original.rename(tmp_path / "moved")
    assert run("get", "groups", "--data-dir", moved).code == 0


def test_a_named_folder_on_which_no_node_has_run_is_nobody_s(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.node = identity_of(folder_of_a_node(tmp_path / "other") / "run")
    at = ("--set", f"listeners={cluster.url}")
    with refused(run, cluster, *DELETE, "--data-dir", tmp_path / "new", *at):
        pass


def test_a_named_folder_whose_node_never_came_up_is_nobody_s(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "mine" / "run").mkdir(parents=True)
    (tmp_path / "mine" / "run" / "lock").touch()
    cluster.answer("DELETE", "/connectors/flights", None, 204)
    listener = f"listeners={cluster.url}"
    with refused(run, cluster, *DELETE, "--data-dir", tmp_path / "mine", "--set", listener):
        pass


def test_who_names_a_url_means_whoever_answers_there(run: Run, cluster: Cluster) -> None:
    cluster.answer("DELETE", "/connectors/flights", None, 204)
    assert run(*DELETE, "--url", cluster.url).code == 0
