"""Script files. An error names the file, the key and what to write instead."""

import difflib
import re
import tomllib
from typing import Final, get_args

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
_MESSAGE: Final = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>.*)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
_INDEX: Final = re.compile(r"\[[^\]]*\]")


class ScriptError(HeadwaterError):
    pass


def load_scenario(text: str, name: str = "script") -> Scenario:
    """Raises `ScriptError`. `name` is what the text is called in it, e.g. the file's path."""
    try:
        scenario = msgspec.convert(tomllib.loads(text), Scenario)
    except tomllib.TOMLDecodeError as error:
        raise ScriptError(f"{name}: this is no TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ScriptError(f"{name}: {_explain(str(error))}") from None
    for model, script in scenario.models.items():
        try:
            if script.like is not None:
                script_of(script.like)
        except UnknownName as error:
            raise ScriptError(f"{name}: models.{model}.like: {error}") from None
    return scenario


def _explain(message: str) -> str:
    found = _MESSAGE.fullmatch(message)
    assert found is not None, "the pattern takes anything"
    path = found["path"] or "$"
    unknown = _UNKNOWN.fullmatch(found["what"])
    key = path.removeprefix("$").removeprefix(".") or "the file"
    if not unknown:
        return f"{key}: {found['what']}"
    last = _INDEX.sub("", path).rpartition(".")[2]
    known = sorted({field for table in _TABLES.get(last, ()) for field in table.__struct_fields__})
    close = difflib.get_close_matches(unknown[1], known, n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(known)}"
    return f"{key}: unknown key `{unknown[1]}`; {hint}"
