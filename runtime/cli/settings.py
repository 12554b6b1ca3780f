"""`config`: every setting with its meaning, and where its value comes from."""

import re
from typing import TYPE_CHECKING, Final

from .options import Output, ReadHere, takes
from .printing import Facts, Section, Table, show

if TYPE_CHECKING:
    from ..config.load import Loaded

HIDDEN: Final = "********"
SECRET: Final = re.compile("password|secret|token|credential|key", re.IGNORECASE)
"""What names of Spark's settings have in them whose values are not for every eye."""


@takes(ReadHere)
def config(place: ReadHere) -> None:
    """Show every setting: its value, default, unit and meaning, and what it was given by."""
    found = explain(place.load())
    show(place.output, found, _sections(found) if place.output is Output.TABLE else ())


def explain(loaded: "Loaded") -> list[dict[str, str]]:
    """Return one document for each setting, and for each of Spark's that is passed on."""
    from ..config.keys import KEYS, SPARK_CONF  # noqa: PLC0415
    from ..config.sources import PASSED_ON  # noqa: PLC0415

    found = [_explained(key, name, loaded) for key, name in KEYS.items() if key != SPARK_CONF]
    for name, value in sorted(loaded.config.spark_conf.items()):
        key = PASSED_ON + name
        found.append(
            {
                "key": key,
                "value": HIDDEN if SECRET.search(name) else value,
                "default": "",
                "unit": "",
                "allowed": "",
                "meaning": "Passed on to Spark.",
                "kafka": "",
                "source": loaded.sources[key],
            }
        )
    return found


def _explained(key: str, name: str, loaded: "Loaded") -> dict[str, str]:
    from ..config.keys import Config, kind_of  # noqa: PLC0415
    from ..config.kinds import InConnect  # noqa: PLC0415

    field = Config.model_fields[name]
    in_connect = (each.name for each in field.metadata if isinstance(each, InConnect))
    return {
        "key": key,
        "value": str(getattr(loaded.config, name)),
        "default": str(field.default),
        "unit": kind_of(key).unit,
        "allowed": kind_of(key).allowed,
        "meaning": field.description or "",
        "kafka": next(in_connect, ""),
        "source": loaded.sources.get(key, "default"),
    }


def _sections(found: list[dict[str, str]]) -> list[Section]:
    """Return values and meanings apart: together they are too wide for a terminal."""
    columns = ("key", "value", "unit", "source")
    rows = [tuple(each[name] for name in columns) for each in found]
    meanings = [(each["key"], f"{each['meaning']}{_default(each)}") for each in found]
    return [
        Table([name.upper() for name in columns], rows, rigid=True),
        Facts(meanings, "What they mean"),
    ]


def _default(found: dict[str, str]) -> str:
    if not found["default"]:
        return ""
    unit = " ms" if found["unit"] == "ms" else ""
    return f" Default: {found['default']}{unit}."
