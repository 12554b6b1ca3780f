"""`dead-letters`: the rows that were refused, page by page."""

import json
from typing import Any

from cli.conftest import Cluster, Run

from fairlead_tests.cli import answered

PATH = "/connectors/flights/dead-letters"
WHERE = "the folder /data/bad"


def letter(raw: str | None) -> dict[str, Any]:
    place = "file /data/a.csv"
    known = {"reason": "is \x1b bad", "stage": "source", "place": place, "task": 0, "batch": 7}
    return {"time_ms": answered.COMMITTED_MS, "raw": raw, **known}


def page(following: str | None, *letters: dict[str, Any]) -> dict[str, Any]:
    return {"letters": [*letters], "next": following, "where": WHERE}


def test_as_many_are_listed_as_are_asked_for_though_a_page_has_fewer(
    run: Run, cluster: Cluster
) -> None:
    cluster.answer("GET", f"{PATH}?limit=2", page("c1", letter("x")))
    cluster.answer("GET", f"{PATH}?limit=1&cursor=c1", page("c2"))
    cluster.answer("GET", f"{PATH}?limit=1&cursor=c2", page("c3", letter(None)))
    ended = run("dead-letters", "flights", "--limit", "2", "--url", cluster.url)
    assert ended.out == (
        "TIME                      STAGE   PLACE             REASON       TEXT\n"
        "2013-01-01T00:26:40.000Z  source  file /data/a.csv  is \\x1b bad  x\n"
        "2013-01-01T00:26:40.000Z  source  file /data/a.csv  is \\x1b bad\n"
    )
    assert ended.err == f"fairlead: {WHERE} has more: --limit 4, or --export for all\n"


def test_an_export_has_all_of_them_as_json_lines(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", f"{PATH}?limit=1000", page("c1", letter("x")))
    cluster.answer("GET", f"{PATH}?limit=1000&cursor=c1", page(None, letter("y")))
    ended = run("dead-letters", "flights", "--export", "--url", cluster.url)
    assert [*map(json.loads, ended.out.splitlines())] == [letter("x"), letter("y")]
    assert run("dead-letters", "a", "b", "--url", cluster.url).code == 2


def retried(*, is_new: bool) -> dict[str, Any]:
    config = {"source.type": "dead-letters", "sink.password": "********"}
    about = {"connector": "flights", "name": "flights-retry", "is_new": is_new}
    return {**about, "config": config, "warnings": ["it is slow"]}


def test_a_retry_is_shown_first_and_made_then(run: Run, cluster: Cluster) -> None:
    path = f"{PATH}/retry"
    cluster.answer("POST", f"{path}?dry_run=true", retried(is_new=True))
    cluster.answer("POST", path, retried(is_new=False))
    dry = run("dead-letters", "retry", "flights", "--dry-run", "--url", cluster.url)
    assert dry.out == (
        "Name:     flights-retry\n"
        "Retries:  flights\n"
        "\n"
        "Config\n"
        "sink.password:  ********\n"
        "source.type:    dead-letters\n"
    )
    assert dry.err == (
        "fairlead: warning: flights-retry: it is slow\n"
        "fairlead: this was a dry run: nothing was made\n"
    )
    made = run("dead-letters", "retry", "connector", "flights", "--url", cluster.url, "-o", "json")
    assert json.loads(made.out) == retried(is_new=False)
    assert "flights-retry goes on with new letters; `fairlead describe flights-retry`" in made.err
    assert run("dead-letters", "flights", "--dry-run", "--url", cluster.url).code == 2
    assert run("dead-letters", "retry", "a", "b", "--url", cluster.url).code == 2


def test_a_connector_may_be_called_retry(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/connectors/retry/dead-letters?limit=50", page(None, letter("x")))
    assert run("dead-letters", "retry", "--url", cluster.url).out.endswith("is \\x1b bad  x\n")
