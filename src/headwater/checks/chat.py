"""What OpenAI refuses a chat completions request for."""

import re
from typing import Any, Final

from headwater.checks.complaints import Complaints

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_NAME: Final = re.compile(r"[^\s<|\\/>]{1,64}")
_MAX_ID_CHARS: Final = 40


def check_chat(body: dict[str, Any]) -> list[str]:
    complaints = Complaints()
    complaints.text(body.get("model"), "model")
    _check_history(complaints.objects(body.get("messages"), "messages"), complaints)
    _check_tools(body, complaints)
    complaints.number(body, "temperature", 0, 2)
    complaints.number(body, "top_p", 0, 1)
    complaints.number(body, "presence_penalty", -2, 2)
    complaints.number(body, "frequency_penalty", -2, 2)
    for field in ("max_tokens", "max_completion_tokens"):
        complaints.number(body, field, 1, 10**9)
    stop = body.get("stop")
    complaints.that(
        stop is None or isinstance(stop, str) or (isinstance(stop, list) and 1 <= len(stop) <= 4),
        "stop",
        "must be one to four sequences",
    )
    return complaints.found


def _check_history(messages: list[dict[str, Any]], complaints: Complaints) -> None:
    waiting: list[Any] = []
    seen: list[Any] = []
    for n, message in enumerate(messages):
        where = f"messages[{n}]"
        role = message.get("role")
        if not complaints.that(role in _ROLES, f"{where}.role", f"unknown: {role!r}"):
            continue
        if role == "tool":
            id = message.get("tool_call_id")
            if complaints.that(id in waiting, where, f"no call right before it has the id {id!r}"):
                waiting.remove(id)
            _check_content(message.get("content"), ("text",), where, complaints, may_be_empty=True)
            continue
        complaints.that(not waiting, where, f"tool calls without a result right after them: {waiting}")
        waiting = []
        if (name := message.get("name")) is not None:
            complaints.that(isinstance(name, str) and bool(_NAME.fullmatch(name)), f"{where}.name", "is malformed")
        if role == "assistant":
            waiting = _check_assistant(message, where, complaints)
            seen += waiting
        else:
            kinds = ("text", "image_url", "file", "input_audio") if role == "user" else ("text",)
            _check_content(message.get("content"), kinds, where, complaints)
    complaints.that(not waiting, "messages", f"tool calls without a result: {waiting}")
    complaints.unique(seen, "messages", "ids of tool calls")


def _check_assistant(message: dict[str, Any], where: str, complaints: Complaints) -> list[str]:
    """The ids of its calls."""
    if message.get("content") is not None:
        _check_content(message["content"], ("text", "refusal"), where, complaints)
    else:
        said = "tool_calls" in message or message.get("refusal")
        complaints.that(bool(said), where, "must have content, a refusal or tool calls")
    if "tool_calls" not in message:
        return []
    ids = []
    for n, call in enumerate(complaints.objects(message["tool_calls"], f"{where}.tool_calls")):
        place = f"{where}.tool_calls[{n}]"
        if complaints.text(call.get("id"), f"{place}.id"):
            ids.append(call["id"])
            complaints.that(len(call["id"]) <= _MAX_ID_CHARS, f"{place}.id", f"is longer than {_MAX_ID_CHARS}")
        complaints.that(call.get("type") == "function", f"{place}.type", "must be 'function'")
        if complaints.object(call.get("function"), f"{place}.function"):
            complaints.name(call["function"].get("name"), 64, f"{place}.function.name")
            arguments = call["function"].get("arguments")
            complaints.that(isinstance(arguments, str), f"{place}.function.arguments", "must be a text")
    return ids


def _check_content(
    content: Any, kinds: tuple[str, ...], where: str, complaints: Complaints, *, may_be_empty: bool = False
) -> None:
    if isinstance(content, str):
        complaints.that(bool(content) or may_be_empty, f"{where}.content", "is empty")
        return
    for n, part in enumerate(complaints.objects(content, f"{where}.content")):
        place = f"{where}.content[{n}]"
        kind = part.get("type")
        if not complaints.that(kind in kinds, f"{place}.type", f"{kind!r} can't stand here"):
            continue
        if kind == "image_url":
            image = part.get("image_url")
            url = image.get("url") if isinstance(image, dict) else None
            good = isinstance(url, str) and url.startswith(("https:", "http:", "data:image/"))
            complaints.that(good, f"{place}.image_url.url", "is no image")
        elif kind in ("file", "input_audio"):
            complaints.that(isinstance(part.get(kind), dict), f"{place}.{kind}", "must be an object")
        else:
            complaints.text(part.get(str(kind)), f"{place}.{kind}")


def _check_tools(body: dict[str, Any], complaints: Complaints) -> None:
    if "tools" not in body:
        for field in ("tool_choice", "parallel_tool_calls"):
            complaints.that(field not in body, field, "is only allowed when 'tools' are specified")
        return
    names = []
    for n, tool in enumerate(complaints.objects(body["tools"], "tools")):
        complaints.that(tool.get("type") == "function", f"tools[{n}].type", "must be 'function'")
        if complaints.object(tool.get("function"), f"tools[{n}].function"):
            names.append(tool["function"].get("name"))
            complaints.name(names[-1], 64, f"tools[{n}].function.name")
    complaints.unique(names, "tools", "names")
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        function = choice.get("function")
        chosen = function.get("name") if isinstance(function, dict) else None
        complaints.that(chosen in names, "tool_choice", f"{chosen!r} is not one of the tools")
    else:
        complaints.that(choice in (None, "auto", "none", "required"), "tool_choice", f"unknown: {choice!r}")
