"""The command `doctor`: what is missing or wrong on this machine, before a node is started."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..adapters.parameters import Ended
from ..output.printing import FAILED, Output, Table, say, show
from ..requests.options import LocalReadOptions, with_options

if TYPE_CHECKING:
    from ...doctor.findings import Finding


@with_options(LocalReadOptions)
def doctor(options: LocalReadOptions) -> None:
    """Check what a node needs of this machine; each thing that is wrong has a command to mend it.

    The node of these settings need not run. Nothing is changed. The exit code is 1 if the node
    would not start, or not run for long.
    """
    from ....config.sources import ConfigError  # noqa: PLC0415  # --help needs no settings
    from ...doctor.examination import examine, examine_packages  # noqa: PLC0415
    from ...doctor.findings import Severity, fail  # noqa: PLC0415

    try:
        findings = [*examine(options.load_config(), os.environ)]
    except ConfigError as error:
        wrong = [fail("settings", each, "fairlead config") for each in error.problems]
        findings = [*wrong, *examine_packages()]
    levels = Counter(each.level for each in findings)
    show(options.output, findings, [_table(findings)])
    if options.output is Output.TABLE:
        say(_sum_up(levels[Severity.FAIL], levels[Severity.WARN]))
    if levels[Severity.FAIL]:
        raise Ended(FAILED)


def _table(findings: Sequence["Finding"]) -> Table:
    rows = [(each.level.value, each.check, each.text, each.mend) for each in findings]
    return Table(("LEVEL", "CHECK", "FINDING", "COMMAND"), rows, folded=("FINDING", "COMMAND"))


def _sum_up(failures: int, warnings: int) -> str:
    if failures:
        return f"a node would not run here: {failures} to mend first"
    return f"a node runs here{f', with {warnings} to look at' if warnings else ''}"
