"""The commands `plugins`: they install plugins of Kafka Connect on this node, and list them.

They work on the node's files and not by REST: what a plugin holds runs as the node, so only whoever
runs the node adds one. Each verb that adds plugins ends with a scan of those that are new, and
names what it has found.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from ..adapters.parameters import Argument, Ended, Option
from ..output.printing import FAILED, Failed, Misused, Output, Table, say, say_aside, show
from ..output.progress import show_progress
from ..requests.files import read_documents
from ..requests.options import LocalOptions, LocalReadOptions, with_options

if TYPE_CHECKING:
    from ....pipeline.plugins.catalogue.catalogue import Catalogue
    from ....pipeline.plugins.catalogue.installing.store import AddedPlugin, PluginStore
    from ....pipeline.plugins.ivy import Ivy

HEX_DIGITS: Final = 128
"""How long a SHA-512 is."""

NewName = Annotated[str, Option("--name", metavar="NAME", help="What the plugin is called.")]
MayReplace = Annotated[bool, Option("--replace", help="Replace another plugin of this name.")]


class ShownClass(Struct, frozen=True):
    """A class of a plugin; `class` as in `/connector-plugins`."""

    type: str
    class_name: str
    version: str
    aliases: Sequence[str]
    location: str
    allowed: bool
    """Whether `plugin.allow` has it."""


class ShownPlugin(Struct, frozen=True):
    """A plugin that was added."""

    name: str
    source: str
    added: str
    sha512: str
    left_out: Sequence[str]


class ShownFlaw(Struct, frozen=True):
    """Something that is wrong with a plugin, or with a folder of plugins."""

    location: str
    text: str


class PluginList(Struct, frozen=True):
    """The answer of `plugins list`."""

    classes: Sequence[ShownClass]
    added: Sequence[ShownPlugin]
    flaws: Sequence[ShownFlaw]


@with_options(LocalOptions)
def set_up_host(
    options: LocalOptions,
    libs: Annotated[
        Path | None,
        Option("--libs", metavar="DIR", help="The folder libs of a download of Kafka, 4.1 to 4.4."),
    ] = None,
) -> None:
    """Set up what plugins run with: Kafka Connect's classes, and a program compiled against them.

    Without --libs the classes are fetched from Maven Central (40 MB). This is done once in an
    installation of fairlead, and again after it was upgraded. It needs a Java, and no compiler.
    """
    from ....pipeline.plugins.ivy import NotFetched  # noqa: PLC0415
    from ....pipeline.plugins.setup import NotSetUp, home, set_up  # noqa: PLC0415

    ivy = _open_repository(options)
    try:
        with show_progress("setting up Kafka Connect"):
            installation = set_up(ivy.java, ivy, say, libs)
    except NotSetUp as error:
        raise Failed(f"{error}; nothing was changed") from None
    except NotFetched as error:
        raise Failed(
            f"{error}; nothing was changed. Where no repository can be reached, bring ~/.ivy2/cache"
            " from a machine where this was done, and run it again"
        ) from None
    except OSError as error:
        raise Failed(
            f"{home()} cannot be written ({error.strerror or error}): run this as the user who"
            " installed fairlead, with 100 MB of room; nothing was changed"
        ) from None
    say(f"plugins run with Kafka Connect {installation.connect}, in {installation.folder}")


@with_options(LocalReadOptions)
def list_plugins(options: LocalReadOptions) -> None:
    """List the plugins of this node, also those of plugin.path, and what is wrong with any.

    A plugin that is new or has changed is scanned first, which takes some seconds.
    """
    store = _open_store(options)
    with show_progress("scanning"):
        catalogue = _open_catalogue(options)
    allows = options.load_config().plugins().allows
    content = PluginList(
        [
            ShownClass(
                *(each.type, each.class_name, each.version, each.aliases, str(each.location)),
                allows(each.class_name),
            )
            for each in catalogue.plugins
        ],
        [
            ShownPlugin(each.name, each.source, each.added, each.sha512, each.left_out)
            for name in store.names()
            if (each := store.read(name))
        ],
        [ShownFlaw(str(each.location), each.text) for each in catalogue.flaws],
    )
    show(options.output, content, _tabulate(content))
    if options.output is Output.TABLE:
        _tell_flaws(content.flaws)


def _tabulate(content: PluginList) -> list[Table]:
    classes = [
        (each.type, each.class_name, each.version, Path(each.location).name)
        for each in content.classes
    ]
    empty = "no plugins: `fairlead plugins fetch` and `add` install them"
    tables = [Table(("TYPE", "CLASS", "VERSION", "PLUGIN"), classes, empty)]
    if content.added:
        rows = [(each.name, each.source, each.added) for each in content.added]
        tables.append(Table(("NAME", "SOURCE", "ADDED"), rows, title="Added"))
    return tables


@with_options(LocalOptions)
def add_plugin(
    options: LocalOptions,
    path: Annotated[Path, Argument(metavar="PATH", help="A folder, a jar, a .zip or a .tar.gz.")],
    name: NewName = "",
    sha512: Annotated[
        str, Option("--sha512", metavar="HEX", help="The checksum that its maker has published.")
    ] = "",
    trust: Annotated[
        bool, Option("--trust", help="Add a file without a checksum: you know where it is from.")
    ] = False,
    may_replace: MayReplace = False,
) -> None:
    """Add a plugin of Kafka Connect: a folder, a jar or an archive.

    A file needs --sha512, or --trust. Jars that Connect has itself are left out. A plugin has at
    most 2 GiB, and an archive whose files would lie outside of it is refused.
    """
    from ....pipeline.plugins.catalogue.installing.store import PluginPart, name_of  # noqa: PLC0415

    if not path.exists():
        raise Misused(f"there is no {path}: nothing was added")
    if sha512 and len(sha512.strip()) != HEX_DIGITS:
        raise Misused(f"--sha512 takes {HEX_DIGITS} digits, as sha512sum prints them")
    if not (sha512 or trust or path.is_dir()):
        raise Misused(
            f"what {path} holds would run as this node: give its maker's checksum by --sha512, or"
            " say --trust; nothing was added"
        )
    whole = path.absolute()
    with _failures(), show_progress(f"adding {path}"):
        plugin = _open_store(options).add(
            name or name_of(whole.name),
            [PluginPart(whole)],
            whole.name,
            sha512=sha512,
            may_replace=may_replace,
        )
    _tell_added(options, [plugin])


@with_options(LocalOptions)
def fetch_plugin(
    options: LocalOptions,
    coordinates: Annotated[
        list[str],
        Argument(metavar="GROUP:ARTIFACT:VERSION...", help="Also with :CLASSIFIER and :TYPE."),
    ],
    name: NewName = "",
    may_replace: MayReplace = False,
) -> None:
    """Fetch a plugin of Kafka Connect from Maven Central, or from plugins.repositories.

    Of one artifact the maker's own archive for Connect is taken if there is one, else its jar with
    all that it needs. Several artifacts become one plugin, in versions that suit all of them.
    """
    from ....pipeline.plugins.catalogue.installing.fetching import fetch_parts  # noqa: PLC0415
    from ....pipeline.plugins.ivy import Coordinates  # noqa: PLC0415

    try:
        artifacts = [Coordinates.parse(each) for each in coordinates]
    except ValueError as error:
        raise Misused(f"{error}; nothing was added") from None
    chosen = name or f"{artifacts[0].artifact}-{artifacts[0].version}"
    with _failures(), show_progress(f"fetching {chosen}"):
        parts = fetch_parts(_open_repository(options), artifacts, may_be_archive=True)
        plugin = _open_store(options).add(
            chosen, parts, " ".join(map(str, artifacts)), may_replace=may_replace
        )
    _tell_added(options, [plugin])


@with_options(LocalOptions)
def apply_plugins(
    options: LocalOptions,
    files: Annotated[
        list[Path],
        Option("--filename", "-f", metavar="FILE", help="A YAML or JSON file; repeatable."),
    ],
) -> None:
    """Add the plugins of a list, as Strimzi's build.plugins has them, unless they are there.

    A plugin of the list's name that differs is replaced; plugins that no list has stay.
    """
    from ....pipeline.plugins.catalogue.installing.downloads import PluginLists  # noqa: PLC0415
    from ....pipeline.plugins.catalogue.installing.lists import parse_plugins, plugins_in  # noqa: PLC0415

    listed: list[object] = []
    for file in files:
        for document in read_documents(file):
            plugins = plugins_in(document)
            if plugins is None:
                raise Misused(f"{file} has no list `plugins`: nothing was added")
            listed += plugins
    lists = PluginLists(_open_store(options), lambda more: _open_repository(options, more))
    with _failures(Misused):
        wanted = parse_plugins(listed)
    for each in wanted:
        with _failures(), show_progress(f"installing {each.name}"):
            before = lists.store.read(each.name)
            plugin = lists.install(each)
        if plugin == before:
            say(f"plugin {each.name} unchanged")
        else:
            _tell_added(options, [plugin])


@with_options(LocalOptions)
def verify_plugins(
    options: LocalOptions,
    names: Annotated[
        list[str] | None, Argument(metavar="[NAME]...", help="Plugins; default: all.")
    ] = None,
) -> None:
    """Compare the files of plugins with those that were added; the exit code is 1 if any differs.

    All bytes are read. Plugins of plugin.path were not added, so there is nothing to compare with.
    """
    store = _open_store(options)
    is_sound = True
    for name in names or store.names():
        with _failures():
            differences = store.differences(name)
        is_sound = is_sound and not differences
        for each in differences or ["sound"]:
            say(f"{name}: {each}")
    if not is_sound:
        say_aside("what differs was changed after it was added: add or fetch it again, --replace")
        raise Ended(FAILED)


@with_options(LocalOptions)
def remove_plugins(
    options: LocalOptions,
    names: Annotated[list[str], Argument(metavar="NAME...", help="Plugins that were added.")],
) -> None:
    """Remove plugins that were added; running connectors keep them until they are restarted."""
    store = _open_store(options)
    for name in names:
        with _failures():
            store.remove(name)
        say(f"plugin {name} removed; running connectors keep it until they are restarted")


@contextmanager
def _failures(kind: type[Failed] = Failed) -> Generator[None]:
    """Raise `Failed` for what refuses a plugin in the context."""
    from ....pipeline.plugins.catalogue.installing.refusals import PluginRefused  # noqa: PLC0415

    try:
        yield
    except PluginRefused as refused:
        raise kind(str(refused)) from None


def _open_store(options: LocalOptions) -> "PluginStore":
    from ....pipeline.plugins.catalogue.installing.store import PluginStore  # noqa: PLC0415

    return PluginStore(options.load_config().data_path)


def _open_repository(options: LocalOptions, further: Sequence[str] = ()) -> "Ivy":
    """Return the repositories that the settings name, and some more; raises `Failed`."""
    from ....pipeline.plugins.host import trust_options  # noqa: PLC0415
    from ....pipeline.plugins.ivy import Ivy  # noqa: PLC0415
    from ....processes.java import JavaNotFound, find_java  # noqa: PLC0415

    config = options.load_config()
    repositories = (*config.plugins().repositories, *further)
    try:
        return Ivy(find_java(), repositories, trust_options(config.plugin_host_truststore))
    except JavaNotFound as error:
        raise Failed(f"{error}; nothing was added") from None


def _open_catalogue(options: LocalOptions) -> "Catalogue":
    """Return the catalogue; plugins that are new are scanned if that can be done here."""
    from ....pipeline.plugins.catalogue.catalogue import open_catalogue  # noqa: PLC0415
    from ....pipeline.plugins.catalogue.host_scanner import HostScanner  # noqa: PLC0415
    from ....pipeline.plugins.catalogue.scanning import NoScanner  # noqa: PLC0415
    from ....pipeline.plugins.host import HostLaunch  # noqa: PLC0415
    from ....pipeline.plugins.setup import NotSetUp, find_installation  # noqa: PLC0415
    from ....processes.java import JavaNotFound, find_java  # noqa: PLC0415

    config = options.load_config()
    try:
        launch = HostLaunch(
            find_installation(),
            find_java(),
            config.data_path / "logs" / "plugin-scan.log",
            config.plugin_spec().host,
        )
    except (NotSetUp, JavaNotFound) as error:
        return open_catalogue(config.plugins(), NoScanner(str(error)))
    return open_catalogue(config.plugins(), HostScanner(launch))


def _tell_added(options: LocalOptions, plugins: Iterable["AddedPlugin"]) -> None:
    """Print what became of plugins: what was left out of each, and what a scan finds in it."""
    with show_progress("scanning"):
        catalogue = _open_catalogue(options)
    store = _open_store(options)
    for plugin in plugins:
        place = store.path / plugin.name
        say(f"plugin {plugin.name} added, with {len(plugin.files)} files")
        if plugin.left_out:
            say(f"left out, as Connect has them: {', '.join(plugin.left_out)}")
        for each in catalogue.plugins:
            if each.location == place:
                say(f"{each.type} {each.class_name} {each.version}")
        flaws = [each for each in catalogue.flaws if place in {each.location, *each.others}]
        _tell_flaws([ShownFlaw(str(each.location), each.text) for each in flaws])


def _tell_flaws(flaws: Iterable[ShownFlaw]) -> None:
    for each in flaws:
        say_aside(f"warning: {each.location}: {each.text}")


VERBS: Final = {
    "setup": set_up_host,
    "list": list_plugins,
    "add": add_plugin,
    "fetch": fetch_plugin,
    "apply": apply_plugins,
    "verify": verify_plugins,
    "remove": remove_plugins,
}
"""The verbs of `fairlead plugins`."""
