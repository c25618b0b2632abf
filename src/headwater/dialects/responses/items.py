"""Input items, as clients send them, into messages.

A conversation is a flat list here: what the model said one after the other
(reasoning, a text, calls, items that only this dialect knows) is one message of ours.
"""

from typing import Annotated, Any, Final, Literal, assert_never

from msgspec import Meta, Struct

from headwater.conversation import (
    Assistant,
    Image,
    Message,
    Opaque,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects.choices import listed
from headwater.dialects.parsing import convert
from headwater.dialects.responses.annotations import joined_annotations
from headwater.dialects.responses.reasoning import state_of, text_of
from headwater.errors import CallerError

_Status = Literal["in_progress", "completed", "incomplete"]
_ROLES: Final = ["user", "assistant", "system", "developer"]
_Id = Annotated[str, Meta(min_length=1)]


class _Wire(Struct, forbid_unknown_fields=True):
    pass


class _InputText(_Wire, tag_field="type", tag="input_text"):
    text: str


class _InputImage(_Wire, tag_field="type", tag="input_image"):
    image_url: Annotated[str, Meta(pattern=r"^(https?:|data:image/)")] | None = None
    detail: Literal["auto", "low", "high"] | None = None
    file_id: str | None = None


class _InputFile(_Wire, tag_field="type", tag="input_file", forbid_unknown_fields=False):
    pass


class _OutputText(_Wire, tag_field="type", tag="output_text"):
    text: str
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[Any] | None = None


class _Refusal(_Wire, tag_field="type", tag="refusal"):
    refusal: str


_Visible = _InputText | _InputImage | _InputFile


class _SystemMessage(_Wire):
    role: Literal["system", "developer"]
    content: str | list[_InputText]
    type: Literal["message"] = "message"
    id: str | None = None
    status: _Status | None = None


class _UserMessage(_Wire):
    role: Literal["user"]
    content: str | list[_Visible]
    type: Literal["message"] = "message"
    id: str | None = None
    status: _Status | None = None


class _AssistantMessage(_Wire):
    role: Literal["assistant"]
    content: str | list[_OutputText | _Refusal]
    type: Literal["message"] = "message"
    id: str | None = None
    status: _Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class _Summary(_Wire, tag_field="type", tag="summary_text"):
    text: str


class _Thought(_Wire, tag_field="type", tag="reasoning_text"):
    text: str


class _Reasoning(_Wire):
    type: Literal["reasoning"]
    summary: list[_Summary]
    id: str | None = None
    content: list[_Thought] | None = None
    encrypted_content: str | None = None
    status: _Status | None = None


class _FunctionCall(Struct):
    """With whatever fields its provider added, which must go back to it."""

    type: Literal["function_call"]
    call_id: _Id
    name: _Id
    arguments: str
    id: str | None = None
    status: _Status | None = None


class _FunctionCallOutput(_Wire):
    type: Literal["function_call_output"]
    call_id: _Id
    output: str | list[_Visible]
    id: str | None = None
    status: _Status | None = None


def read_input(input: str | list[dict[str, Any]]) -> list[Message]:
    if isinstance(input, str):
        return [User((Text(input),))]
    messages: list[Message] = []
    said: list[Text | Reasoning | ToolCall | Opaque] = []
    for n, item in enumerate(input):
        read = _read(item, f"input[{n}]")
        if said and (not isinstance(read, list) or (_is_text(read[:1]) and _is_text(said[-1:]))):
            messages.append(Assistant(tuple(said)))
            said = []
        if isinstance(read, list):
            said += read
        else:
            messages.append(read)
    if said:
        messages.append(Assistant(tuple(said)))
    return messages


_Said = list[Text | Reasoning | ToolCall | Opaque]


def _is_text(said: _Said) -> bool:
    """A message's text, or the note that follows it."""
    return any(isinstance(part, Text) or _is_note(part) for part in said)


def _is_note(part: Text | Reasoning | ToolCall | Opaque) -> bool:
    return isinstance(part, Opaque) and part.data.get("type") == "message"


def _read(item: dict[str, Any], path: str) -> System | User | ToolOutput | _Said:
    """What the model said comes as a list of parts."""
    match item.get("type", "message" if "role" in item else "item_reference"):
        case "message":
            return _message(item, path)
        case "reasoning":
            return [_reasoning(item, path)]
        case "function_call":
            call = convert(item, _FunctionCall, path)
            extra = {name: value for name, value in item.items() if name not in _FunctionCall.__struct_fields__}
            return [ToolCall(call.call_id, call.name, call.arguments, extra or None)]
        case "function_call_output":
            output = convert(item, _FunctionCallOutput, path)
            return ToolOutput(output.call_id, _visible(output.output, f"{path}.output"))
        case "item_reference" | None:
            raise CallerError(
                f"'{path}' is an item_reference, which can't be used here: items are not kept by their ids. "
                "Send the item itself, or a 'previous_response_id'.",
                code="unsupported_value",
                param=path,
            )
        case str():
            # A hosted tool's call, or its output: only an upstream of this dialect knows.
            return [Opaque("responses", item)]
        case _:
            raise CallerError(f"Invalid value at '{path}.type': expected `str`.", param=f"{path}.type")


def _message(item: dict[str, Any], path: str) -> System | User | _Said:
    match item.get("role"):
        case "user":
            return User(_visible(convert(item, _UserMessage, path).content, f"{path}.content"))
        case "assistant":
            return _assistant(convert(item, _AssistantMessage, path))
        case str(role) if role not in _ROLES:
            message = f"Invalid value at '{path}.role': invalid value '{role}'. It can be {listed(_ROLES)}."
            raise CallerError(message, param=f"{path}.role")
        case _:
            content = convert(item, _SystemMessage, path).content
            return System((Text(content),) if isinstance(content, str) else tuple(Text(part.text) for part in content))


def _visible(content: str | list[_Visible], path: str) -> tuple[Text | Image, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_visible_part(part, f"{path}[{n}]") for n, part in enumerate(content))


def _visible_part(part: _Visible, path: str) -> Text | Image:
    match part:
        case _InputText(text=text):
            return Text(text)
        case _InputImage(image_url=str(url), detail=detail):
            return Image(url, detail)
        case _InputImage():
            raise _refused(path, "an image needs an 'image_url'; files are not kept here.")
        case _InputFile():
            raise _refused(path, "only text and images are carried.")
        case unreachable:
            assert_never(unreachable)


def _refused(path: str, why: str) -> CallerError:
    return CallerError(f"'{path}' can't be used here: {why}", code="unsupported_value", param=path)


def _assistant(message: _AssistantMessage) -> _Said:
    if isinstance(message.content, str):
        parts: list[Text] = [Text(message.content)]
        annotations: list[Any] = []
    else:
        parts = [
            Text(part.text) if isinstance(part, _OutputText) else Text(part.refusal, refusal=True)
            for part in message.content
        ]
        annotations = joined_annotations(
            [
                {"text": part.text, "annotations": part.annotations}
                for part in message.content
                if isinstance(part, _OutputText)
            ]
        )
    note: dict[str, Any] = {"phase": message.phase} if message.phase else {}
    if annotations:
        note["annotations"] = annotations
    said: _Said = [part for part in parts if part.text]
    if said and note:
        said.append(Opaque("responses", {"type": "message", **note}))
    return said


def _reasoning(item: dict[str, Any], path: str) -> Reasoning:
    sealed = convert(item, _Reasoning, path).encrypted_content
    text = text_of(item)
    return Reasoning(text, "responses", state_of(item, text)) if sealed else Reasoning(text)
