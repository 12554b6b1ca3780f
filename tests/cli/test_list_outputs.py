"""The outputs of a list: in another order, by kubectl's paths, in columns of one's own."""

from typing import Any

import pytest
from cli.conftest import Cluster, Run

from fairlead.runtime.interfaces.cli.output.paths import expand_template
from fairlead.runtime.interfaces.cli.output.printing import Misused
from fairlead_tests.cli import answered

DATA: dict[str, Any] = {
    "tasks": [
        {"id": "a-0", "state": "RUNNING", "rows": 10, "config": {"tasks.max": "2"}},
        {"id": "a-1", "state": "FAILED", "rows": 9, "config": {}},
    ],
    "name": "a",
    "no": None,
    "yes": True,
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.name}", "a"),
        (".name", "a"),
        ("{$.name}{@.name}", "aa"),
        ("{.tasks[*].id}", "a-0 a-1"),
        ("{.tasks[0].id} {.tasks[-1].id} {.tasks[7].id}", "a-0 a-1 "),
        ("{.tasks[1:].id}{.tasks[:1].id}", "a-1a-0"),
        ("{.tasks[0].config['tasks.max']}{.tasks[0].config.tasks\\.max}", "22"),
        ("{..state}", "RUNNING FAILED"),
        ('{.tasks[?(@.state=="FAILED")].id}', "a-1"),
        ("{.tasks[?(@.rows>9)].id}", "a-0"),
        ("{.tasks[?(@.rows>'9')].id}", ""),
        ("{.tasks[?(@.config['tasks.max'])].id}", "a-0"),
        ('{range .tasks[*]}{.id}{"\\t"}{.rows}{"\\n"}{end}', "a-0\t10\na-1\t9\n"),
        ("{range .tasks[*]}{range .config.*}<{@}>{end}{end}", "<2>"),
        ("state: {.no}{.yes} {.tasks[0].config}", 'state: true {"tasks.max": "2"}'),
        ("{.absent.more}{.name[0]}{.tasks.id}", ""),
        ("plain{''}", "plain"),
    ],
)
def test_a_template_is_kubectl_s(template: str, text: str) -> None:
    assert expand_template(template, DATA) == text


@pytest.mark.parametrize(
    "template",
    ["{.a", ".a}", "{.a[}", "{range .a}", "{end}", "{.a[?(@.b==c)]}x{", "{.a b}", "{range}{.[x]}"],
)
def test_a_template_that_is_none_is_a_misuse(template: str) -> None:
    with pytest.raises(Misused):
        expand_template(template, DATA)


def test_a_condition_without_quotes_around_its_text_is_told() -> None:
    with pytest.raises(Misused, match="FAILED is no value: a text stands in quotes"):
        expand_template("{.tasks[?(@.state==FAILED)].id}", DATA)


@pytest.fixture
def unequal(cluster: Cluster) -> Cluster:
    """A cluster with connectors of 10, 9 and 2 tasks."""

    def entry(name: str, count: int) -> dict[str, Any]:
        task = {"id": 0, "state": "RUNNING", "worker_id": answered.URL_1, "version": "1"}
        tasks = [{**task, "id": number} for number in range(count)]
        status = {**answered.STATUS, "name": name, "tasks": tasks}
        progress = {"name": name, "tasks": [{"id": n, **answered.NOTHING} for n in range(count)]}
        info = {**answered.INFO, "name": name, "tasks": []}
        return {"status": status, "info": info, "progress": progress}

    found = {"c": entry("c", 10), "a": entry("a", 9), "b": entry("b", 2)}
    cluster.answer("GET", "/connectors?expand=status&expand=info&expand=progress", found)
    return cluster


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], "a b c"),
        (["--sort-by", "tasks"], "b a c"),
        (["--sort-by", ".status.tasks[-1].id"], "b a c"),
        (["--sort-by", "{.info.name}"], "a b c"),
        (["--sort-by", ".nothing"], "a b c"),
    ],
)
@pytest.mark.parametrize(
    "form", ["name", "custom-columns=NAME:.info.name", "jsonpath={[*].info.name}"]
)
def test_all_outputs_have_the_order_that_is_wanted(
    options: list[str], names: str, form: str, run: Run, unequal: Cluster
) -> None:
    ended = run("get", "connectors", *options, "-o", form, "--no-headers", "--url", unequal.url)
    assert (ended.code, ended.out.split(), ended.err) == (0, names.split(), "")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("tasks=9/9", "a"),
        ("tasks!=9/9,name!=c", "b"),
        (".info.name==c", "c"),
        ("name=x", ""),
    ],
)
def test_a_list_has_those_with_some_values(
    selector: str, names: str, run: Run, unequal: Cluster
) -> None:
    for form in ("name", "jsonpath={[*].info.name}"):
        words = ("get", "connectors", "--field-selector", selector, "--sort-by", "tasks")
        ended = run(*words, "-o", form, "--url", unequal.url)
        assert (ended.code, ended.out.split(), ended.err) == (0, names.split(), "")


def test_columns_are_paths_with_headings(run: Run, unequal: Cluster) -> None:
    columns = "custom-columns=NAME:.info.name,LAST:{.status.tasks[-1:].id},NOTHING:.x"
    assert run("get", "connectors", "-o", columns, "--url", unequal.url).out == (
        "NAME  LAST  NOTHING\na     8     <none>\nb     1     <none>\nc     9     <none>\n"
    )


def test_a_table_may_have_no_headings(run: Run, unequal: Cluster) -> None:
    whole = run("get", "connectors", "--url", unequal.url).out.splitlines()
    bare = run("get", "connectors", "--no-headers", "--url", unequal.url).out.splitlines()
    assert [line.split() for line in bare] == [line.split() for line in whole[1:]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "jsonpath={.a"], "the template has a brace without its other one"),
        (["-o", "custom-columns=NAME"], "'NAME' is no column"),
        (["-o", "custom-columns=A:.x["], "'.x[' is no path"),
        (["-o", "go-template=x"], "-o is table, wide, name, json, yaml, jsonpath="),
        (["--sort-by", "age"], "there is no column age: --sort-by is one of NAME, TYPE, STATE"),
        (["--field-selector", "age=1"], "there is no column age: a field is one of NAME, TYPE"),
        (["--field-selector", "age"], "'age' is no condition: write state=FAILED"),
    ],
)
def test_an_output_that_is_none_is_a_misuse(
    options: list[str], said: str, run: Run, unequal: Cluster
) -> None:
    ended = run("get", "connectors", *options, "--url", unequal.url)
    assert (ended.code, ended.out, said in ended.err) == (2, "", True)


def test_plugins_are_of_the_types_that_are_wanted(run: Run, cluster: Cluster) -> None:
    names = ("get", "plugins", "-o", "name", "--url", cluster.url, "-t")
    assert run(*names, "transformation").out == "InsertField$Value\n"
    assert run(*names, "source,transformation").out.splitlines() == [
        "SparkPipeline",
        "InsertField$Value",
    ]
    assert run("get", "tasks", "-t", "source", "--url", cluster.url).code == 2
