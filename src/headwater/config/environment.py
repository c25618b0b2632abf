"""`HEADWATER_SERVER__PORT=…`: variables laid over the file's tree.

Words are parted by two underscores, so that other variables with our prefix (a `HEADWATER_KEY` that the file
refers to, what Kubernetes sets for a service called `headwater`) are not taken for settings.
An empty variable counts as none.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec

from headwater.config.places import Fault, Origins, Place, Problems, did_you_mean
from headwater.config.schema import Items, Kind, Map, Number, Table, YesNo, is_value, schema
from headwater.errors import Problem

PREFIX: Final = "HEADWATER_"
_YES_NO: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)


def lay_over(tree: dict[str, Any], environ: Mapping[str, str], origins: Origins, problems: Problems) -> list[Problem]:
    """Changes the tree; gives back warnings."""
    referred = referred_variables(tree)
    warnings: list[Problem] = []
    # Sorted, a table as a whole comes before a key of it.
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or name in referred or not text:
            continue
        words = name.removeprefix(PREFIX).split("__")
        if len(words) > 1 or schema().key(words[0].lower()):
            _apply(name, words, text, tree, origins, problems)
        elif meant := _nearly().get(words[0]):
            fix = f"The setting is {PREFIX}{meant}."
            warnings.append(Problem(f"environment {name}", "", "is no setting, and ignored.", fix))
    return warnings


def _apply(name: str, words: list[str], text: str, tree: dict[str, Any], origins: Origins, problems: Problems) -> None:
    """Puts one variable in its place."""
    place: Place = ()
    kind: Kind = schema()
    raw: Any = tree
    origin = f"environment {name}"
    for word in words:
        step = _step(word, kind, raw)
        if isinstance(step, Fault):
            place = (*place, word.lower())
            origins.note(place, origin)
            problems.add(place, *step)
            return
        part, kind = step
        place = (*place, part)
        raw = _inside(raw, part)
        if raw is None:
            # What the file does not have is made by this variable.
            origins.note(place, origin)
    origins.note(place, origin)
    value = _interpret(text, kind)
    if isinstance(value, Fault):
        problems.add(place, *value)
    else:
        put(tree, place, value)


def _step(word: str, kind: Kind, raw: Any) -> tuple[str | int, Kind] | Fault:
    """The next part of the place, and its kind."""
    match kind:
        case Table():
            key = kind.key(word.lower())
            if key:
                return key.name, key.kind
            return Fault("is not a key that is known here.", did_you_mean(word, [key.name for key in kind.keys]))
        case Map(value=Table() as value):
            return _named(word, value, raw)
        case Items(item=Table() as item):
            count = len(raw) if isinstance(raw, list) else 0
            if re.fullmatch("[0-9]{1,4}", word) and int(word) <= count:
                return int(word), item
            return Fault("is not the number of an item.", f"They are counted from 0; {count} would add one.")
        case _:
            return Fault("is below a key that has one value.", "End the variable's name before it.")


def _named(word: str, value: Kind, raw: Any) -> tuple[str, Kind] | Fault:
    """A name that is there already may have letters that a variable can't: `MY_VLLM` is `my-vllm`."""
    known = [name for name in raw if _plain(name) == _plain(word)] if isinstance(raw, dict) else []
    if len(known) > 1:
        return Fault(f"could be any of {', '.join(sorted(known))}.", "Rename one of them.")
    return (known[0] if known else word.lower()), value


def _interpret(text: str, kind: Kind) -> Any | Fault:
    """As the file would have it. What is no number, or neither yes nor no, stays a text: the reader will say so."""
    match kind:
        case Number(whole=whole):
            try:
                return int(text) if whole else float(text)
            except ValueError:
                return text
        case YesNo():
            return _YES_NO.get(text.strip().lower(), text)
        case Items(item=item) if is_value(kind) and not text.lstrip().startswith("["):
            return [_interpret(part.strip(), item) for part in text.split(",") if part.strip()]
        case Items() | Map() | Table():
            return _json(text, "[…]" if isinstance(kind, Items) else '{"name": "value"}')
        case _:
            return text


def _json(text: str, example: str) -> Any | Fault:
    fault = Fault("is not valid JSON.", f"Write it like {example}.")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return fault
    return fault if value is None else value


def put(tree: dict[str, Any], place: Place, value: Any) -> None:
    """Sets a value, and makes what is missing on the way. What is in its way stays: the reader will complain of it."""
    inner: Any = tree
    for part, following in pairwise(place):
        inner = _inside(inner, part, [] if isinstance(following, int) else {})
    last = place[-1]
    if _inside(inner, last, value) is not None:
        inner[last] = value


def _inside(raw: Any, part: str | int, otherwise: Any = None) -> Any:
    """What is at this part, `otherwise` put there if nothing is; None where there is no such thing as this part."""
    match raw, part:
        case dict(), str():
            return raw.get(part) if otherwise is None else raw.setdefault(part, otherwise)
        case list(), int():
            if part == len(raw) and otherwise is not None:
                raw.append(otherwise)
            return raw[part] if part < len(raw) else None
        case _:
            return None


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "_", name.lower())


def referred_variables(tree: dict[str, Any]) -> set[str]:
    """Variables that the file names itself (`env:HEADWATER_KEY`)."""
    found: set[str] = set()
    # No recursion: what is unknown to us may be nested to any depth.
    waiting: list[Any] = [tree]
    while waiting:
        match waiting.pop():
            case dict() as inner:
                waiting.extend(inner.values())
            case list() as inner:
                waiting.extend(inner)
            case str() as text if text.startswith("env:"):
                found.add(text.removeprefix("env:"))
            case _:
                pass
    return found


def _nearly() -> dict[str, str]:
    """What people write instead: `PORT` or `SERVER_PORT` for `SERVER__PORT`."""
    found: dict[str, str] = {}
    for section in schema().keys:
        for key in section.kind.keys if isinstance(section.kind, Table) else ():
            right = f"{section.name}__{key.name}".upper()
            found |= {key.name.upper(): right, f"{section.name}_{key.name}".upper(): right}
    return found
