"""Script files. An error names the file, the key and what to write instead."""

import difflib
import re
import tomllib
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from headwater.errors import HeadwaterError
from headwater.simulate.names import UnknownName, script_of
from headwater.simulate.script import (
    Answer,
    Call,
    Fault,
    Http,
    Pace,
    Reasoning,
    Scenario,
    Script,
    Usage,
    Writes,
)

# What may stand under a key, by the key's name.
_TABLES: Final[dict[str, tuple[type[msgspec.Struct], ...]]] = {
    "$": (Scenario,),
    "models": (Script,),
    "answers": (Answer,),
    "faults": get_args(Fault),
    "calls": (Call,),
    "reasoning": (Reasoning,),
    "usage": (Usage,),
    "pace": (Pace,),
    "writes": (Writes,),
    "http": (Http,),
}
_KINDS: Final = tuple(str(fault.__struct_config__.tag) for fault in _TABLES["faults"])
_MESSAGE: Final = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>.*)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
_INDEX: Final = re.compile(r"\[[^\]]*\]")

T = TypeVar("T", bound=msgspec.Struct)


class ScriptError(HeadwaterError):
    pass


def load_scenario(text: str | bytes, name: str = "script") -> Scenario:
    """Raises `ScriptError`. `name` is what the text is called in it, e.g. the file's path."""
    try:
        raw = tomllib.loads(text if isinstance(text, str) else text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScriptError(f"{name}: this is no TOML: {error}") from None
    models = raw.pop("models", {})
    if not isinstance(models, dict):
        raise ScriptError(f"{name}: models: Expected a table, e.g. [models.mine]")
    # One by one: msgspec does not say which key of a table it was at.
    scripts = {model: _load_script(script, f"{name}: models.{model}") for model, script in models.items()}
    return msgspec.structs.replace(_convert(raw, Scenario, name, "$"), models=scripts)


def _load_script(raw: Any, where: str) -> Script:
    script = _convert(raw, Script, where, "models")
    try:
        if script.like is not None:
            script_of(script.like)
    except UnknownName as error:
        raise ScriptError(f"{where}.like: {error}") from None
    return script


def _convert(raw: Any, kind: type[T], where: str, table: str) -> T:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        found = _MESSAGE.fullmatch(str(error))
        assert found is not None, "the pattern takes anything"
        path = (found["path"] or "$").removeprefix("$")
        raise ScriptError(f"{where}{path}: {_explain(found['what'], table + path)}") from None


def _explain(what: str, path: str) -> str:
    """With what to write instead, where msgspec does not say it."""
    *_, table, key = ["", *_INDEX.sub("", path).split(".")]
    if unknown := _UNKNOWN.fullmatch(what):
        known = sorted({field for struct in _TABLES.get(key, ()) for field in struct.__struct_fields__})
        close = difflib.get_close_matches(unknown[1], known, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(known)}"
        return f"unknown key `{unknown[1]}`; {hint}"
    if choices := _choices(table, key):
        return f"{what}; there are: {', '.join(choices)}"
    return what


def _choices(table: str, key: str) -> tuple[str, ...]:
    """The words that may stand there, if it is such a place."""
    if key == "kind":
        return _KINDS
    hints = [get_type_hints(struct).get(key) for struct in _TABLES.get(table, ())]
    return next((get_args(hint) for hint in hints if get_origin(hint) is Literal), ())
