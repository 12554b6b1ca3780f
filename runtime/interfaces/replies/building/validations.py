"""Builds the validation of a config, in Connect's format."""

from ....pipeline.spi.config import Checked, Definition, Validation
from ..connectors import ConfigInfo, ConfigInfos, ConfigKeyInfo, ConfigValueInfo


def describe_key(key: Definition) -> ConfigKeyInfo:
    """Return one definition."""
    return ConfigKeyInfo(
        key.name,
        key.type.value,
        key.required,
        key.default_text,
        key.importance.value,
        key.documentation,
        key.group,
        key.order,
        key.width.value,
        key.display_name or key.name,
        key.dependents,
    )


def _describe_checked(checked: Checked) -> ConfigInfo:
    key = checked.definition
    value = ConfigValueInfo(
        key.name, checked.shown_value, key.recommended, checked.error_messages, visible=True
    )
    return ConfigInfo(describe_key(key), value)


def describe_validation(name: str, validation: Validation) -> ConfigInfos:
    """Return the validation of a config; `name` is the class's name in the request."""
    return ConfigInfos(
        name,
        sum(len(each.errors) for each in validation.checked),
        list(dict.fromkeys(each.definition.group for each in validation.checked)),
        [_describe_checked(each) for each in validation.checked],
        validation.warnings,
    )
