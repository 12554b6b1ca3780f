"""One grammar of all verbs: the kind is optional, names are several, tasks are called as shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Cluster, Run, in_each_pause

from fairlead.runtime.interfaces.cli.catalogue import HABITS, VERBS
from fairlead.runtime.interfaces.cli.main import load_verb
from fairlead.runtime.interfaces.cli.output.printing import Misused
from fairlead.runtime.interfaces.cli.requests.grammar import (
    Kind,
    NamedObjects,
    parse_task,
    split_words,
)
from fairlead_tests.cli import answered

KINDS = (Kind.CONNECTOR, Kind.TASK)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("flights", NamedObjects(Kind.CONNECTOR, ["flights"], is_told=False)),
        (
            "flights connector",
            NamedObjects(Kind.CONNECTOR, ["flights", "connector"], is_told=False),
        ),
        ("connector flights", NamedObjects(Kind.CONNECTOR, ["flights"], is_told=True)),
        ("Connectors a b", NamedObjects(Kind.CONNECTOR, ["a", "b"], is_told=True)),
        ("connector connector", NamedObjects(Kind.CONNECTOR, ["connector"], is_told=True)),
        ("connector worker", NamedObjects(Kind.CONNECTOR, ["worker"], is_told=True)),
        ("connector connector/a", NamedObjects(Kind.CONNECTOR, ["connector/a"], is_told=True)),
        ("connector/a connectors/b/c", NamedObjects(Kind.CONNECTOR, ["a", "b/c"], is_told=True)),
        ("tasks a-0 b/1", NamedObjects(Kind.TASK, ["a-0", "b/1"], is_told=True)),
        ("task/a/0", NamedObjects(Kind.TASK, ["a/0"], is_told=True)),
        ("a/0", NamedObjects(Kind.CONNECTOR, ["a/0"], is_told=False)),
        ("connectr", NamedObjects(Kind.CONNECTOR, ["connectr"], is_told=False)),
    ],
)
def test_the_first_word_is_the_kind_if_it_is_the_word_of_one(
    words: str, named: NamedObjects
) -> None:
    assert split_words("restart", words.split(), KINDS) == named


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "say of what: `fairlead stop connector NAME`"),
        (
            "connectors",
            "say which connector: `fairlead stop connector NAME`; a connector that is called so:"
            " `fairlead stop connector connectors`",
        ),
        (
            "task a-0",
            "`fairlead stop` is of a connector, not of a task; a task has no state of its own:"
            " name its connector; a connector that is called so: `fairlead stop connector task`",
        ),
        (
            "offset a",
            "`fairlead stop` is of a connector, not of an offset; of offsets: `fairlead offsets`; a"
            " connector that is called so: `fairlead stop connector offset`",
        ),
        (
            "worker w1",
            "`fairlead stop` is of a connector, not of a worker; a connector that is called so:"
            " `fairlead stop connector worker`",
        ),
        (
            "conector a",
            "'conector' is no kind (did you mean connector?); a connector that is called so:"
            " `fairlead stop connector conector a`",
        ),
        ("connector/a b", "connector/a b: all names are of one kind, KIND/NAME or KIND NAME…"),
    ],
)
def test_what_a_verb_is_not_of_is_refused_with_a_remedy(words: str, said: str) -> None:
    with pytest.raises(Misused) as refused:
        split_words("stop", words.split(), (Kind.CONNECTOR,))
    assert str(refused.value) == said


def test_a_task_is_called_by_its_connector_and_number() -> None:
    assert [str(parse_task(each)) for each in ("a-0", "a/1", "a-b-12", "a/b/3")] == [
        *("a-0", "a-1", "a-b-12", "a/b-3"),
    ]
    assert [parse_task(each) for each in ("a", "-1", "a-", "a-x", "a-²", "a-1234567890")] == [
        None
    ] * 6


ORDERS = {
    "pause": [("PUT", "/connectors/{}/pause")],
    "resume": [("PUT", "/connectors/{}/resume")],
    "stop": [("PUT", "/connectors/{}/stop")],
    "restart": [("POST", "/connectors/{}/restart")],
    "delete": [("DELETE", "/connectors/{}")],
    "scale --tasks 3": [("PATCH", "/connectors/{}/config")],
    "wait --for deleted": [("GET", "/connectors")],
    "offsets reset": [("DELETE", "/connectors/{}/offsets")],
    "cordon": [("PUT", "/workers/{}/cordon")],
    "uncordon": [("PUT", "/workers/{}/uncordon")],
    "drain": [("PUT", "/workers/{}/drain")],
    "expect": [("PUT", "/workers/{}/expect")],
    "remove": [("DELETE", "/workers/{}")],
}
OF_WORKERS = {"cordon", "uncordon", "drain", "expect", "remove"}


@pytest.mark.parametrize(
    "form", ["{}", "{0} {1}", "kind {0} {1}", "kinds {0}", "kind/{0} kind/{1}"]
)
@pytest.mark.parametrize("verb", ORDERS)
def test_every_verb_takes_several_names_and_the_word_of_their_kind(
    verb: str, form: str, run: Run, cluster: Cluster
) -> None:
    kind = "worker" if verb in OF_WORKERS else "connector"
    order = {"worker": "w", "group_id": "g", "cordoned": True, "draining": False}
    order |= {"expected_back_ms": None, "removing": None, "member_id": None, "process": None}
    info = {**answered.INFO, "message": "done", **order}
    for name in ("a", "b"):
        for method, path in ORDERS[verb]:
            status = 204 if "restart" in path else 200
            cluster.answer(method, path.format(name), info, status)
    cluster.answer("GET", "/connectors", [])
    names = ["a"] if "{1}" not in form else ["a", "b"]
    if verb.startswith("scale"):
        cluster.answer("GET", "/connectors", ["a", "b"])
    words = form.replace("kind", kind).format("a", "b").split()
    verb_words = verb.split()
    first = 2 if verb == "offsets reset" else 1
    ended = run(*verb_words[:first], *words, *verb_words[first:], "--url", cluster.url)
    assert (ended.code, ended.err) == (0, "")
    asked = [
        (each.method, each.path) for each in cluster.asked if (each.method, each.path) not in HELP
    ]
    if not verb.startswith("wait"):
        assert asked == [(m, path.format(n)) for n in names for m, path in ORDERS[verb]]


HELP = {("GET", "/connectors")}
"""What is asked to know which connectors there are."""


@pytest.mark.parametrize(
    "words",
    [
        "flights-1",
        "flights/1",
        "task flights-1",
        "task flights/1",
        "tasks/flights-1",
        "task/flights/1",
    ],
)
def test_a_task_is_restarted_by_the_name_that_tables_print(
    words: str, run: Run, cluster: Cluster
) -> None:
    cluster.answer("GET", "/connectors", ["flights"])
    cluster.answer("POST", "/connectors/flights/tasks/1/restart", None, 204)
    told = run("restart", *words.split(), "--url", cluster.url)
    assert told == (0, "task flights-1 restarted\n", "")


def test_a_connector_whose_name_looks_like_a_task_is_restarted_as_a_connector(
    run: Run, cluster: Cluster
) -> None:
    cluster.answer("GET", "/connectors", ["flights", "flights-1"])
    cluster.answer("POST", "/connectors/flights-1/restart", None, 204)
    for words in (["flights-1"], ["connector", "flights-1"]):
        told = run("restart", *words, "--url", cluster.url)
        assert told == (0, "connector flights-1 restarted\n", "")
    wrong = run("restart", "task", "flights", "--url", cluster.url)
    said = "'flights' is no task: a task is called as `get tasks` shows it, flights-0"
    assert wrong == (2, "", f"fairlead: {said}\n")


def test_connectors_are_found_by_regular_expressions_of_their_whole_names(
    run: Run, cluster: Cluster
) -> None:
    cluster.answer("GET", "/connectors", ["ab", "abc", "b"])
    for name in ("ab", "abc"):
        cluster.answer("PUT", f"/connectors/{name}/pause", None, 202)
    told = run("pause", "-e", "ab?c?", "x.*", "--url", cluster.url)
    assert told == (0, "connector ab pauses\nconnector abc pauses\n", "")
    nothing = run("pause", "connectors", "-e", "z", "--url", cluster.url)
    assert nothing == (1, "", "fairlead: no connector matches z; there is: ab, abc, b\n")
    wrong = run("delete", "-e", "(", "--url", cluster.url)
    assert (wrong.code, wrong.err.startswith("fairlead: ( is no regular expression of RE2: ")) == (
        *(2, True),
    )


def test_several_are_patched_or_none_if_one_is_unknown(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/connectors", ["a", "b"])
    for name in ("a", "b"):
        cluster.answer("PATCH", f"/connectors/{name}/config", {**answered.INFO, "name": name})
    told = run("patch", "a", "b", "x=1", "y=a=b", "--url", cluster.url)
    assert told == (0, "connector a patched\nconnector b patched\n", "")
    assert [each.body for each in cluster.asked[1:]] == [{"x": "1", "y": "a=b"}] * 2
    cluster.asked.clear()
    told = run("patch", "a", "c", "x=1", "--url", cluster.url)
    assert told == (1, "", "fairlead: there is no connector c; there is: a, b\n")
    assert [each.method for each in cluster.asked] == ["GET"]


def test_several_are_described_one_after_the_other(run: Run, cluster: Cluster) -> None:
    one = run("describe", "flights", "--url", cluster.url).out
    assert one == run("describe", "connector", "flights", "--url", cluster.url).out
    cluster.answer("GET", "/workers", answered.WORKERS)
    w1 = run("describe", "worker", "w1", "--url", cluster.url).out
    w2 = run("describe", "worker", "w2", "--url", cluster.url).out
    both = run("describe", "workers", "w1", "w2", "--url", cluster.url).out
    assert both == f"{w1}\n{w2}"
    told = json.loads(
        run("describe", "workers", "w1", "w2", "-o", "json", "--url", cluster.url).out
    )
    assert [each["name"] for each in told] == ["w1", "w2"]


@pytest.mark.parametrize("words", ["task flights-1", "flights-1", "flights/1", "tasks/flights/1"])
def test_a_task_is_described_and_listed_by_its_name(words: str, run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/connectors", ["flights"])
    tasks = [{"id": {"connector": "flights", "task": 1}, "config": {"task.id": "x"}}]
    cluster.answer("GET", "/connectors/flights/tasks", tasks)
    told = run("describe", *words.split(), "-o", "json", "--url", cluster.url)
    assert json.loads(told.out) == {**answered.TASKS[1], "config": {"task.id": "x"}}
    listed = run("get", "tasks", "flights-1", "-o", "name", "--url", cluster.url)
    assert listed == (0, "flights-1\n", "")


def test_get_without_a_kind_lists_connectors(run: Run, cluster: Cluster) -> None:
    assert run("get", "flights", "--url", cluster.url) == run(
        *("get", "connectors", "flights", "--url", cluster.url),
    )
    wrong = run("get", "conectors", "--url", cluster.url)
    assert wrong.err == (
        "fairlead: there is no connector conectors; there is: flights; did you mean connectors?\n"
    )
    wrong = run("get", "pods", "--url", cluster.url)
    assert wrong.err == (
        "fairlead: there is no connector pods; there is: flights; a kind is connectors, tasks,"
        " workers, groups, plugins, assignors, offsets, placements, loggers or nodes\n"
    )


def test_connectors_and_tasks_are_described_together(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/connectors", ["flights"])
    cluster.answer("GET", "/connectors/flights/tasks", [])
    alone = [run("describe", each, "--url", cluster.url).out for each in ("flights", "flights/1")]
    both = run("describe", "flights", "flights/1", "flights-1", "--url", cluster.url)
    assert both == (0, "\n".join(alone), "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("puase flights", "No such command 'puase'. Did you mean 'pause'?"),
        ("offsets rest flights", "No such command 'rest'. Did you mean 'reset'?"),
        ("help sttus", "No such command 'sttus'. Did you mean 'status'?"),
        ("frob", "No such command 'frob'."),
    ],
)
def test_a_misspelt_verb_is_told_what_it_may_be_meant_for(words: str, said: str, run: Run) -> None:
    told = run(*words.split())
    assert (told.code, told.err.splitlines()[-1]) == (2, f"Error: {said}")


def test_a_misspelt_verb_is_no_error_in_the_line_of_a_shell(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_FAIRLEAD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "fairlead puase fl")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run() == (0, "\n", "")


def test_names_that_may_be_left_out_are_in_brackets(run: Run) -> None:
    may_be_all = ("get", "top", "logs", "delete", "pause", "describe")
    for verb in (*may_be_all, "drain"):
        usage = run(verb, "--help").out.splitlines()[0]
        name = "[NAME...]" if verb in may_be_all else "NAME..."
        assert usage == f"Usage: fairlead {verb} [OPTIONS] [KIND] {name}"


def test_delete_takes_the_connectors_of_files_and_waits_for_their_end(
    run: Run, cluster: Cluster
) -> None:
    Path("c.yaml").write_text("- name: a\n- name: b")
    for name in ("a", "b", "c"):
        cluster.answer("DELETE", f"/connectors/{name}", None, 204)
    cluster.answer("GET", "/connectors", [])
    told = run("delete", "c", "-f", "c.yaml", "--wait", "--url", cluster.url)
    said = [f"connector {each} deleted\n" for each in "abc"]
    said += [f"connector {each} is deleted\n" for each in "abc"]
    assert told == (0, "".join(said), "")
    assert run("delete", "--url", cluster.url).code == 2


STATES: list[tuple[str, dict[str, Any], list[dict[str, Any]], str]] = [
    ("running", {"state": "STOPPED"}, [], "STOPPED; start it: `fairlead resume flights`"),
    ("paused", {"state": "STOPPED"}, [], "STOPPED; start it: `fairlead resume flights`"),
    ("running", {"state": "PAUSED"}, [], "PAUSED; start it: `fairlead resume flights`"),
    (
        "running",
        {"state": "RUNNING"},
        [{"state": "FAILED", "trace": "no such file"}],
        "FAILED no such file; it does not restart by itself: mend what is wrong, then `fairlead"
        " restart flights --only-failed --include-tasks`",
    ),
]


@pytest.mark.parametrize(("wanted", "connector", "tasks", "said"), STATES)
def test_a_wait_says_at_once_what_cannot_come(
    wanted: str,
    connector: dict[str, Any],
    tasks: list[dict[str, Any]],
    said: str,
    run: Run,
    cluster: Cluster,
) -> None:
    _status(cluster, connector, tasks)
    told = run("wait", "flights", "--for", wanted, "--timeout", "1h", "--url", cluster.url)
    assert told == (1, "", f"fairlead: connector flights will not be {wanted}: {said}\n")


@pytest.mark.parametrize(
    ("connector", "tasks"),
    [
        ({"state": "PAUSED", "reason": "it is no longer to be paused"}, []),
        ({"state": "RUNNING"}, [{"state": "FAILED", "trace": "x; restarts in 0.4 s (1 of 5)"}]),
        ({"state": "RUNNING"}, []),
        ({"state": "UNASSIGNED"}, []),
    ],
)
def test_a_wait_goes_on_for_what_may_still_come(
    connector: dict[str, Any], tasks: list[dict[str, Any]], run: Run, cluster: Cluster
) -> None:
    _status(cluster, connector, tasks)
    told = run("wait", "flights", "--for", "running", "--timeout", "0s", "--url", cluster.url)
    assert told.err.startswith("fairlead: connector flights is not running after 0 s: ")


def _status(cluster: Cluster, connector: dict[str, Any], tasks: list[dict[str, Any]]) -> None:
    blank = {"worker_id": "w", "version": "1"}
    told = [{**blank, "id": number, **each} for number, each in enumerate(tasks)]
    status = {**answered.STATUS, "connector": {**blank, **connector}, "tasks": told}
    cluster.answer("GET", "/connectors/flights/status", status)


def test_drain_with_wait_tells_what_is_left_until_it_is_nothing(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = {"worker": answered.URL_1, "group_id": "connect", "cordoned": True, "draining": True}
    order |= {"expected_back_ms": None, "removing": None}
    cluster.answer("PUT", "/workers/w1/drain", order)
    held = answered.MEMBER_1["assigned"]
    left = [held[1:], []]

    def give_up(_: float) -> None:
        _workers(cluster, left.pop(0))

    in_each_pause(monkeypatch, give_up)
    _workers(cluster, held)
    told = run("drain", "worker", "w1", "--wait", "--url", cluster.url)
    url = answered.URL_1
    assert told == (
        0,
        f"worker {url} is cordoned, draining\nworker {url} still has flights flights-0\n"
        f"worker {url} still has flights-0\nworker {url} has no work\n",
        "",
    )
    _workers(cluster, held)
    late = run("drain", "w1", "--wait", "--timeout", "0s", "--url", cluster.url)
    said = f"after 0 s of draining work is left: {url} has 2"
    assert (late.code, late.err) == (1, f"fairlead: {said}\n")


def _workers(cluster: Cluster, held: list[dict[str, Any]]) -> None:
    worker = answered.WORKERS["workers"][0]
    member = {**worker["member"], "assigned": held}
    found = {**answered.WORKERS, "workers": [{**worker, "member": member}]}
    cluster.answer("GET", "/workers", found)


def test_top_adds_up_the_tasks_of_connectors_and_workers(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_each_pause(monkeypatch, lambda _: None)
    for words, names in (
        ("top", ["flights-0", "flights-1"]),
        ("top tasks flights/1", ["flights-1"]),
        ("top connectors", ["flights"]),
        ("top workers", ["w1", "w2"]),
        ("top worker w2", ["w2"]),
    ):
        told = run(*words.split(), "-o", "json", "--url", cluster.url)
        assert [each["id"] for each in json.loads(told.out)] == names
    table = run("top", "workers", "--url", cluster.url).out.splitlines()
    assert [line.split()[0] for line in table] == ["WORKER", "w1", "w2"]


def test_the_line_of_help_of_a_verb_is_the_first_paragraph_of_its_own() -> None:
    told = {name: load_verb(name).help or "" for name in VERBS}
    assert {name: each.partition("\n\n")[0] for name, each in told.items()} == {
        name: verb.help for name, verb in VERBS.items()
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info", "No such command 'info': here it is `fairlead cluster-info`."),
        ("use-context prod", "No such command 'use-context': here it is `fairlead config use-"),
        ("label connector a team=b", "here it is `fairlead patch NAME labels=team=a`."),
        ("rollout pause a", "No such command 'pause': here it is `fairlead pause NAME`."),
        ("auth user list", "No such command 'list': here it is `fairlead auth list`."),
        ("pluck", "No such command 'pluck'."),
    ],
)
def test_a_verb_of_another_program_is_told_by_its_name_here(
    words: str, said: str, run: Run
) -> None:
    ended = run(*words.split())
    assert (ended.code, said in ended.err) == (2, True)


def test_what_stands_for_a_verb_of_another_program_is_one() -> None:
    assert {each.split(" ")[0] for each in HABITS.values()} - {*VERBS} == {"--install-completion"}
    assert {*HABITS} & {*VERBS} == set()


def test_get_all_names_the_verb_that_shows_all(run: Run, cluster: Cluster) -> None:
    told = run("get", "all", "--url", cluster.url).err
    assert told.endswith("; `fairlead status` shows all that there is\n")


def test_keys_are_set_as_kcctl_does_it(run: Run, cluster: Cluster) -> None:
    cluster.answer("PATCH", "/connectors/flights/config", answered.INFO)
    words = ("patch", "connector", "flights", "-s", "tasks.max=2", "-r", "header")
    assert run(*words, "--url", cluster.url).code == 0
    assert cluster.asked[-1].body == {"tasks.max": "2", "header": None}
