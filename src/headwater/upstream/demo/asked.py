"""What a demo model is asked: the few things that it looks at in a chat completions request."""

import hashlib
from typing import Any, Literal

import msgspec
from msgspec import Struct, field


class Offered(Struct, frozen=True):
    """A tool that may be called."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


class Result(Struct, frozen=True):
    """What a tool that was called has answered."""

    tool: str
    text: str


class Asked(Struct, frozen=True, kw_only=True):
    model: str
    prompt: str = ""
    """The last thing that the user said."""
    images: int = 0
    system: str = ""
    begun: str = ""
    """An answer that is to be gone on with: the request ends with it."""
    results: tuple[Result, ...] = ()
    """Of the calls in the turn before, if the request ends with them."""
    rounds: int = 0
    """How often tools have answered since the user spoke."""
    tools: tuple[Offered, ...] = ()
    choice: str | Offered = "auto"
    parallel: bool = True
    limit: int | None = None
    """Of tokens."""
    stop: tuple[str, ...] = ()
    effort: str | None = None
    schema: dict[str, Any] | None = None
    """The answer is to be JSON of this form."""
    include_usage: bool = False
    input_tokens: int = 0
    seed: str = ""
    """The same request gets the same answer, also when it is asked to go on with it."""


# ---------------------------------------------------------------- as it is sent


class _Part(Struct, frozen=True):
    type: str
    text: str = ""


class _Function(Struct, frozen=True):
    name: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}


class _Call(Struct, frozen=True):
    id: str
    function: _Function


class _Message(Struct, frozen=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] = []
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text)
        return self.content or ""


class _Tool(Struct, frozen=True):
    function: _Function


class _StreamOptions(Struct, frozen=True):
    include_usage: bool = False


class _JsonSchema(Struct, frozen=True):
    schema: dict[str, Any] | None = None


class _Format(Struct, frozen=True):
    type: str
    json_schema: _JsonSchema = _JsonSchema()


class _Body(Struct, frozen=True):
    model: str
    messages: list[_Message]
    tools: list[_Tool] = []
    tool_choice: str | _Tool = "auto"
    parallel_tool_calls: bool = True
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: list[str] = []
    seed: int | None = None
    reasoning_effort: str | None = None
    response_format: _Format | None = None
    stream_options: _StreamOptions = _StreamOptions()


_decode = msgspec.json.Decoder(_Body).decode


def read(body: bytes) -> Asked:
    """The body is one that `dialects.chat.render` has written."""
    sent = _decode(body)
    last = sent.messages[-1]
    begun = last.text if last.role == "assistant" else ""
    history = sent.messages[:-1] if begun else sent.messages
    said = [message for message in history if message.role == "user"] or [last]
    tools = tuple(_offered(tool) for tool in sent.tools)
    model = sent.model.removeprefix("demo/")
    return Asked(
        model=model,
        prompt=said[-1].text,
        images=_images(said[-1]),
        system="\n".join(message.text for message in history if message.role == "system"),
        begun=begun,
        results=_results(history),
        rounds=_rounds(history),
        tools=tools,
        choice=sent.tool_choice if isinstance(sent.tool_choice, str) else _chosen(sent.tool_choice, tools),
        parallel=sent.parallel_tool_calls,
        limit=sent.max_completion_tokens or sent.max_tokens,
        stop=tuple(sequence for sequence in sent.stop if sequence),
        effort=sent.reasoning_effort,
        schema=_schema(sent.response_format),
        include_usage=sent.stream_options.include_usage,
        input_tokens=sum(len(message.text.split()) for message in sent.messages),
        seed=_seed(model, history, sent.seed),
    )


def _images(message: _Message) -> int:
    return sum(part.type == "image_url" for part in message.content) if isinstance(message.content, list) else 0


def _offered(tool: _Tool) -> Offered:
    return Offered(tool.function.name, tool.function.description, tool.function.parameters)


def _chosen(choice: _Tool, tools: tuple[Offered, ...]) -> Offered:
    return next((tool for tool in tools if tool.name == choice.function.name), _offered(choice))


def _results(history: list[_Message]) -> tuple[Result, ...]:
    names = {call.id: call.function.name for message in history for call in message.tool_calls}
    results: list[Result] = []
    for message in reversed(history):
        if message.role != "tool":
            break
        results.insert(0, Result(names.get(message.tool_call_id, "a tool"), message.text))
    return tuple(results)


def _rounds(history: list[_Message]) -> int:
    rounds = 0
    for message in reversed(history):
        if message.role == "user":
            break
        rounds += bool(message.tool_calls)
    return rounds


def _schema(format: _Format | None) -> dict[str, Any] | None:
    if format is None:
        return None
    return format.json_schema.schema or {"type": "object"}


def _seed(model: str, history: list[_Message], seed: int | None) -> str:
    said = msgspec.json.encode([model, [[message.role, message.text] for message in history], seed])
    return hashlib.sha256(said).hexdigest()
