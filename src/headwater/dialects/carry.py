"""What an upstream's dialect can't be told of a request, and what a client's dialect can't say of an answer.

One table for each way. They are what `notes` and `unsaid` go by, and what docs/dialects.md is made of: nothing is
dropped in silence, and nothing is documented that does not happen.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from msgspec import Struct

from headwater.conversation import (
    Assistant,
    Image,
    JsonSchema,
    Opaque,
    Reasoning,
    Request,
    System,
    Target,
    Text,
    ToolOutput,
)
from headwater.dialects.base import Note
from headwater.dialects.messages.render import cannot_reason, is_name, reasons
from headwater.dialects.messages.write import image_block
from headwater.events import DialectName, Event, ProviderState, TextDelta


class Fate(Struct, frozen=True):
    """What becomes of a feature in a dialect."""

    kind: Literal["carried", "changed", "dropped", "refused"]
    why: str = ""


CARRIED: Final = Fate("carried")


def changed(why: str) -> Fate:
    """It is told in other words: noted."""
    return Fate("changed", why)


def dropped(why: str) -> Fate:
    """It is not told: noted."""
    return Fate("dropped", why)


def refused(why: str) -> Fate:
    """Without it the answer would be to another question: refused."""
    return Fate("refused", why)


class Asked(Struct, frozen=True):
    """A feature of a request."""

    field: str
    what: str
    used: Callable[[Request, Target], bool]
    chat: Fate = CARRIED
    responses: Fate = CARRIED
    messages: Fate = CARRIED

    def fate(self, dialect: DialectName) -> Fate:
        return {"chat": self.chat, "responses": self.responses, "messages": self.messages}[dialect]


def _parameter(name: str) -> Callable[[Request, Target], bool]:
    return lambda request, _: getattr(request.parameters, name) not in (None, ())


def _parts(request: Request) -> Iterator[Text | Image | Opaque | Reasoning | object]:
    for message in request.messages:
        yield from message.parts


def _is_ours(data: dict[str, Any]) -> bool:
    """A remark on the text before it, which is there without it."""
    return str(data.get("type")).startswith("headwater.")


def _late_system(request: Request) -> bool:
    roles = [isinstance(message, System) for message in request.messages]
    return True in roles[roles.index(False) :] if False in roles else False


def _untold_reasoning(request: Request, target: Target, dialect: DialectName) -> bool:
    """Earlier reasoning that this upstream has not sealed itself."""
    if dialect == "chat" and target.reasoning_field is not None:
        return False
    return any(
        part.text and (part.dialect != dialect or not part.state or message.origin not in (None, target.origin))
        for message in request.messages
        if isinstance(message, Assistant)
        for part in message.parts
        if isinstance(part, Reasoning)
    )


_NO_SUCH: Final = dropped("The dialect has no such parameter.")
_NO_MARKS: Final = dropped("The dialect has no marks for the provider's cache.")
_NO_FLAG: Final = dropped("The dialect has no word for a failed call: only the result's text says so.")
_NO_NAME: Final = dropped("The dialect has no place for a speaker's name.")
_NO_STOP: Final = refused("The dialect has no stop sequences.")

ASKED: Final = (
    Asked("max_tokens", "a limit of tokens", _parameter("max_tokens")),
    Asked("temperature", "temperature", _parameter("temperature")),
    Asked(
        "temperature",
        "temperature above 1",
        lambda request, _: (request.parameters.temperature or 0) > 1,
        messages=changed("Sent as 1, which is the highest there."),
    ),
    Asked(
        "temperature",
        "temperature of a model that is asked to reason",
        lambda request, target: request.parameters.temperature not in (None, 1) and reasons(request, target),
        messages=dropped("A model that reasons has its own."),
    ),
    Asked("top_p", "top_p", _parameter("top_p")),
    Asked("stop", "stop sequences", _parameter("stop"), responses=_NO_STOP),
    Asked(
        "stop",
        "a stop sequence of white space",
        lambda request, _: any(not sequence.strip() for sequence in request.parameters.stop),
        responses=_NO_STOP,
        messages=dropped("White space alone can't stop the model there."),
    ),
    Asked("seed", "seed", _parameter("seed"), responses=_NO_SUCH, messages=_NO_SUCH),
    Asked(
        "presence_penalty",
        "presence penalty",
        _parameter("presence_penalty"),
        responses=_NO_SUCH,
        messages=_NO_SUCH,
    ),
    Asked(
        "frequency_penalty",
        "frequency penalty",
        _parameter("frequency_penalty"),
        responses=_NO_SUCH,
        messages=_NO_SUCH,
    ),
    Asked(
        "reasoning_effort",
        "reasoning effort",
        lambda request, target: _parameter("reasoning_effort")(request, target) and not cannot_reason(request, target),
    ),
    Asked(
        "reasoning_effort",
        "reasoning where it can't be: a model without it, a forced tool, no room, calls that another model made",
        cannot_reason,
        messages=dropped("The model is not asked to reason here."),
    ),
    Asked("output", "JSON by a schema", lambda request, _: isinstance(request.parameters.output, JsonSchema)),
    Asked(
        "output.name",
        "a schema's description, and whether it is strict",
        lambda request, _: (
            isinstance(schema := request.parameters.output, JsonSchema)
            and bool(schema.description or schema.strict is False)
        ),
        messages=dropped("Only the schema itself is told, and it is always strict."),
    ),
    Asked(
        "output",
        "JSON without a schema",
        lambda request, _: (
            (isinstance(output := request.parameters.output, JsonSchema) and output.schema is None)
            or request.parameters.output == "json_object"
        ),
        messages=refused("JSON can be demanded there by a schema only."),
    ),
    Asked("tools", "function tools", lambda request, _: bool(request.tools)),
    Asked(
        "tools.name",
        "a tool's name with a dot, or longer than 128 characters",
        lambda request, _: any(not is_name(tool.name) for tool in request.tools),
        messages=refused("A tool's name there is made of letters, digits, '_' and '-'."),
    ),
    Asked("tool_choice", "tool choice", lambda request, _: bool(request.tools) and request.tool_choice is not None),
    Asked(
        "parallel_tool_calls",
        "no parallel calls",
        lambda request, _: bool(request.tools) and request.parameters.parallel_tool_calls is False,
    ),
    Asked(
        "cache",
        "cache marks",
        lambda request, _: any(getattr(part, "cache", None) for part in (*_parts(request), *request.tools)),
        chat=_NO_MARKS,
        responses=_NO_MARKS,
    ),
    Asked("messages.system", "system prompts", lambda request, _: any(isinstance(m, System) for m in request.messages)),
    Asked(
        "messages.system",
        "a system prompt after the conversation has begun",
        lambda request, _: _late_system(request),
        messages=changed("Sent with the first one: it keeps its authority and loses its place."),
    ),
    Asked(
        "messages.name",
        "a speaker's name",
        lambda request, _: any(getattr(message, "name", None) for message in request.messages),
        responses=_NO_NAME,
        messages=_NO_NAME,
    ),
    Asked("messages.image", "images", lambda request, _: any(isinstance(part, Image) for part in _parts(request))),
    Asked(
        "messages.image.detail",
        "the detail in which an image is seen",
        lambda request, _: any(isinstance(part, Image) and part.detail in ("low", "high") for part in _parts(request)),
        messages=dropped("An image has one detail there."),
    ),
    Asked(
        "messages.image",
        "images by http, and of other types than JPEG, PNG, GIF and WebP",
        lambda request, _: any(isinstance(part, Image) and image_block(part) is None for part in _parts(request)),
        messages=refused("Only JPEG, PNG, GIF and WebP images, inline or by https, can be shown there."),
    ),
    Asked(
        "messages.tool_calls",
        "tool calls and their results",
        lambda request, _: any(isinstance(message, ToolOutput) for message in request.messages),
    ),
    Asked(
        "messages.tool.image",
        "images in a tool's result",
        lambda request, _: any(
            isinstance(part, Image) for m in request.messages if isinstance(m, ToolOutput) for part in m.parts
        ),
        chat=changed("Shown after the results, as the user's: a result is text there."),
    ),
    Asked(
        "messages.tool.is_error",
        "that a tool call failed",
        lambda request, _: any(isinstance(message, ToolOutput) and message.is_error for message in request.messages),
        chat=_NO_FLAG,
        responses=_NO_FLAG,
    ),
    Asked(
        "messages.refusal",
        "that the model had refused",
        lambda request, _: any(isinstance(part, Text) and part.refusal for part in _parts(request)),
        messages=changed("Its words are sent as any others."),
    ),
)


def notes(request: Request, target: Target, dialect: DialectName) -> list[Note]:
    """What an upstream of this dialect will not be told, or not in the client's words."""
    found = [
        Note(row.field, fate.why, refuse=fate.kind == "refused")
        for row in ASKED
        if (fate := row.fate(dialect)) != CARRIED and row.used(request, target)
    ]
    for extras in (request.extras, *(tool.extras for tool in request.tools)):
        if extras is not None and extras.dialect != dialect:
            found += [Note(name, f"A parameter of the {extras.dialect} dialect only.") for name in extras.fields]
    if _untold_reasoning(request, target, dialect):
        found.append(Note("messages.reasoning", "Earlier reasoning goes back only to the upstream that sealed it."))
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Opaque) and part.dialect != dialect and not _is_ours(part.data):
                what = f"A part of type '{part.data.get('type')}' is known to the {part.dialect} dialect only."
                # What the client brought is part of its question; what a model left behind is not.
                found.append(Note("messages.content", what, refuse=not isinstance(message, Assistant)))
    for name in sorted(target.omit & {row.field for row in ASKED if row.used(request, target)}):
        found.append(Note(name, "This upstream refuses it."))
    return list(dict.fromkeys(found))


# -------------------------------------------------------------------- answers


class Answered(Struct, frozen=True):
    """A feature of an answer."""

    what: str
    chat: Fate = CARRIED
    responses: Fate = CARRIED
    messages: Fate = CARRIED


_OWN: Final = dropped("Told only where the upstream speaks this dialect, too.")

ANSWERED: Final = (
    Answered("text, as it comes"),
    Answered("reasoning, as it comes"),
    Answered("tool calls, parallel ones too"),
    Answered("stop reasons"),
    Answered("tokens: input, output, cached, reasoning"),
    Answered(
        "tokens written to the cache",
        chat=dropped("The dialect counts them among the input's."),
        responses=dropped("The dialect counts them among the input's."),
    ),
    Answered("that a text is a refusal", messages=changed("Its words come as any others.")),
    Answered("seals of reasoning, for the next turn", chat=_OWN, responses=_OWN, messages=_OWN),
    Answered("items of hosted tools, and others that we don't know", chat=_OWN, responses=_OWN, messages=_OWN),
)


def unsaid(event: Event, dialect: DialectName) -> str | None:
    """Why a client of this dialect will not see an event that another one's would: for a notice."""
    match event:
        case ProviderState(of="message", dialect=other, data=data) if other != dialect and not _is_ours(data):
            return f"An item of type '{data.get('type')}' is known to clients of the {other} dialect only."
        case TextDelta(refusal=True) if dialect == "messages":
            return "The model's words are a refusal, which this dialect does not tell from others."
        case _:
            return None
