"""What one more worker speaks, by its command and by the settings that are given with it."""

import pytest

from fairlead.runtime.config.load import load_with_sources
from fairlead.runtime.interfaces.cli.verbs.node import choose_classic_mode


@pytest.mark.parametrize(
    ("settings", "option", "mode"),
    [
        ([], None, None),
        (["connect.protocol=eager"], None, None),
        (["group.protocol=classic"], None, "sessioned"),
        (["group.protocol=classic", "connect.protocol=eager"], None, "eager"),
        (["group.protocol=connect"], None, ""),
        (["connect.protocol=compatible"], "classic", "compatible"),
        (["group.protocol=classic"], "connect", ""),
        (["group.protocol=connect"], "classic", "sessioned"),
    ],
)
def test_a_setting_says_what_a_worker_speaks_and_the_option_has_the_last_word(
    settings: list[str], option: str | None, mode: str | None
) -> None:
    assert choose_classic_mode(load_with_sources(None, {}, settings), option) == mode
