"""A chat completion request, as clients write it: every field that is taken, and of what type."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct

from headwater.conversation import Effort
from headwater.dialects.parsing import Metadata, SessionId


class _Wire(Struct, forbid_unknown_fields=True):
    pass


class TextPart(_Wire, tag_field="type", tag="text"):
    text: str


class RefusalPart(_Wire, tag_field="type", tag="refusal"):
    refusal: str


class _ImageUrl(_Wire):
    url: Annotated[str, Meta(pattern=r"^(https?:|data:image/)")]
    detail: Literal["auto", "low", "high"] | None = None


class ImagePart(_Wire, tag_field="type", tag="image_url"):
    image_url: _ImageUrl


class FilePart(_Wire, tag_field="type", tag="file"):
    file: dict[str, Any]


class AudioPart(_Wire, tag_field="type", tag="input_audio"):
    input_audio: dict[str, Any]


VisiblePart = TextPart | ImagePart | FilePart | AudioPart
_Texts = str | list[TextPart]
_Name = Annotated[str, Meta(min_length=1, max_length=64)]


class SystemMessage(_Wire, tag_field="role", tag="system"):
    content: _Texts
    name: _Name | None = None


class _Developer(SystemMessage, tag_field="role", tag="developer"):
    pass


class UserMessage(_Wire, tag_field="role", tag="user"):
    content: str | list[VisiblePart]
    name: _Name | None = None


class FunctionCall(_Wire):
    name: Annotated[str, Meta(min_length=1)]
    arguments: str


class AssistantMessage(_Wire, tag_field="role", tag="assistant"):
    content: str | list[TextPart | RefusalPart] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    name: _Name | None = None
    # What an answer of ours, or of OpenAI's, has as well when it is sent back as it came.
    annotations: list[dict[str, Any]] | None = None
    images: list[dict[str, Any]] | None = None
    # Null there; what else they may be is refused.
    audio: Any = None
    function_call: Any = None


class ToolMessage(_Wire, tag_field="role", tag="tool"):
    tool_call_id: Annotated[str, Meta(min_length=1)]
    content: _Texts
    name: str | None = None


class ToolFunction(_Wire):
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_.-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _Tool(_Wire):
    type: Literal["function"]
    function: ToolFunction


class _NamedFunction(_Wire):
    name: str


class ChosenTool(_Wire):
    type: Literal["function"]
    function: _NamedFunction


class TextFormat(_Wire, tag_field="type", tag="text"):
    pass


class JsonFormat(_Wire, tag_field="type", tag="json_object"):
    pass


class _Schema(_Wire):
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class SchemaFormat(_Wire, tag_field="type", tag="json_schema"):
    json_schema: _Schema


class _StreamOptions(_Wire):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


_Message = SystemMessage | _Developer | UserMessage | AssistantMessage | ToolMessage
_Count = Annotated[int, Meta(ge=1)]
_Penalty = Annotated[float, Meta(ge=-2, le=2)]


class ChatRequest(_Wire):
    """Every field that we take. What is not here is refused."""

    messages: Annotated[list[_Message], Meta(min_length=1)]
    model: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: _Count | None = None
    max_completion_tokens: _Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    tools: list[_Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | ChosenTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: TextFormat | JsonFormat | SchemaFormat | None = None
    reasoning_effort: Effort | None = None
    # Ours.
    session_id: SessionId | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_cut: Literal["end", "continue"] | None = None
    metadata: Metadata | None = None
    # Taken only with the one value that changes nothing.
    n: Annotated[int, Meta(ge=1)] | None = None
    store: bool | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    modalities: list[str] | None = None
    audio: Any = None
    moderation: Any = None
    functions: Any = None
    function_call: Any = None
    # Of some servers of this dialect, and carried to them as they are.
    top_k: Any = UNSET
    min_p: Any = UNSET
    typical_p: Any = UNSET
    repetition_penalty: Any = UNSET
    logit_bias: Any = UNSET
    min_tokens: Any = UNSET
    user: Any = UNSET
    safety_identifier: Any = UNSET
    prompt_cache_key: Any = UNSET
    prompt_cache_options: Any = UNSET
    prompt_cache_retention: Any = UNSET
    service_tier: Any = UNSET
    verbosity: Any = UNSET
    prediction: Any = UNSET
    web_search_options: Any = UNSET
    reasoning: Any = UNSET
    thinking: Any = UNSET
    enable_thinking: Any = UNSET
    chat_template_kwargs: Any = UNSET
    provider: Any = UNSET
    transforms: Any = UNSET
    guided_json: Any = UNSET
    guided_regex: Any = UNSET
    guided_choice: Any = UNSET
    guided_grammar: Any = UNSET
    grammar: Any = UNSET
    options: Any = UNSET
    keep_alive: Any = UNSET
