"""What the checkers share: a list of complaints, each with its place, and the rules that all providers have."""

import re
from collections.abc import Collection
from typing import Any, Final

NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")


def word(value: Any) -> str:
    """To look up: what is no text is no word that anybody knows."""
    return value if isinstance(value, str) else f"<{type(value).__name__}>"


class Complaints:
    def __init__(self) -> None:
        self.found: list[str] = []

    def that(self, ok: bool, where: str, what: str) -> bool:
        """Notes the complaint unless it is `ok`, and says which."""
        if not ok:
            self.found.append(f"{where}: {what}")
        return ok

    def text(self, value: Any, where: str) -> bool:
        return self.that(isinstance(value, str) and value != "", where, "must be a text that is not empty")

    def objects(self, value: Any, where: str) -> list[dict[str, Any]]:
        """The items of a list of objects that has any."""
        if not self.that(isinstance(value, list) and bool(value), where, "must be a list that is not empty"):
            return []
        return [item for n, item in enumerate(value) if self.object(item, f"{where}[{n}]")]

    def object(self, value: Any, where: str) -> bool:
        return self.that(isinstance(value, dict), where, "must be an object")

    def keys(self, value: dict[str, Any], allowed: Collection[str], where: str) -> None:
        for key in value:
            self.that(key in allowed, f"{where}.{key}".strip("."), "is not a known field")

    def number(self, body: dict[str, Any], field: str, low: float, high: float) -> None:
        value = body.get(field)
        known = value is None or (isinstance(value, (int, float)) and low <= value <= high)
        self.that(known, field, f"must be a number from {low:g} to {high:g}")

    def name(self, value: Any, longest: int, where: str) -> None:
        fits = isinstance(value, str) and NAME.fullmatch(value) is not None and len(value) <= longest
        self.that(fits, where, f"must match ^[a-zA-Z0-9_-]{{1,{longest}}}$")

    def unique(self, values: list[Any], where: str, what: str) -> None:
        self.that(len(values) == len(set(map(str, values))), where, f"{what} must be unique")
