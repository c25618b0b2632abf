"""Places in a list that is given in pages: opaque to clients. Pure."""

import math

from headwater.server.refusals import Refusal
from headwater.store.results import Page


def page_of(limit: int, before: str | None) -> Page:
    """Raises `Refusal`."""
    if before is None:
        return Page(limit)
    at, _, id = before.partition("~")
    try:
        place = float.fromhex(at)
    except (ValueError, OverflowError):
        place = math.nan
    if not math.isfinite(place):
        raise Refusal("`before` is no `next` of a page.", status=400, code="invalid_value", param="before")
    return Page(limit, (place, id))


def place_of(next: tuple[float, str] | None) -> str | None:
    # Hex: the same float comes back. No plus: in a query that is a blank.
    return None if next is None else f"{next[0].hex().replace('+', '')}~{next[1]}"
