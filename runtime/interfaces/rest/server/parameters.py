"""Types that several routes take: configs, whose values are texts, and flags."""

import json
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from .bodies import Numeral
from .values import CONVERT


def text_of(value: object) -> object:
    """Convert a number or a boolean to its JSON text, as Connect does."""
    if isinstance(value, Numeral):
        return value.text
    return json.dumps(value) if isinstance(value, bool | int) else whole(value)


def whole(value: object) -> object:
    """Refuse a text that cannot be encoded, such as one with a lone surrogate."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("holds a lone surrogate, which is no Unicode") from None
    return value


def _drop_nulls(value: object) -> object:
    """Remove keys whose value is None."""
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if each is not None}  # pyright: ignore


Key = Annotated[str, Meta(extra={CONVERT: whole})]
if TYPE_CHECKING:
    ConfigValue = str
    Change = str | None
else:  # the document says what is taken; what is read is a text
    ConfigValue = Annotated[str | float | bool, Meta(extra={CONVERT: text_of})]
    Change = Annotated[str | float | bool | None, Meta(extra={CONVERT: text_of})]
Config = Annotated[dict[Key, ConfigValue], Meta(extra={CONVERT: _drop_nulls})]
ConfigBody = Annotated[Config, Meta(description="The config: each key with its value as text.")]
Changes = dict[Key, Change]
GivenConfigBody = Annotated[
    Changes, Meta(description="The config: each key with its value; a null is no value.")
]
ChangesBody = Annotated[
    Changes, Meta(description="The settings to change; null resets one to the node's.")
]


def flag(*, default: bool) -> Meta:
    """Return how a boolean query parameter is parsed as in Java: all but `true` is false."""

    def read(value: object) -> object:
        return value.lower() == "true" if isinstance(value, str) and value else default

    return Meta(extra={CONVERT: read})


Extended = Annotated[
    bool,
    flag(default=False),
    Meta(description="Whether to add fields that Connect's own response does not have."),
]
