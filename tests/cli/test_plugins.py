"""`fairlead plugins` installs plugins of Kafka Connect on this node, and lists them."""

import hashlib
import json
from pathlib import Path

import pytest
from cli.conftest import Run

from fairlead.runtime.pipeline.plugins import setup
from fairlead.runtime.pipeline.plugins.ivy import NotFetched
from fairlead.runtime.pipeline.plugins.setup import NotSetUp
from fairlead.runtime.processes import java
from fairlead_tests.plugin_jars import jar_bytes, write_jar, zip_bytes

PLUGINS = Path("fairlead-data/plugins")
JAR = jar_bytes("a.B")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing set up: scans have tests of their own, and each would start a JVM here."""
    monkeypatch.setattr(setup, "home", lambda: tmp_path / "set-up")


def write_list(artifact: str, name: str = "a.yaml") -> str:
    """Write a list of one plugin with one artifact."""
    Path(name).write_text(f"plugins:\n- name: mine\n  artifacts:\n  - {artifact}\n")
    return name


def test_a_file_needs_a_checksum_or_trust_and_a_folder_does_not(run: Run) -> None:
    Path("a-1.0.zip").write_bytes(zip_bytes({"a/a.jar": JAR, "a/slf4j-api-2.0.jar": JAR}))
    ended = run("plugins", "add", "a-1.0.zip")
    assert (ended.code, ended.out, PLUGINS.exists()) == (2, "", False)
    assert "by --sha512, or say --trust; nothing was added" in ended.err
    digest = hashlib.sha512(Path("a-1.0.zip").read_bytes()).hexdigest()
    ended = run("plugins", "add", "a-1.0.zip", "--sha512", digest)
    assert (ended.code, ended.out.splitlines()[:2]) == (
        0,
        [
            "plugin a-1.0 added, with 1 files",
            "left out, as Connect has them: slf4j-api-2.0.jar",
        ],
    )
    write_jar(Path("folder/a.jar"), "a.B")
    assert run("plugins", "add", "folder").code == 0
    assert run("plugins", "add", "a-1.0.zip", "--trust", "--name", "other").code == 0
    assert sorted(each.name for each in PLUGINS.iterdir()) == ["a-1.0", "folder", "other"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["add", "none.zip"], 2, "there is no none.zip: nothing was added"),
        (["add", "a.jar", "--sha512", "ab"], 2, "--sha512 takes 128 digits"),
        (["add", "a.jar", "--sha512", "0" * 128], 1, "it is damaged, or another file"),
        (["add", "a.jar", "--trust", "--name", "../x"], 1, "a plugin cannot be called '../x'"),
        (["fetch", "a:b"], 2, "'a:b' is not group:artifact:version[:classifier[:type]]"),
        (["remove", "x"], 1, "there is no plugin x in"),
        (["verify", "x"], 1, "there is no plugin x in"),
        (["apply", "-f", "none.yaml"], 1, "none.yaml cannot be read"),
        (["apply", "-f", "flights.yaml"], 2, "flights.yaml has no list `plugins`"),
        (
            ["add", "a.jar", "--trust", "--set", "plugin.allow=a b"],
            2,
            "is no pattern of names of classes",
        ),
        (
            ["list", "--set", "plugins.repositories=http://repo.example/x"],
            2,
            "'http://repo.example/x' is no https URL: what it sends would be run",
        ),
        (
            ["list", "--set", "plugins.repositories=https://ann:secret@repo.example"],
            2,
            "a URL with a user would show the password to all",
        ),
    ],
)
def test_what_cannot_be_done_is_told(run: Run, words: list[str], code: int, text: str) -> None:
    Path("a.jar").write_bytes(JAR)
    Path("flights.yaml").write_text("name: flights\nconfig: {}\n")
    ended = run("plugins", *words)
    assert (ended.code, ended.out) == (code, "")
    assert text in ended.err
    assert "secret" not in ended.err
    assert not PLUGINS.exists() or [*PLUGINS.iterdir()] == []


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            NotFetched("a:b:1 is not in Ivy's cache"),
            "a:b:1 is not in Ivy's cache; nothing was changed. Where no repository can be reached,"
            " bring ~/.ivy2/cache from a machine where this was done, and run it again",
        ),
        (NotSetUp("libs has Kafka 3"), "libs has Kafka 3; nothing was changed"),
        (
            PermissionError(13, "Permission denied"),
            "cannot be written (Permission denied): run this as the user who installed fairlead,"
            " with 100 MB of room; nothing was changed",
        ),
    ],
)
def test_a_setup_that_fails_tells_what_to_do(
    run: Run, monkeypatch: pytest.MonkeyPatch, failure: Exception, told: str
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(setup, "set_up", fail)
    monkeypatch.setattr(java, "find_java", lambda: java.Java(Path("/java"), "17"))
    ended = run("plugins", "setup")
    assert (ended.code, ended.out) == (1, "")
    assert told in " ".join(ended.err.split())


@pytest.mark.parametrize("verb", [["setup"], ["fetch", "a:b:1"]])
def test_without_java_nothing_is_set_up_or_fetched(
    run: Run, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    def fail() -> None:
        raise java.JavaNotFound("Java 17 or later is needed: set JAVA_HOME to one")

    monkeypatch.setattr(java, "find_java", fail)
    ended = run("plugins", *verb)
    assert (ended.code, ended.out) == (1, "")
    assert "set JAVA_HOME to one; nothing was" in ended.err


def test_the_list_has_what_was_added_and_what_is_wrong(run: Run) -> None:
    ended = run("plugins", "list")
    assert ended == (0, "no plugins: `fairlead plugins fetch` and `add` install them\n", "")
    Path("a.jar").write_bytes(JAR)
    run("plugins", "add", "a.jar", "--trust")
    content = json.loads(run("plugins", "list", "-o", "json").out)
    (added,) = content["added"]
    assert (added["name"], added["source"], added["left_out"]) == ("a", "a.jar", [])
    assert added["sha512"] == hashlib.sha512(JAR).hexdigest()
    (PLUGINS / "a").chmod(0o777)
    ended = run("plugins", "list")
    assert "Added\nNAME  SOURCE  ADDED" in ended.out
    assert f"warning: {PLUGINS.absolute() / 'a'}: other users may change" in ended.err


def test_what_was_changed_after_it_was_added_is_named(run: Run) -> None:
    Path("a.jar").write_bytes(JAR)
    for name in ("one", "two"):
        run("plugins", "add", "a.jar", "--trust", "--name", name)
    assert run("plugins", "verify") == (0, "one: sound\ntwo: sound\n", "")
    (PLUGINS / "two/a.jar").write_bytes(JAR[:-1])
    ended = run("plugins", "verify")
    assert (ended.code, ended.out) == (
        1,
        "one: sound\ntwo: a.jar has another content than the file that was added\n",
    )
    assert "add or fetch it again, --replace" in ended.err
    assert run("plugins", "verify", "one").code == 0


def test_a_plugin_that_is_removed_stays_with_running_connectors(run: Run) -> None:
    Path("a.jar").write_bytes(JAR)
    run("plugins", "add", "a.jar", "--trust")
    assert run("plugins", "remove", "a") == (
        0,
        "plugin a removed; running connectors keep it until they are restarted\n",
        "",
    )
    assert [*PLUGINS.iterdir()] == []


def test_a_list_of_plugins_is_installed_once_and_replaces_what_differs(run: Run) -> None:
    Path("a.zip").write_bytes(zip_bytes({"a/a.jar": JAR}))
    url = f"file://{Path('a.zip').absolute()}"
    file = write_list(f"{{type: zip, url: '{url}'}}")
    ended = run("plugins", "apply", "-f", file)
    assert (ended.code, ended.out) == (0, "plugin mine added, with 1 files\n")
    assert run("plugins", "apply", "-f", file) == (0, "plugin mine unchanged\n", "")
    Path("a.zip").write_bytes(zip_bytes({"a/b.jar": JAR}))
    assert run("plugins", "apply", "-f", file).out == "plugin mine added, with 1 files\n"
    assert sorted(each.name for each in (PLUGINS / "mine").iterdir()) == ["added.json", "b.jar"]
    (added,) = json.loads(run("plugins", "list", "-o", "json").out)["added"]
    assert added["source"] == url


@pytest.mark.parametrize("under", ["", "build: ", "spec: {build: "])
def test_apply_points_from_connectors_to_the_verb_for_plugins(run: Run, under: str) -> None:
    text = f"{under}{{plugins: [{{name: a, artifacts: []}}]}}{'}' * under.count('{')}"
    Path("a.yaml").write_text(text)
    ended = run("apply", "-f", "a.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "fairlead: a.yaml lists plugins and no connector: `fairlead plugins apply -f a.yaml` adds"
        " them\n"
    )
