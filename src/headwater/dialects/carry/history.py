"""What a request says of what was said before."""

from collections.abc import Callable, Iterable
from typing import Final

from headwater.conversation import Image, System, Text, ToolCall, User
from headwater.dialects.carry.fate import changed, dropped, refused
from headwater.dialects.carry.question import Question
from headwater.dialects.carry.row import Asked, when, wherever
from headwater.dialects.chat.render import ODD_IN_NAME
from headwater.dialects.messages.write import image_block, is_object


def _any_part(field: str, used: Callable[[object], bool]) -> Callable[[Question], Iterable[str]]:
    return when(field, lambda question: any(map(used, question.parts)))


def _is_empty(message: User) -> bool:
    return all(isinstance(part, Text) and not part.text for part in message.parts)


def _names(question: Question) -> list[str]:
    return [name for message in question.request.messages if (name := getattr(message, "name", None))]


_NO_FLAG: Final = dropped("The dialect has no word for a failed call: only the result's text says so.")
# Anthropic refuses it; which compatible servers do, nobody knows before they have.
_EMPTY: Final = dropped(
    "An empty message is not sent. Where nothing else is said, the model is told that the conversation begins."
)
_NO_NAME: Final = dropped("The dialect has no place for a speaker's name.")
_ODD_NAME: Final = changed("Told with '_' for what a name may not have, and cut to the longest there can be.")
_FOREIGN_INPUT: Final = refused("Known to the dialect that it came from, and to no other.")
_FOREIGN_ITEM: Final = dropped("Known to the dialect that it came from, and to no other.")
_REMARK: Final = dropped("Goes back only to the dialect, and the upstream, that it came from.")
_OUT_OF_PLACE: Final = dropped("It would be refused where it stands.")
_SEALED: Final = dropped("Earlier reasoning goes back only to the upstream that sealed it.")
_ITS_FIELDS: Final = dropped("They go back only to the upstream that made the call.")

HISTORY: Final = (
    Asked(
        what="system prompts, a developer's among them",
        found=when("messages.system", lambda q: any(isinstance(m, System) for m in q.request.messages)),
    ),
    Asked(
        what="a system prompt after the conversation has begun",
        found=when("messages.system", Question.late_system),
        messages=changed("Sent with the first one: it keeps its authority and loses its place."),
    ),
    Asked(
        what="a speaker's name",
        found=when("messages.name", lambda q: bool(_names(q))),
        responses=_NO_NAME,
        messages=_NO_NAME,
    ),
    Asked(
        what="a speaker's name with white space, a slash, a bar or an angle bracket",
        found=when("messages.name", lambda q: any(map(ODD_IN_NAME.search, _names(q)))),
        chat=changed("Told with '_' for what a name may not have."),
        responses=_NO_NAME,
        messages=_NO_NAME,
    ),
    wherever(
        "an empty message of the user",
        when("messages.content", lambda q: any(isinstance(m, User) and _is_empty(m) for m in q.request.messages)),
        _EMPTY,
    ),
    Asked(what="images", found=_any_part("messages.image", lambda part: isinstance(part, Image))),
    Asked(
        what="the detail in which an image is seen",
        found=_any_part(
            "messages.image.detail", lambda part: isinstance(part, Image) and part.detail in ("low", "high")
        ),
        messages=dropped("An image has one detail there."),
    ),
    Asked(
        what="images by http, and of other types than JPEG, PNG, GIF and WebP",
        found=_any_part("messages.image", lambda part: isinstance(part, Image) and image_block(part) is None),
        messages=refused("Only JPEG, PNG, GIF and WebP images, inline or by https, can be shown there."),
    ),
    Asked(what="tool calls and their results", found=when("messages.tool_calls", lambda q: bool(q.outputs))),
    wherever(
        "an earlier call's name that no tool of the request has and a provider would refuse",
        when("messages.tool_calls.name", Question.odd_call_names),
        _ODD_NAME,
    ),
    Asked(
        what="an earlier call's arguments that are no JSON object",
        found=_any_part(
            "messages.tool_calls.arguments",
            lambda part: isinstance(part, ToolCall) and bool(part.arguments.strip()) and not is_object(part.arguments),
        ),
        messages=changed("Told as they are, as the INVALID_JSON of an object."),
    ),
    Asked(
        what="images in a tool's result",
        found=when(
            "messages.tool.image",
            lambda q: any(isinstance(part, Image) for output in q.outputs for part in output.parts),
        ),
        chat=changed("Shown after the results, as the user's: a result is text there."),
    ),
    Asked(
        what="images in the result of a call that failed",
        found=when(
            "messages.tool.image",
            lambda q: any(output.is_error and any(isinstance(p, Image) for p in output.parts) for output in q.outputs),
        ),
        chat=changed("Shown after the results, as the user's: a result is text there."),
        messages=changed("Shown after the results, as the user's: a failure is told in words."),
    ),
    Asked(
        what="that a tool call failed",
        found=when("messages.tool.is_error", lambda q: any(output.is_error for output in q.outputs)),
        chat=_NO_FLAG,
        responses=_NO_FLAG,
    ),
    Asked(
        what="that the model had refused",
        found=_any_part("messages.refusal", lambda part: isinstance(part, Text) and part.refusal),
        messages=changed("Its words are sent as any others."),
    ),
    Asked(
        what="white space at the end of an answer that is begun",
        found=when("messages.content", Question.ends_blank),
        messages=changed("Cut off: it would be refused."),
    ),
)

OF_ONE_DIALECT: Final = (
    wherever(
        "what a client brings that only another dialect knows: a document, a file, a custom tool's output",
        Question.foreign_input,
        _FOREIGN_INPUT,
    ),
    wherever(
        "what a model has left that only another dialect knows: a hosted tool's call and result",
        Question.foreign_items,
        _FOREIGN_ITEM,
    ),
    Asked(
        what="calls of other kinds than a function's without their output, and outputs without their call",
        found=when("messages.content", Question.unpaired_items),
        responses=dropped("One without the other would be refused."),
        chat=_FOREIGN_ITEM,
        messages=_FOREIGN_ITEM,
    ),
    wherever(
        "what an earlier answer has left that can't stand where it is: images or seals alone, "
        "a hosted tool's call without its result, reasoning that nothing follows",
        Question.left_out,
        _OUT_OF_PLACE,
    ),
    wherever(
        "what an earlier text cites, and other remarks on it",
        Question.cited,
        _REMARK,
    ),
    wherever(
        "earlier reasoning",
        when("messages.reasoning", Question.untold_reasoning),
        _SEALED,
    ),
    wherever(
        "a provider's own fields on an earlier call",
        when("messages.tool_calls.extra", Question.untold_call_fields),
        _ITS_FIELDS,
    ),
)
