"""What a request says of how to answer: parameters, reasoning, the form of the output, tools."""

from collections.abc import Callable, Iterable
from typing import Final

from headwater.conversation import JsonSchema
from headwater.dialects.carry.fate import changed, dropped, refused
from headwater.dialects.carry.question import Question
from headwater.dialects.carry.row import Asked, when, wherever
from headwater.dialects.extras import METADATA
from headwater.dialects.messages.render import MARKS, is_name
from headwater.dialects.responses.render import LEAST_TOKENS


def _given(name: str) -> Callable[[Question], Iterable[str]]:
    return when(name, lambda question: getattr(question.parameters, name) not in (None, ()))


def _schema(question: Question) -> JsonSchema | None:
    output = question.parameters.output
    return output if isinstance(output, JsonSchema) else None


def _thinking(question: Question) -> str | None:
    """How a client of the messages dialect has put it."""
    word: str | None = (question.own_fields("messages").get("thinking") or {}).get("type")
    return word


_NO_SUCH: Final = dropped("The dialect has no such parameter.")
_NO_MARKS: Final = dropped("The dialect has no marks for the provider's cache.")
_NO_STOP: Final = refused("The dialect has no stop sequences.")
_ITS_OWN: Final = dropped("A model that reasons has its own.")
_AS_EFFORT: Final = changed("Told as an effort.")
_DEFAULT: Final = dropped("Whether it reasons is left to the upstream.")
_ONE_WORD: Final = dropped("There is one word for both: no reasoning is asked for.")
_NOT_HELD: Final = changed("Left to the upstream, which does not hold them to it unless it is told to.")

PARAMETERS: Final = (
    Asked(what="a limit of tokens", found=_given("max_tokens")),
    Asked(
        what=f"a limit of fewer than {LEAST_TOKENS} tokens",
        found=when("max_tokens", lambda q: 0 < (q.parameters.max_tokens or 0) < LEAST_TOKENS),
        responses=changed(f"Sent as {LEAST_TOKENS}, which is the least there."),
    ),
    Asked(what="temperature", found=_given("temperature")),
    Asked(
        what="temperature above 1",
        found=when("temperature", lambda q: (q.parameters.temperature or 0) > 1),
        messages=changed("Sent as 1, which is the highest there."),
    ),
    Asked(
        what="temperature of a model that is asked to reason",
        found=when("temperature", lambda q: q.parameters.temperature not in (None, 1) and q.plan.on),
        messages=_ITS_OWN,
    ),
    Asked(what="top_p", found=_given("top_p")),
    Asked(
        what="top_p below 0.95 of a model that is asked to reason",
        found=when("top_p", lambda q: q.plan.top_p(q.parameters.top_p) != q.parameters.top_p),
        messages=_ITS_OWN,
    ),
    Asked(
        what="top_k of a model that is asked to reason",
        found=when("top_k", lambda q: "top_k" in q.own_fields("messages") and q.plan.on),
        chat=_NO_SUCH,
        responses=_NO_SUCH,
        messages=_ITS_OWN,
    ),
    Asked(what="stop sequences", found=_given("stop"), responses=_NO_STOP),
    Asked(
        what="a stop sequence of white space",
        found=when("stop", lambda q: any(not sequence.strip() for sequence in q.parameters.stop)),
        responses=_NO_STOP,
        messages=dropped("White space alone can't stop the model there."),
    ),
    Asked(what="seed", found=_given("seed"), responses=_NO_SUCH, messages=_NO_SUCH),
    Asked(what="presence penalty", found=_given("presence_penalty"), responses=_NO_SUCH, messages=_NO_SUCH),
    Asked(what="frequency penalty", found=_given("frequency_penalty"), responses=_NO_SUCH, messages=_NO_SUCH),
    Asked(
        what="parameters that only another dialect has",
        found=Question.foreign_fields,
        chat=_NO_SUCH,
        responses=_NO_SUCH,
        messages=_NO_SUCH,
    ),
    wherever(
        "metadata of a chat completion",
        when(METADATA, lambda q: METADATA in q.own_fields("chat")),
        dropped("Only what is stored has it, and upstreams are asked to store nothing."),
    ),
)

REASONING: Final = (
    Asked(
        what="reasoning effort",
        found=when("reasoning_effort", lambda q: q.parameters.reasoning_effort is not None and not q.plan.prevented),
    ),
    Asked(
        what="the least reasoning effort, minimal",
        found=when("reasoning_effort", lambda q: q.parameters.reasoning_effort == "minimal" and bool(q.plan.effort)),
        messages=changed("Sent as low, which is the least there."),
    ),
    Asked(
        what="an effort for which the limit of tokens has no room",
        found=when("reasoning_effort", lambda q: q.plan.cut),
        messages=changed("Half of the limit is left for thinking, and no less than the provider demands."),
    ),
    Asked(
        what="reasoning where it can't be: a model without it, a forced tool, an answer that is begun, no room, "
        "calls that another model made",
        found=when("reasoning_effort", lambda q: q.plan.prevented),
        messages=dropped("The model is not asked to reason here."),
    ),
    Asked(
        what="reasoning by a number of tokens",
        found=when("thinking.budget_tokens", lambda q: _thinking(q) == "enabled"),
        chat=_AS_EFFORT,
        responses=_AS_EFFORT,
    ),
    Asked(
        what="reasoning as the model sees fit, adaptive",
        found=when(
            "thinking",
            lambda q: _thinking(q) in ("adaptive", "between_tools") and q.parameters.reasoning_effort is None,
        ),
        chat=_DEFAULT,
        responses=_DEFAULT,
    ),
    Asked(
        what="an effort of a model that is told not to reason",
        found=when(
            "output_config.effort",
            lambda q: _thinking(q) == "disabled" and "output_config" in q.own_fields("messages"),
        ),
        chat=_ONE_WORD,
        responses=_ONE_WORD,
    ),
    Asked(
        what="how reasoning is shown",
        found=when("thinking.display", lambda q: bool((q.own_fields("messages").get("thinking") or {}).get("display"))),
        chat=_NO_SUCH,
        responses=_NO_SUCH,
    ),
)

OUTPUT_AND_TOOLS: Final = (
    Asked(what="JSON by a schema", found=when("output", lambda q: _schema(q) is not None)),
    Asked(
        what="a schema's name and description, and whether it is strict",
        found=when(
            "output.name",
            lambda q: (
                (schema := _schema(q)) is not None
                and (schema.name != "output" or bool(schema.description) or schema.strict is not True)
            ),
        ),
        messages=dropped("Only the schema itself is told, and it is always strict."),
    ),
    Asked(
        what="JSON without a schema",
        found=when(
            "output",
            lambda q: (
                q.parameters.output == "json_object" or ((schema := _schema(q)) is not None and schema.schema is None)
            ),
        ),
        messages=refused("JSON can be demanded there by a schema only."),
    ),
    Asked(what="function tools", found=when("tools", lambda q: bool(q.request.tools))),
    Asked(
        what="a tool's name with a dot, or longer than 128 characters",
        found=when("tools.name", lambda q: any(not is_name(tool.name) for tool in q.request.tools)),
        messages=refused("A tool's name there is made of letters, digits, '_' and '-'."),
    ),
    Asked(
        what="two tools of one name",
        found=when("tools.name", lambda q: len({tool.name for tool in q.request.tools}) < len(q.request.tools)),
        messages=refused("The names of tools must be unique there."),
    ),
    Asked(
        what="arguments held to a tool's schema if that is possible, as the responses dialect does unless it is told",
        found=when("tools.strict", lambda q: any(tool.strict == "if_possible" for tool in q.request.tools)),
        chat=_NOT_HELD,
        messages=_NOT_HELD,
    ),
    Asked(
        what="tool choice",
        found=when("tool_choice", lambda q: bool(q.request.tools) and q.request.tool_choice is not None),
    ),
    Asked(
        what="no parallel calls",
        found=when(
            "parallel_tool_calls", lambda q: bool(q.request.tools) and q.parameters.parallel_tool_calls is False
        ),
    ),
    Asked(what="cache marks", found=when("cache", lambda q: q.cache_marks > 0), chat=_NO_MARKS, responses=_NO_MARKS),
    Asked(
        what=f"more than {MARKS} cache marks",
        found=when("cache", lambda q: q.cache_marks > MARKS),
        chat=_NO_MARKS,
        responses=_NO_MARKS,
        messages=dropped("No more can be set there: those of tools and system stay, and the last ones."),
    ),
)
