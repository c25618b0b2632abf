"""The features of a request, and what is noted of those that an upstream's dialect can't carry."""

from typing import Final, get_args

from msgspec.structs import astuple

from headwater.conversation import Parameters, Request, System, Target, Text, ToolOutput, User
from headwater.dialects.base import Note
from headwater.dialects.carry.fate import CARRIED
from headwater.dialects.carry.history import HISTORY, OF_ONE_DIALECT
from headwater.dialects.carry.parameters import OUTPUT_AND_TOOLS, PARAMETERS, REASONING
from headwater.dialects.carry.question import Question
from headwater.dialects.carry.row import Asked
from headwater.dialects.responses.render import LEAST_TOKENS
from headwater.events import DialectName

ASKED: Final[tuple[Asked, ...]] = (*PARAMETERS, *REASONING, *OUTPUT_AND_TOOLS, *HISTORY, *OF_ONE_DIALECT)

# Looked up once: to go through all fates with every request took a quarter of its time.
_NOT_CARRIED: Final = {
    dialect: [(row.found, fate) for row in ASKED if (fate := row.fate(dialect)) != CARRIED]
    for dialect in get_args(DialectName)
}

_NO_PARAMETERS: Final = Parameters()
_, _, _, *_NO_RARE_ONES = astuple(_NO_PARAMETERS)

# Fields of a request to an upstream that the conversation has another name for.
_OTHER_NAMES: Final = {
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "response_format": "output",
    "text": "output",
    "reasoning": "reasoning_effort",
    "thinking": "reasoning_effort",
    "output_config": "reasoning_effort",
    "stop_sequences": "stop",
}


def notes(request: Request, target: Target, dialect: DialectName) -> list[Note]:
    """What an upstream of this dialect will not be told, or not in the client's words."""
    if not target.omit and is_plain(request):
        return []
    question = Question(request, target, dialect)
    found = [
        Note(field, fate.why, refuse=fate.kind == "refused")
        for found_in, fate in _NOT_CARRIED[dialect]
        for field in found_in(question)
    ]
    if target.omit:
        used = {field for row in ASKED for field in row.found(question)} | question.own_fields(dialect).keys()
        omitted = {name for name in target.omit if name in used or _OTHER_NAMES.get(name) in used}
        found += [Note(name, "This upstream refuses it.") for name in sorted(omitted)]
    return list(dict.fromkeys(found))


def is_plain(request: Request) -> bool:
    """Nothing but words, which every dialect carries: no row can find anything. Most of what people ask is so."""
    messages = request.messages
    if request.tools or request.extras is not None or not messages:
        return False
    if request.parameters != _NO_PARAMETERS and not _are_plain(request.parameters):
        return False
    for n, message in enumerate(messages):
        if type(message) is ToolOutput or message.name is not None or (n and type(message) is System):
            return False
        if not message.parts:
            # An empty one is not sent.
            return False
        for part in message.parts:
            if type(part) is not Text or not part.text or part.refusal or part.cache is not None:
                return False
    return type(messages[-1]) is User


def _are_plain(parameters: Parameters) -> bool:
    """A limit of tokens, and a sampling as every dialect takes it where no reasoning is asked for."""
    limit, temperature, _top_p, *rare = astuple(parameters)
    return rare == _NO_RARE_ONES and (limit is None or limit >= LEAST_TOKENS) and (temperature or 0) <= 1
