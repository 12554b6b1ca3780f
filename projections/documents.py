"""Plain data that JSON can hold."""

from collections.abc import Mapping, Sequence

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
Document = dict[str, Json]
