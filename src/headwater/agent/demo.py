"""`demo/agent`: the built-in loop around a demo model, with tools that need no key, no network and no other process.

They harm nobody, and are there to try what is hard to try otherwise: calls side by side and one after the other,
progress, a stop inside a tool, a call that waits for a person.
"""

import ast
import operator
import random
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from headwater.agent.tools import Offer, Progress, Returned, Tool
from headwater.clock import Clock
from headwater.config.settings import AgentSettings

NAME: Final = "demo/agent"
SERVER: Final = "demo"
SETTINGS: Final = AgentSettings(
    model=NAME,
    system="You call the tools that you are asked for, and pass on what they say.",
    tools=(SERVER,),
    approve=(f"{SERVER}.postcard",),
    approve_timeout_s=3600.0,
)

_COUNT_S: Final = 0.5
_LONGEST: Final = 200


class DemoTools:
    """A `Toolbox`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def offer(self) -> Offer:
        return Offer(tuple(one.tool for one in _TOOLS.values()))

    async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> Returned:
        try:
            return Returned(await _TOOLS[tool.name].work(arguments, self._clock, progress))
        except ValueError as error:
            return Returned(str(error), "failed")


# -------------------------------------------------------------------- the tools


async def _clock(arguments: dict[str, Any], clock: Clock, progress: Progress) -> str:
    return datetime.fromtimestamp(clock.unix_s(), UTC).strftime("It is %H:%M:%S UTC on %A, %Y-%m-%d.")


async def _dice(arguments: dict[str, Any], clock: Clock, progress: Progress) -> str:
    sides = arguments.get("sides", 6)
    thrown = [random.randint(1, sides) for _ in range(arguments.get("count", 2))]
    return f"{' + '.join(map(str, thrown))} = {sum(thrown)}" if len(thrown) > 1 else str(thrown[0])


async def _calculate(arguments: dict[str, Any], clock: Clock, progress: Progress) -> str:
    said = str(arguments["expression"])
    found = max(_ARITHMETIC.findall(said), key=len, default="").strip()
    return f"{found} = {calculated(found):g}"


async def _count(arguments: dict[str, Any], clock: Clock, progress: Progress) -> str:
    end = arguments["to"]
    for number in range(1, end + 1):
        progress(f"{number}…", number, end)
        await clock.sleep(_COUNT_S)
    return f"Counted to {end}."


async def _postcard(arguments: dict[str, Any], clock: Clock, progress: Progress) -> str:
    return f"The postcard is on its way (not really): “{arguments['text'][:_LONGEST]}”"


# ------------------------------------------------------------------- arithmetic

_ARITHMETIC: Final = re.compile(r"[-+*/().\d\s]*\d[-+*/().\d\s]*")
_OPERATORS: Final[dict[type[ast.AST], Callable[..., float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def calculated(expression: str) -> float:
    """Raises `ValueError`."""
    try:
        return _value(ast.parse(expression[:_LONGEST], mode="eval").body)
    except (SyntaxError, ArithmeticError, KeyError, RecursionError) as error:
        raise ValueError(f"That can't be worked out: {expression or 'there is no number in it'}.") from error


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float() | int() as number):
            return float(number)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left), _value(right))
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_value(operand))
        case _:
            raise KeyError(type(node).__name__)


# -------------------------------------------------------------------- the table


class _Demo(Struct, frozen=True):
    tool: Tool
    work: Callable[[dict[str, Any], Clock, Progress], Awaitable[str]]


def _demo(name: str, description: str, work: Any, required: tuple[str, ...] = (), **properties: Any) -> _Demo:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return _Demo(Tool(server=SERVER, name=name, description=description, schema=schema), work)


_TOOLS: Final = {
    one.tool.name: one
    for one in (
        _demo("clock", "The time and the date", _clock),
        _demo(
            "dice",
            "Roll some dice",
            _dice,
            sides={"type": "integer", "minimum": 2, "maximum": 1000, "default": 6},
            count={"type": "integer", "minimum": 1, "maximum": 20, "default": 2},
        ),
        _demo(
            "calculate",
            "Work out a sum, such as 6 * (3 + 4)",
            _calculate,
            ("expression",),
            expression={"type": "string"},
        ),
        _demo(
            "count",
            "Count up to a number, slowly",
            _count,
            ("to",),
            to={"type": "integer", "minimum": 1, "maximum": 600},
        ),
        _demo(
            "postcard",
            "Send somebody a postcard (needs your approval)",
            _postcard,
            ("text",),
            text={"type": "string"},
        ),
    )
}
