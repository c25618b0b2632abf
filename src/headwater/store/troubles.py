"""What a database's library raises, in our words."""

from collections.abc import Sequence

from headwater.errors import StoreError, StoreTrouble

Kinds = Sequence[tuple[type[Exception], StoreTrouble, str]]
"""From the special to the general, the base of them all last; the text has room for `{at}` and `{error}`."""


def told(kinds: Kinds, error: Exception, at: str) -> StoreError:
    trouble, text = next((trouble, text) for kind, trouble, text in kinds if isinstance(error, kind))
    return StoreError(text.format(at=at, error=str(error).strip()), trouble=trouble)
