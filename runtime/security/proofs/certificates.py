"""The holders of certificates: whose entry the subject of a verified certificate stands for."""

from cryptography import x509
from cryptography.x509.oid import NameOID

from .entries import AccessEntries, AccessEntry, EntryKind


def find_certificate(entries: AccessEntries, subject: str) -> AccessEntry | None:
    """Return the entry of a subject (RFC 4514): of the whole of it, or of its only common name.

    A common name that is written as a subject stands for nobody: whoever gets it from an authority
    would have the entry of another subject.
    """
    common = _common_name_in(subject)
    names = (subject, *([] if "=" in common else [common]))
    entries_of_names = (entries.find(EntryKind.CERTIFICATE, name) for name in names)
    return next((entry for entry in entries_of_names if entry is not None), None)


def _common_name_in(subject: str) -> str:
    """Return the common name; "" if there are none, several, or if the subject is malformed."""
    try:
        names = x509.Name.from_rfc4514_string(subject).get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return ""
    return str(names[0].value) if len(names) == 1 else ""
