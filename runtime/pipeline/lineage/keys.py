"""The `openlineage.*` keys, and the lineage reporter that they configure."""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Final

from ....actors.settings import Value
from ....events.commits import Commit
from ..installed import pip_install
from ..spi.config import Importance, has_reference
from ..spi.context import Context
from ..spi.keys.kinds import secret_key, text_key, with_group
from ..spi.lineage import NO_LINEAGE, Dataset, Lineage
from ..spi.types import SinkType, SourceType

URL: Final = "openlineage.url"
NAMESPACE: Final = "openlineage.namespace"
API_KEY: Final = "openlineage.api.key"


def _url(value: Value) -> str | None:
    text = str(value or "")
    if not text or has_reference(text):
        return None
    if not text.startswith(("http://", "https://")):
        return "must be a URL such as http://host:5000"
    if find_spec("openlineage") is None:
        return f"needs a package that is not installed: {pip_install('lineage')}"
    return None


LINEAGE: Final = with_group(
    "Lineage",
    [
        text_key(
            URL,
            "The URL of an OpenLineage server, such as Marquez, that gets the lineage of this "
            "connector: its datasets, columns and row counts. Empty: no lineage is sent.",
            "",
            importance=Importance.LOW,
            validator=_url,
        ),
        text_key(
            NAMESPACE,
            "The namespace of the connector's job there.",
            "fairlead",
            importance=Importance.LOW,
        ),
        secret_key(API_KEY, "The server's key, sent as a bearer token.", importance=Importance.LOW),
    ],
)


def lineage_of(
    context: Context,
    config: Mapping[str, str],
    source: type[SourceType],
    sink: type[SinkType],
) -> Lineage:
    """Return the lineage reporter of one attempt of a task."""
    if not config.get(URL):
        return NO_LINEAGE
    from .open_runs import OpenRuns  # noqa: PLC0415
    from .run import RunLineage  # noqa: PLC0415  # needs an extra
    from .sending import EventSender  # noqa: PLC0415

    def datasets_of(commit: Commit) -> tuple[frozenset[Dataset], frozenset[Dataset]]:
        read = source.datasets(config, [each.partition for each in commit.advances])
        return frozenset(read), frozenset(sink.datasets(config, commit.manifest))

    job = Dataset(config.get(NAMESPACE) or "fairlead", context.resource.connector)
    sender = partial(EventSender, config[URL], config.get(API_KEY, ""), context.warn)
    return RunLineage(job, sender, OpenRuns(config[URL], *job), datasets_of, context)
