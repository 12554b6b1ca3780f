"""A YAML loader whose scalars are the texts that stand in the file."""

from typing import Any, Final

import yaml
from yaml.constructor import ConstructorError

NULL: Final = "tag:yaml.org,2002:null"
MERGE: Final = "tag:yaml.org,2002:merge"


class TextLoader(yaml.SafeLoader):
    """Loads mappings and lists of texts; nothing, `~` and `null` without quotes are None.

    A key that occurs twice in a mapping is a `ConstructorError`.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012  # as PyYAML declares it
        first: [(tag, pattern) for tag, pattern in resolvers if tag in {NULL, MERGE}]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        """Read a mapping, and refuse a key that it has twice."""
        node = super().compose_mapping_node(anchor)
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    problem = f"the key {key.value} occurs twice"
                    raise ConstructorError(None, None, problem, key.start_mark)
                keys.add(key.value)
        return node


def _text_of(loader: TextLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


TextLoader.add_constructor(MERGE, _text_of)  # a value `<<` is no merge
