"""What requests carry: JSON, and configs whose values are text."""

import json
from typing import Annotated

from fastapi import Body, Depends
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import Request

from .....events.placement.config import HEAVIEST, MOST_ITEMS
from ....config.kinds import INT32_MAX
from .errors import JSON, sent_otherwise


def _text(value: object) -> object:
    """Return a number or a boolean as the text that JSON has for it, as Connect does."""
    return json.dumps(value) if isinstance(value, bool | int | float) else _whole(value)


def _whole(value: object) -> object:
    """Refuse a text that no log and no answer can hold."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("holds a lone surrogate, which is no Unicode") from None
    return value


def _given(value: object) -> object:
    """Leave out the keys without a value."""
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if each is not None}  # pyright: ignore


Key = Annotated[str, BeforeValidator(_whole)]
Config = Annotated[
    dict[Key, Annotated[str, BeforeValidator(_text)]],
    BeforeValidator(_given),
]
ConfigBody = Annotated[Config, Body(description="The config: each key with its value as text.")]


class NewConnector(BaseModel):
    """Connect's `CreateConnectorRequest`."""

    model_config = ConfigDict(extra="forbid")

    name: Key = ""
    config: Config
    initial_state: str | None = None


class Expectation(BaseModel):
    """When a worker is expected back."""

    model_config = ConfigDict(extra="forbid", strict=True)

    within_ms: int = Field(ge=0, le=INT32_MAX, description="From now. 0: wait no longer.")


class PlacementBody(BaseModel):
    """What a connector or a task weighs, and which workers may run it; null leaves it as it is."""

    model_config = ConfigDict(extra="forbid", strict=True)

    weight: int | None = Field(None, ge=1, le=HEAVIEST, description="1 is what all begin with.")
    workers: list[Key] | None = Field(
        None,
        max_length=MOST_ITEMS,
        description="By any of their names. None of them: the config decides.",
    )


Changes = dict[Key, Annotated[str | None, BeforeValidator(_text)]]
ChangesBody = Annotated[
    Changes, Body(description="The settings to change; null takes one back to the node's.")
]


def _require_json(request: Request) -> None:
    """Refuse what is not sent as JSON, or is not said to be."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise sent_otherwise(kind)


RequiresJson = Depends(_require_json)
