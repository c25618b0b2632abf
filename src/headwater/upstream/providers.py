"""Who the upstreams are: what each takes, refuses and calls by another name, as one table.

Values only: `targets` looks them up. docs/providers.md is made of them.
"""

from typing import Any, Final, Literal

from msgspec import Struct, field

from headwater.events import DialectName
from headwater.policy import Prefill

Auth = Literal["bearer", "x-api-key", "none"]
Thinking = Literal["adaptive", "budget", "none"]

PATHS: Final[dict[DialectName, str]] = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "messages": "/messages",
}
MODELS_PATH: Final = "/models"
# The version after it refuses `temperature` and `top_p` of every model; this one, only of those that have none.
ANTHROPIC_VERSION: Final = "2023-06-01"


class ModelRule(Struct, frozen=True, kw_only=True):
    """What holds for some models. Of several rules that fit, the first is the one."""

    models: str
    """A regular expression that is found in the name."""
    about: str
    omit: frozenset[str] = frozenset()
    prefill: Prefill | None = None
    thinking: Thinking | None = None
    default_max_tokens: int | None = None


class PrefixFlag(Struct, frozen=True):
    """How an upstream is told that the last message is to be gone on with."""

    message: dict[str, Any] = field(default_factory=dict)
    """Fields of that message."""
    body: dict[str, Any] = field(default_factory=dict)
    """Fields of the request."""


class Provider(Struct, frozen=True, kw_only=True):
    name: str
    """What `provider =` calls it."""
    title: str
    hosts: tuple[str, ...] = ()
    """Recognised by these, and what is below them."""
    path: str = ""
    """And by this start of the address's path."""
    port: int | None = None
    """Recognised by this on a host that is no provider's."""
    owned_by: str | None = None
    """Recognised by what its list of models says."""
    root: str = "/v1"
    """The path of an address that has none."""
    auth: Auth | None = None
    """None is the dialect's own way."""
    max_tokens_field: str = "max_tokens"
    reasoning_field: str | None = None
    omit: frozenset[str] = frozenset()
    needs_finish_reason: bool = True
    prefill: Prefill = "none"
    prefix_flag: PrefixFlag = PrefixFlag(message={"prefix": True})
    thinking: Thinking = "budget"
    rules: tuple[ModelRule, ...] = ()
    oddities: tuple[str, ...] = ()
    """What it does otherwise than others, and what is done about it."""


# By any provider, under any of the names that they have there: `anthropic/claude-sonnet-4.5`, `claude-opus-4@20250514`.
CLAUDE: Final = (
    ModelRule(
        models=r"claude-(?:instant|2|3(?![-.]7))",
        about="Claude 3.5 and before: no thinking, an answer can be prefilled, short answers only",
        prefill="assistant",
        thinking="none",
        default_max_tokens=4096,
    ),
    ModelRule(
        models=r"claude-(?:3[-.]7|(?:opus|sonnet|haiku)-4(?:[-.][015](?!\d)|[-@]20\d{6}|(?![-.\d])))",
        about="Claude 3.7 to 4.5: thinking by a budget, an answer can be prefilled",
        prefill="assistant",
        thinking="budget",
    ),
    ModelRule(
        models=r"claude-(?:opus|sonnet)-4[-.]6",
        about="Claude 4.6: thinking by an effort",
        thinking="adaptive",
    ),
    ModelRule(
        models=r"claude-",
        about="Later ones: thinking by an effort, and no sampling parameters",
        omit=frozenset({"temperature", "top_p"}),
        thinking="adaptive",
    ),
)

_OPENAI: Final = (
    ModelRule(
        models=r"^(?:ft:)?(?:gpt-3|gpt-4|chatgpt)",
        about="GPT-4 and before have no reasoning, and refuse to be asked for its sealed form",
        omit=frozenset({"include"}),
    ),
    ModelRule(
        models=r"^(?:ft:)?(?:o\d|gpt-5(?![.\d]))",
        about="o1 to GPT-5 refuse sampling parameters",
        omit=frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"}),
    ),
)

GENERIC: Final = Provider(name="generic", title="Any compatible server", rules=CLAUDE)

PROVIDERS: Final = (
    Provider(
        name="openai",
        title="OpenAI",
        hosts=("api.openai.com",),
        max_tokens_field="max_completion_tokens",
        rules=_OPENAI,
    ),
    Provider(
        name="anthropic",
        title="Anthropic",
        hosts=("api.anthropic.com",),
        thinking="adaptive",
        rules=CLAUDE,
        oddities=(f"Asked as of version {ANTHROPIC_VERSION}: the next one takes no `temperature` for any model.",),
    ),
    Provider(
        name="ollama",
        title="Ollama",
        hosts=("ollama.com",),
        port=11434,
        owned_by="library",
        auth="bearer",
        reasoning_field="reasoning",
        prefill="assistant",
        oddities=("Its list names whoever made a model as its owner; most are `library`.",),
    ),
    Provider(
        name="vllm",
        title="vLLM",
        owned_by="vllm",
        auth="bearer",
        reasoning_field="reasoning",
        prefill="prefix_flag",
        prefix_flag=PrefixFlag(body={"continue_final_message": True, "add_generation_prompt": False}),
        oddities=("Takes earlier reasoning as `reasoning`, and drops `reasoning_content` without a word.",),
    ),
    Provider(
        name="llama.cpp",
        title="llama.cpp",
        owned_by="llamacpp",
        auth="bearer",
        reasoning_field="reasoning_content",
        prefill="prefix_flag",
        # It goes on with a last message by itself, but refuses to for a model that thinks.
        prefix_flag=PrefixFlag(body={"chat_template_kwargs": {"enable_thinking": False}}),
        oddities=("Goes on with an answer only while the model does not think: that is switched off for it.",),
    ),
    Provider(
        name="lmstudio",
        title="LM Studio",
        port=1234,
        owned_by="organization_owner",
        oddities=("Refuses a `tool_choice` that names a tool; `required` it takes.",),
    ),
    Provider(
        name="openrouter",
        title="OpenRouter",
        hosts=("openrouter.ai",),
        root="/api/v1",
        auth="bearer",
        rules=CLAUDE,
        oddities=(
            "Reports errors within a stream that began well, and sends comments while a provider lets it wait.",
            "Wants the `reasoning_details` of earlier turns back, and gets them.",
        ),
    ),
    Provider(
        name="gemini",
        title="Gemini, by its compatible endpoint",
        hosts=("generativelanguage.googleapis.com",),
        root="/v1beta/openai",
        auth="bearer",
        omit=frozenset({"store", "seed", "presence_penalty", "frequency_penalty"}),
        oddities=(
            "Refuses every field that it does not know.",
            "Says `stop` where it has called a tool: a call that is whole counts as one.",
            "Wants the signature of a call back with it, and gets it.",
        ),
    ),
    Provider(
        name="deepseek-beta",
        title="DeepSeek, by its beta endpoint",
        hosts=("api.deepseek.com",),
        path="/beta",
        reasoning_field="reasoning_content",
        prefill="prefix_flag",
        oddities=("Goes on with an answer at this endpoint alone.",),
    ),
    Provider(
        name="deepseek",
        title="DeepSeek",
        hosts=("api.deepseek.com",),
        reasoning_field="reasoning_content",
        oddities=("Refuses a turn of tool calls that comes back without its reasoning.",),
    ),
    Provider(
        name="mistral",
        title="Mistral",
        hosts=("api.mistral.ai",),
        omit=frozenset({"store", "seed", "stream_options"}),
        prefill="prefix_flag",
        oddities=("Refuses every field that it does not know: what others call `seed`, too. Tells its usage unasked.",),
    ),
    Provider(name="demo", title="The demo models", auth="none", prefill="assistant"),
    GENERIC,
)

NAMES: Final = {provider.name: provider for provider in PROVIDERS}
