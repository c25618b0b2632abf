"""Any conversation that there can be, also the ones that no provider would take as they are."""

from hypothesis import strategies as st

from headwater.conversation import (
    Assistant,
    Cache,
    Extras,
    Image,
    JsonSchema,
    Message,
    NamedTool,
    Opaque,
    Parameters,
    Reasoning,
    Request,
    System,
    Text,
    Tool,
    ToolCall,
    ToolOutput,
    User,
)

# Few, so that they collide; and one of every kind that some provider refuses.
TEXTS = ["", " ", "\n\t", "Hi", " Hi", "Hi \n", "Grüße 🌍", "a\u2028b", "x" * 300]
IDS = ["call_a", "call_b", "call_c", "toolu_01", "fc:1|rs/2", "call a", "é", "1", "_" * 40]
LONG_IDS = ["call_" + "x" * 60, "call_" + "x" * 60 + "y"]
NAMES = ["look", "files.read", "functions.look", "é", "look it up", "x" * 70, "write-2", "_"]
ARGUMENTS = [
    "{}",
    '{"x":1}',
    '{"x":',
    "",
    " ",
    "null",
    "[1]",
    '"x"',
    "{'x': 1}",
    '{"n":1e999,"n":12345678901234567890123}',
]
PNG = "data:image/png;base64,iVBORw0KGgo="
URLS = [
    "https://example.com/a.png",
    "http://example.com/a.png",
    PNG,
    "data:image/bmp;base64,Qk0=",
    "data:image/png,%89PNG",
]

PARAMETERS_OF_ONE = [
    None,
    Extras("chat", {"top_k": 5}),
    Extras("messages", {"top_k": 5}),
    Extras("messages", {"top_k": 5, "thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
    Extras("messages", {"thinking": {"type": "disabled"}}),
    Extras("responses", {"verbosity": "low"}),
]

texts = st.sampled_from(TEXTS)
caches: st.SearchStrategy[Cache | None] = st.sampled_from([None, None, None, "5m", "1h"])
plain_texts = st.builds(Text, texts, st.just(False), caches)
images = st.builds(Image, st.sampled_from(URLS), st.sampled_from([None, "auto", "low", "high"]), caches)
documents = st.sampled_from(
    [
        Opaque("messages", {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}),
        Opaque("responses", {"type": "input_file", "file_id": "file_1"}),
    ]
)
visible = st.lists(plain_texts | images | documents, max_size=3).map(tuple)

reasonings = st.sampled_from(
    [
        Reasoning("Hm."),
        Reasoning(""),
        Reasoning("Hm.", "messages", {"signature": "c2ln"}),
        Reasoning("", "messages", {"signature": "c2ln"}),
        Reasoning("", "messages", {"data": "c2VhbGVk"}),
        Reasoning("Hm.", "messages", {"signature": ""}),
        Reasoning("Hm.", "responses", {}),
        Reasoning("Hm.", "chat", {"reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}]}),
        Reasoning("Hm.", "responses", {"type": "reasoning", "id": "rs_1", "encrypted_content": "ZW5j", "summary": []}),
    ]
)
items = st.sampled_from(
    [
        Opaque("messages", {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}),
        Opaque("messages", {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}),
        Opaque("messages", {"type": "headwater.stop", "stop_sequence": "X"}),
        Opaque("messages", {"type": "headwater.citations", "citations": [{"type": "char_location"}]}),
        Opaque("messages", {"type": "headwater.citations", "citations": []}),
        Opaque("messages", {"type": "mcp_tool_use", "id": "mcp_1", "name": "a", "server_name": "s", "input": {}}),
        Opaque("messages", {"type": "mcp_tool_result", "tool_use_id": "mcp_1", "content": []}),
        Opaque("responses", {"type": "web_search_call", "id": "ws_1", "status": "completed"}),
        Opaque("responses", {"type": "message"}),
        Opaque("responses", {"type": "message", "phase": "commentary", "annotations": [{"type": "url_citation"}]}),
        Opaque("responses", {"type": "custom_tool_call", "call_id": "call_c", "name": "sql", "input": "x"}),
        Opaque("responses", {"type": "custom_tool_call_output", "call_id": "call_c", "output": "1"}),
        Opaque("chat", {"type": "message", "annotations": [{"type": "url_citation"}]}),
        Opaque("chat", {"type": "images", "images": [{"type": "image_url"}]}),
    ]
)
extras = st.sampled_from(
    [None, {"extra_content": {"google": {"thought_signature": "c2ln"}}}, {"caller": {"type": "x"}}]
)


def calls(ids: list[str]) -> st.SearchStrategy[ToolCall]:
    return st.builds(ToolCall, st.sampled_from(ids), st.sampled_from(NAMES), st.sampled_from(ARGUMENTS), extras, caches)


def assistants(ids: list[str], origin: str | None) -> st.SearchStrategy[Assistant]:
    said = st.builds(Text, texts, st.booleans(), caches)
    parts = st.lists(said | reasonings | calls(ids) | items, max_size=4).map(tuple)
    names = st.sampled_from([None, None, "Ada", "Ada Lovelace <x>"])
    return st.builds(Assistant, parts, names, st.just(origin))


outputs = st.builds(
    ToolOutput, st.sampled_from(IDS + LONG_IDS), visible, st.booleans(), caches, st.sampled_from([None, "look"])
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(System, st.lists(plain_texts, max_size=2).map(tuple), st.sampled_from([None, "Ada Lovelace"])),
    st.builds(User, visible, st.sampled_from([None, None, "Ada", "Ada Lovelace"])),
    # Ids that only their own provider takes come from a turn that says whose it is.
    assistants(IDS, None),
    assistants(IDS + LONG_IDS, "elsewhere"),
    outputs,
    outputs,
)

tools = st.lists(
    st.builds(
        Tool,
        st.sampled_from(["look", "write-2", "x" * 64, "read_file"]),
        st.sampled_from([None, "It looks."]),
        st.sampled_from([None, {}, {"type": "object", "properties": {"x": {"type": "integer"}}}]),
        st.sampled_from([None, True, False, "if_possible"]),
        caches,
        st.sampled_from([None, Extras("messages", {"defer_loading": True})]),
    ),
    max_size=3,
    unique_by=lambda tool: tool.name,
).map(tuple)

parameters = st.builds(
    Parameters,
    max_tokens=st.sampled_from([None, 1, 16, 1024, 1025, 5000]),
    temperature=st.sampled_from([None, 0.0, 0.5, 1.0, 1.7]),
    top_p=st.sampled_from([None, 0.9, 0.95]),
    stop=st.sampled_from([(), ("X",), ("\n", "X")]),
    seed=st.sampled_from([None, 7]),
    parallel_tool_calls=st.sampled_from([None, False, True]),
    reasoning_effort=st.sampled_from([None, "none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    output=st.sampled_from(["text", "json_object", JsonSchema("out", {"type": "object"}), JsonSchema("out")]),
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    chosen = draw(tools)
    choices = [None, "auto", "none", "required", *(NamedTool(tool.name) for tool in chosen)]
    return Request(
        messages=tuple(draw(st.lists(messages, max_size=8))),
        tools=chosen,
        tool_choice=draw(st.sampled_from(choices)),
        parameters=draw(parameters),
        extras=draw(st.sampled_from(PARAMETERS_OF_ONE)),
    )
