"""Which values of a config are secrets, and what is wrong with them; all before they are sealed."""

from collections.abc import Collection, Iterator, Mapping

from .....actors.settings import HIDDEN, SettingType, sounds_secret
from ....config.references.redaction import LONGEST, SHORTEST
from ....config.references.resolving import is_reference, unknown_provider
from ....config.secrets import PREFIX, logins_in, passwords_in
from ....config.sources import SPARK

_UNRESOLVED = (
    "nothing here resolves this reference: ${env:NAME} is a variable of the worker, "
    "${file:PATH:KEY} a key of a properties file, ${dir:FOLDER:FILE} a whole file"
)


def secret_keys_of(
    plain: Mapping[str, str],
    defined: Mapping[str, SettingType],
    misspelt: Collection[str],
    before: Collection[str] = (),
) -> frozenset[str]:
    """Return the keys to seal: by their definition, their name, or a password in their value.

    A key that nothing defines is sealed, too, if its value has that of another such key in it, or
    one of `before`, the secrets of the config that this one replaces.
    """

    def may_hold_anything(key: str) -> bool:
        return key not in defined or key in misspelt or key.startswith(SPARK)

    named = {
        key
        for key, value in plain.items()
        if defined.get(key) is SettingType.PASSWORD
        or (may_hold_anything(key) and sounds_secret(key))
        or passwords_in(value)
    }
    whole = {*before, *(plain[key] for key in named)}
    parts = {part for value in whole for part in logins_in(value) | passwords_in(value)}
    known = {each for each in whole | parts if len(each) >= SHORTEST and not is_reference(each)}
    again = {
        key
        for key, value in plain.items()
        if may_hold_anything(key) and any(each in value for each in known)
    }
    return frozenset(named | again)


def flaws_in_secrets(
    plain: Mapping[str, str], secret_keys: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the errors of secrets, each with its key."""
    total = 0
    for key, value in plain.items():
        total += len(value) if key in secret_keys else 0
        if len(value) > LONGEST and key in secret_keys:
            yield key, f"a secret has at most {LONGEST} letters"
        elif total > LONGEST and key in secret_keys:
            yield key, f"all secrets of a config have at most {LONGEST} letters together"
        if PREFIX in value:
            yield key, f"{PREFIX}...}} is how the cluster stores a secret: give the secret itself"
        elif value == HIDDEN:
            yield key, f"{HIDDEN} stands for a value that is kept, and there is none"
        elif (found := unknown_provider(value)) and found[1]:
            yield key, _UNRESOLVED


def unresolved(plain: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each value with a reference in it that nothing resolves."""
    for key, value in plain.items():
        if (found := unknown_provider(value)) and not found[1]:
            yield f"{key}: {found[0]} is used as it is written: {_UNRESOLVED}"
