"""What values a key allows; each returns what is wrong with a value, or None."""

from .config import Validator, Value


def at_least(minimum: int) -> Validator:
    """Return a validator for integers from `minimum` up."""

    def validate(value: Value) -> str | None:
        fits = isinstance(value, int) and value >= minimum
        return None if fits else f"must be at least {minimum}"

    return validate


def between(minimum: int, maximum: int) -> Validator:
    """Return a validator for integers from `minimum` to `maximum`."""

    def validate(value: Value) -> str | None:
        fits = isinstance(value, int) and minimum <= value <= maximum
        return None if fits else f"must be from {minimum} to {maximum}"

    return validate


def one_of(*allowed: str) -> Validator:
    """Return a validator for a closed list of words."""

    def validate(value: Value) -> str | None:
        return None if value in allowed else f"must be one of {', '.join(allowed)}"

    return validate


def not_blank(value: Value) -> str | None:
    """Refuse a text without any letter in it."""
    return None if isinstance(value, str) and value.strip() else "must not be blank"
