"""Values that are not to be seen: keys, and addresses that may hold a password.

They show themselves to nobody who does not ask by name (`reveal`), in no repr, log line or error.
"""

from typing import Final
from urllib.parse import urlsplit

MASK: Final = "***"


class Secret:
    """A key or a password."""

    __slots__ = ("_value", "reference")

    def __init__(self, value: str, reference: str | None = None) -> None:
        self._value = value
        self.reference = reference
        """`env:NAME` or `file:PATH`, if that is how it was given."""

    def reveal(self) -> str:
        return self._value

    def shown(self) -> str:
        """What a person may see of it: where it comes from, never what it is."""
        return self.reference or MASK

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shown()})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class SecretUrl(Secret):
    """An address of which the user, the password and the query are secret; the rest may be seen."""

    __slots__ = ()

    def shown(self) -> str:
        if self.reference:
            return self.reference
        try:
            url = urlsplit(self._value)
        except ValueError:
            return MASK
        place = f"//{MASK}@{url.netloc.rpartition('@')[2]}" if "@" in url.netloc else f"//{url.netloc}"
        query = f"?{MASK}" if url.query else ""
        return f"{url.scheme}:{place if url.netloc else ''}{url.path}{query}"
