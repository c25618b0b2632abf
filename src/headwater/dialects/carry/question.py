"""A request and the upstream that it is for: what of it the table asks about."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, assert_never

from headwater.conversation import (
    Assistant,
    Image,
    Opaque,
    Reasoning,
    Request,
    System,
    Target,
    Text,
    ToolCall,
    ToolOutput,
    is_remark,
)
from headwater.dialects.chat.render import left_out as chat_left_out
from headwater.dialects.extras import METADATA, told
from headwater.dialects.history import plain_name
from headwater.dialects.messages.block import CITATIONS
from headwater.dialects.messages.thinking import Plan, plan
from headwater.dialects.messages.turns import CALL_EXTRAS as MESSAGES_CALL_EXTRAS
from headwater.dialects.messages.turns import MAX_NAME_CHARS, History, write_history
from headwater.dialects.responses.history import CALL_EXTRAS as RESPONSES_CALL_EXTRAS
from headwater.dialects.responses.history import left_out as responses_left_out
from headwater.dialects.responses.pairs import is_clients, unpaired
from headwater.events import DialectName

Part = Text | Image | Reasoning | ToolCall | Opaque

_TOOL_NAME_CHARS: Final = {"chat": 64, "responses": 64, "messages": MAX_NAME_CHARS}
# The table has rows of their own for them.
_OTHERWISE_NOTED: Final[dict[DialectName, frozenset[str]]] = {
    "chat": frozenset({METADATA}),
    "responses": frozenset(),
    "messages": frozenset({"thinking", "output_config"}),
}
# Two of the Responses dialect stand inside of other fields.
_WRITTEN: Final = {"summary": "reasoning.summary", "verbosity": "text.verbosity"}


class Question:
    def __init__(self, request: Request, target: Target, dialect: DialectName) -> None:
        self.request = request
        self.target = target
        self.dialect = dialect
        self.parameters = request.parameters
        self.parts: list[Part] = [part for message in request.messages for part in message.parts]
        self.outputs = [message for message in request.messages if isinstance(message, ToolOutput)]

    @cached_property
    def history(self) -> History:
        """As an upstream of the messages dialect is told it. Made once."""
        return write_history(self.request, self.target)

    @cached_property
    def plan(self) -> Plan:
        """How an upstream of the messages dialect would be asked to reason."""
        return plan(self.request, self.target, self.history)

    @property
    def cache_marks(self) -> int:
        marked = (*self.parts, *self.outputs, *self.request.tools)
        of_its_own = "cache_control" in self.own_fields("messages")
        return sum(1 for one in marked if getattr(one, "cache", None)) + of_its_own

    # ------------------------------------------------------------- parameters

    def own_fields(self, dialect: DialectName) -> dict[str, Any]:
        """What the request says in the words of one dialect."""
        extras = self.request.extras
        return extras.fields if extras is not None and extras.dialect == dialect else {}

    def foreign_fields(self) -> list[str]:
        """Parameters that only another dialect has."""
        every = (self.request.extras, *(tool.extras for tool in self.request.tools))
        return [
            _WRITTEN.get(name, name) if extras.dialect == "responses" else name
            for extras in every
            if extras is not None and extras.dialect != self.dialect
            for name in extras.fields
            if name not in told(extras, self.dialect) and name not in _OTHERWISE_NOTED[extras.dialect]
        ]

    # ---------------------------------------------------------------- history

    def late_system(self) -> bool:
        roles = [isinstance(message, System) for message in self.request.messages]
        return True in roles[roles.index(False) :] if False in roles else False

    def ends_blank(self) -> bool:
        """The last turn is the model's, to be gone on with, and ends in white space."""
        last = self.request.messages[-1] if self.request.messages else None
        said = [part for part in last.parts if isinstance(part, Text)] if isinstance(last, Assistant) else []
        return bool(said) and said[-1].text != said[-1].text.rstrip()

    def untold_reasoning(self) -> bool:
        """Earlier reasoning that this upstream has not sealed itself."""
        if self.dialect == "chat" and self.target.reasoning_field is not None:
            return False
        return any(
            (part.text or sealed) and not (sealed and part.dialect == self.dialect and self._is_its(message))
            for message in self.request.messages
            if isinstance(message, Assistant)
            for part in message.parts
            if isinstance(part, Reasoning)
            for sealed in [any((part.state or {}).values())]
        )

    def untold_call_fields(self) -> bool:
        """A provider's own fields on a call that are not for this upstream."""
        return any(
            not self._call_field_is_told(message, name)
            for message in self.request.messages
            if isinstance(message, Assistant)
            for call in message.tool_calls
            for name in call.extra or ()
        )

    def _call_field_is_told(self, message: Assistant, name: str) -> bool:
        match self.dialect:
            case "chat":
                return self._is_its(message)
            case "responses":
                own = message.origin is not None and message.origin == self.target.origin
                return own or name in RESPONSES_CALL_EXTRAS
            case "messages":
                return self._is_its(message) and name in MESSAGES_CALL_EXTRAS
            case unreachable:
                assert_never(unreachable)

    def odd_call_names(self) -> bool:
        declared = [tool.name for tool in self.request.tools]
        longest = _TOOL_NAME_CHARS[self.dialect]
        names = (part.name for part in self.parts if isinstance(part, ToolCall))
        return any(plain_name(name, declared, longest) != name for name in names)

    def _is_its(self, message: Assistant) -> bool:
        return message.origin in (None, self.target.origin)

    # ------------------------------------------------------------ opaque parts

    def cited(self) -> Iterator[str]:
        """What remarks on earlier texts say that this upstream is not told."""
        for message in self.request.messages:
            for part in message.parts:
                if isinstance(part, Opaque) and _is_on_text(part) and not self._remark_is_told(message, part):
                    yield from (f"messages.{name}" for name, value in part.data.items() if name != "type" and value)

    def _remark_is_told(self, message: object, part: Opaque) -> bool:
        its = not isinstance(message, Assistant) or self._is_its(message)
        return part.dialect == self.dialect and (its or self.dialect == "messages")

    def foreign_input(self) -> list[str]:
        """Parts of the client's own question that only another dialect knows."""
        return [f"messages.content.{kind}" for kind, clients in self._foreign_parts() if clients]

    def foreign_items(self) -> list[str]:
        """What a model of another dialect has left behind."""
        return [f"messages.content.{kind}" for kind, clients in self._foreign_parts() if not clients]

    def _foreign_parts(self) -> Iterator[tuple[str, bool]]:
        for message in self.request.messages:
            for part in message.parts:
                if isinstance(part, Opaque) and part.dialect != self.dialect and not is_remark(part.data):
                    yield str(part.data.get("type")), not isinstance(message, Assistant) or is_clients(part.data)

    def left_out(self) -> list[str]:
        """What is this dialect's own, and would be refused where it stands."""
        match self.dialect:
            case "chat":
                kinds = chat_left_out(self.request, self.target)
            case "responses":
                kinds = iter(["reasoning"] if responses_left_out(self.request.messages, self.target) else [])
            case "messages":
                kinds = iter(self.history.left_out)
            case unreachable:
                assert_never(unreachable)
        return [f"messages.content.{kind}" for kind in kinds]

    def unpaired_items(self) -> bool:
        return bool(unpaired([part.data for part in self.parts if isinstance(part, Opaque)]))


def _is_on_text(part: Opaque) -> bool:
    return part.data.get("type") in ("message", CITATIONS)
