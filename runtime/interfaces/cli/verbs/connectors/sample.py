"""The command `sample`: a few rows as a config would have them read and transformed."""

from collections.abc import Iterator

from ....replies.connectors import SampleDescription, SampleTable
from ...output.printing import Output, Section, Table, say_aside, show
from ...output.progress import show_progress
from ...requests.client import find_client
from ...requests.files import ConnectorFiles, NameOfNameless, Recursive, read_all_connectors
from ...requests.options import RemoteReadOptions, with_options

NO_VALUE = "-"


@with_options(RemoteReadOptions)
def sample(
    options: RemoteReadOptions,
    files: ConnectorFiles,
    recursive: Recursive = False,
    name: NameOfNameless = "",
) -> None:
    """Show ten rows as configs would have them read, before and after their transforms.

    The node reads them by the code of a task, from the beginning of the source. Nothing is written,
    no offset moves. The first sample waits some seconds for a JVM.
    """
    configs = read_all_connectors(files, recursive=recursive, name_of_nameless=name)
    client = find_client(options)
    samples: dict[str, SampleDescription] = {}
    for each, config in configs.items():
        with show_progress(f"reading a sample of {each}"):
            body = {"name": each, "config": config}
            samples[each] = client.post(SampleDescription, "sample", body=body)
    if options.output is not Output.TABLE:
        show(options.output, samples, ())
        return
    show(options.output, samples, [*_sections(samples)])
    for each, found in samples.items():
        for warning in found.warnings:
            say_aside(f"{each}: {warning}")


def _sections(samples: dict[str, SampleDescription]) -> Iterator[Section]:
    for name, found in samples.items():
        yield _table(f"{name}, as it is read", found.before)
        if found.after is not None:
            yield _table(f"{name}, as it would be written", found.after)


def _table(title: str, table: SampleTable) -> Table:
    columns = [f"{each.name} ({each.type})" for each in table.columns]
    rows = [tuple(NO_VALUE if cell is None else cell for cell in row) for row in table.rows]
    return Table(columns, rows, empty="no rows", title=title)
