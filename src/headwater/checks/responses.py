"""What OpenAI refuses a Responses request for."""

from typing import Any, Final

from headwater.checks.complaints import Complaints, word

_ROLES: Final = ("user", "assistant", "system", "developer")
_PARTS: Final = {
    "user": ("input_text", "input_image", "input_file"),
    "system": ("input_text",),
    "developer": ("input_text",),
    "assistant": ("output_text", "refusal"),
}
_OUTPUT_PARTS: Final = ("input_text", "input_image", "input_file")
_ITEMS: Final = frozenset(
    [
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
        "item_reference",
        "compaction",
        "web_search_call",
        "file_search_call",
        "computer_call",
        "computer_call_output",
        "image_generation_call",
        "code_interpreter_call",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "custom_tool_call",
        "custom_tool_call_output",
    ]
)
# Of calls that are no function's, those that a client answers.
_ANSWERED: Final = ("custom_tool_call", "computer_call", "shell_call", "apply_patch_call")
_MAX_ID_CHARS: Final = 64
_LEAST_OUTPUT: Final = 16


def check_responses(body: dict[str, Any]) -> list[str]:
    complaints = Complaints()
    complaints.text(body.get("model"), "model")
    items = body.get("input")
    if isinstance(items, str):
        complaints.text(items, "input")
    else:
        _check_items(complaints.objects(items, "input"), complaints)
    if "instructions" in body:
        complaints.that(isinstance(body["instructions"], str), "instructions", "must be a text")
    _check_tools(body, complaints)
    complaints.number(body, "temperature", 0, 2)
    complaints.number(body, "top_p", 0, 1)
    complaints.number(body, "max_output_tokens", _LEAST_OUTPUT, 10**9)
    for field in ("messages", "max_tokens", "stop", "n"):
        complaints.that(field not in body, field, "is not a field of this dialect")
    return complaints.found


def _check_items(items: list[dict[str, Any]], complaints: Complaints) -> None:
    called: list[Any] = []
    answered: list[Any] = []
    ids: list[Any] = []
    for n, item in enumerate(items):
        where = f"input[{n}]"
        kind = word(item.get("type", "message"))
        if not complaints.that(kind in _ITEMS, f"{where}.type", f"unknown: {kind!r}"):
            continue
        if kind != "item_reference" and item.get("id") is not None and complaints.text(item["id"], f"{where}.id"):
            ids.append(item["id"])
        match kind:
            case "message":
                _check_message(item, where, complaints)
            case "function_call":
                _check_call(item, where, complaints)
                called.append(item.get("call_id"))
            case "function_call_output":
                id = item.get("call_id")
                complaints.that(id in called, where, f"no function call before it has the id {id!r}")
                answered.append(id)
                _check_output(item.get("output"), where, complaints)
            case "reasoning":
                _check_reasoning(item, items[n + 1 :], where, complaints)
            case _:
                """The provider's own, to be judged by it."""
    for kind in _ANSWERED:
        _check_pairs(items, kind, complaints)
    missing = [id for id in called if id not in answered]
    complaints.that(not missing, "input", f"no tool output found for the function calls {missing}")
    complaints.unique(called, "input", "call_ids of function calls")
    complaints.unique(answered, "input", "call_ids of outputs")
    complaints.unique(ids, "input", "ids of items")


def _check_pairs(items: list[dict[str, Any]], kind: str, complaints: Complaints) -> None:
    waiting: list[Any] = []
    for n, item in enumerate(items):
        if item.get("type") == kind:
            waiting.append(item.get("call_id"))
        elif item.get("type") == f"{kind}_output":
            id = item.get("call_id")
            if complaints.that(id in waiting, f"input[{n}]", f"no {kind} before it has the id {id!r}"):
                waiting.remove(id)
    complaints.that(not waiting, "input", f"no output found for the {kind}s {waiting}")


def _check_message(item: dict[str, Any], where: str, complaints: Complaints) -> None:
    role = item.get("role")
    if not complaints.that(role in _ROLES, f"{where}.role", f"unknown: {role!r}"):
        return
    content = item.get("content")
    if isinstance(content, str):
        complaints.text(content, f"{where}.content")
        return
    _check_parts(content, _PARTS[str(role)], f"{where}.content", complaints)


def _check_parts(content: Any, kinds: tuple[str, ...], where: str, complaints: Complaints) -> None:
    for n, part in enumerate(complaints.objects(content, where)):
        place = f"{where}[{n}]"
        kind = part.get("type")
        if not complaints.that(kind in kinds, f"{place}.type", f"{kind!r} can't stand here"):
            continue
        match kind:
            case "input_text" | "output_text":
                complaints.text(part.get("text"), f"{place}.text")
            case "refusal":
                complaints.text(part.get("refusal"), f"{place}.refusal")
            case "input_image":
                given = part.get("image_url") or part.get("file_id")
                complaints.text(given, f"{place}.image_url")
            case _:
                """A file: by id, by URL or inline."""


def _check_call(item: dict[str, Any], where: str, complaints: Complaints) -> None:
    if complaints.text(item.get("call_id"), f"{where}.call_id"):
        complaints.that(len(item["call_id"]) <= _MAX_ID_CHARS, f"{where}.call_id", f"is longer than {_MAX_ID_CHARS}")
    complaints.name(item.get("name"), 64, f"{where}.name")
    complaints.that(isinstance(item.get("arguments"), str), f"{where}.arguments", "must be a text")


def _check_output(output: Any, where: str, complaints: Complaints) -> None:
    if not isinstance(output, str):
        _check_parts(output, _OUTPUT_PARTS, f"{where}.output", complaints)


def _check_reasoning(item: dict[str, Any], following: list[dict[str, Any]], where: str, complaints: Complaints) -> None:
    summary = item.get("summary")
    complaints.that(isinstance(summary, list), f"{where}.summary", "must be a list")
    # With `store: false` nothing but its encrypted content says what it was.
    sealed = bool(item.get("encrypted_content"))
    complaints.that(sealed, f"{where}.encrypted_content", "is missing, and nothing is stored")
    rest = [other for other in following if other.get("type") != "reasoning"]
    mine = bool(rest) and (rest[0].get("type") not in (None, "message") or rest[0].get("role") == "assistant")
    output = mine and not str(rest[0].get("type")).endswith("_output")
    complaints.that(output, where, "was provided without its required following item")


def _check_tools(body: dict[str, Any], complaints: Complaints) -> None:
    tools = complaints.objects(body["tools"], "tools") if "tools" in body else []
    names = []
    for n, tool in enumerate(tools):
        if complaints.that(tool.get("type") == "function", f"tools[{n}].type", "must be 'function'"):
            names.append(tool.get("name"))
            complaints.name(names[-1], 64, f"tools[{n}].name")
            schema = tool.get("parameters")
            complaints.that(schema is None or isinstance(schema, dict), f"tools[{n}].parameters", "must be an object")
    complaints.unique(names, "tools", "names")
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        complaints.that(choice.get("name") in names, "tool_choice", "is not one of the tools")
    else:
        complaints.that(choice in (None, "auto", "none", "required"), "tool_choice", f"unknown: {choice!r}")
        complaints.that(choice != "required" or bool(tools), "tool_choice", "needs tools to choose from")
