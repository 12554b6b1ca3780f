"""`config`: every setting with its meaning, and where its value comes from."""

import re
from typing import TYPE_CHECKING, Final

from ..command.options import Output, ReadHere, takes
from ..command.printing import FactList, Section, Table, show

if TYPE_CHECKING:
    from ....config.load import Loaded

HIDDEN: Final = "********"
SECRET: Final = re.compile(
    "passw|passphrase|secret|token|credential|key|authoriz|bearer|cookie", re.IGNORECASE
)
"""What names of settings that are passed on have in them if not every eye may see them."""


@takes(ReadHere)
def config(place: ReadHere) -> None:
    """Show every setting: its value, default, unit and meaning, and what it was given by."""
    found = explain(place.load())
    show(place.output, found, _sections(found) if place.output is Output.TABLE else ())


def explain(loaded: "Loaded") -> list[dict[str, str]]:
    """Return one document for each setting, and for each that is passed on to others."""
    from ....config.keys import ASSIGNOR_CONF, KEYS, SPARK_CONF  # noqa: PLC0415
    from ....config.secrets import passwords_in  # noqa: PLC0415
    from ....config.sources import ASSIGNORS, SPARK  # noqa: PLC0415

    apart = {SPARK_CONF, ASSIGNOR_CONF}
    found = [_explained(key, name, loaded) for key, name in KEYS.items() if key not in apart]
    for prefix, given, meaning in (
        (SPARK, loaded.config.spark_conf, "Passed on to Spark."),
        (ASSIGNORS, loaded.config.assignor_conf, "Handed to assignors."),
    ):
        for name, value in sorted(given.items()):
            hidden = SECRET.search(name) or passwords_in(value)
            shown = HIDDEN if hidden else value
            source = loaded.sources[prefix + name]
            found.append(_passed_on(prefix + name, shown, meaning, source))
    return found


def _passed_on(key: str, value: str, meaning: str, source: str) -> dict[str, str]:
    return {
        "key": key,
        "value": value,
        "default": "",
        "unit": "",
        "allowed": "",
        "meaning": meaning,
        "kafka": "",
        "source": source,
    }


def _explained(key: str, name: str, loaded: "Loaded") -> dict[str, str]:
    from ....config.keys import SETTINGS  # noqa: PLC0415

    setting = SETTINGS[key]
    return {
        "key": key,
        "value": str(getattr(loaded.config, name)),
        "default": str(setting.default),
        "unit": setting.unit,
        "allowed": setting.allowed,
        "meaning": setting.documentation,
        "kafka": setting.in_connect,
        "source": loaded.sources.get(key, "default"),
    }


def _sections(found: list[dict[str, str]]) -> list[Section]:
    """Return values and meanings apart: together they are too wide for a terminal."""
    columns = ("key", "value", "unit", "source")
    rows = [tuple(each[name] for name in columns) for each in found]
    meanings = [(each["key"], f"{each['meaning']}{_default(each)}") for each in found]
    return [
        Table([name.upper() for name in columns], rows, rigid=True),
        FactList(meanings, "What they mean"),
    ]


def _default(found: dict[str, str]) -> str:
    if not found["default"]:
        return ""
    unit = " ms" if found["unit"] == "ms" else ""
    return f" Default: {found['default']}{unit}."
