"""Puts an upstream's tool-call deltas together, whatever way it counts them.

Every call gets a dense index and an id of its own; the upstream's index, id
and name are only hints for which call a delta belongs to.
"""

from typing import Any, Final

from msgspec import Struct, field

from headwater.dialects.lenient import Halves, json_text, mended, mended_all, string
from headwater.errors import FrameUnreadable
from headwater.events import Event, ToolArgsDelta, ToolCallEnded, ToolCallStarted

_FIELDS: Final = frozenset({"index", "id", "type", "function"})
_MAX_CALLS: Final = 1000


class _Call(Struct):
    given_id: str
    id: str
    index: int = -1
    """Of those that have started."""
    name: str = ""
    """Empty until it has come: only then has the call started."""
    said: list[str] = field(default_factory=list)
    """Its arguments so far."""
    halves: Halves = field(default_factory=Halves)
    extra: dict[str, Any] = field(default_factory=dict)
    late_extra: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


class CallTracker:
    def __init__(self, id_prefix: str) -> None:
        self._prefix = id_prefix
        self._calls: list[_Call] = []
        self._started = 0
        self._by_key: dict[int, _Call] = {}
        """The call that each of the upstream's indexes means by now."""
        self._by_id: dict[str, _Call] = {}
        self._taken: set[str] = set()
        self._last: _Call | None = None
        self._went_on = False
        """A call went on after the upstream had ended it."""

    @property
    def contradiction(self) -> str | None:
        """What does not go with an upstream that says that it is done."""
        if not all(call.name for call in self._calls):
            return "a tool call never got its name"
        return "a tool call went on after it" if self._went_on else None

    def feed(self, deltas: list[dict[str, Any]], out: list[Event]) -> None:
        fed: list[_Call] = []
        for delta in deltas:
            function = delta.get("function")
            function = function if isinstance(function, dict) else {}
            name = mended(string(function.get("name")))
            # An object, where JSON text should be: tests/wire/chat/call_object_arguments.sse
            given = function.get("arguments")
            text = given if isinstance(given, str) else json_text(given)
            call = self._find(delta, name, text, fed)
            fed.append(call)
            self._add(call, delta, name, call.halves.join(text), out)

    def end(self, out: list[Event]) -> None:
        """The upstream is done, and so are its calls: no chat delta says it of a single one."""
        for call in self._calls:
            if call.name and not call.ended:
                call.ended = True
                if rest := call.halves.rest():
                    out.append(ToolArgsDelta(call.index, rest))
                out.append(ToolCallEnded(call.index, mended_all(call.late_extra) or None))

    def _add(self, call: _Call, delta: dict[str, Any], name: str, text: str, out: list[Event]) -> None:
        extra = {key: value for key, value in delta.items() if key not in _FIELDS}
        if call.ended:
            # White space may follow; anything else says that it was not whole: tests/wire/chat/call_goes_on.sse
            self._went_on = self._went_on or bool(text.strip())
            return
        if text:
            call.said.append(text)
        if call.name:
            call.late_extra.update(extra)
        else:
            # The name may come after the id: tests/wire/chat/call_name_late.sse
            call.extra.update(extra)
            if not name:
                return
            call.name = name
            call.index = self._started
            self._started += 1
            text = "".join(call.said)
            out.append(ToolCallStarted(call.index, call.id, name, mended_all(call.extra) or None))
        if text:
            out.append(ToolArgsDelta(call.index, text))

    def _find(self, delta: dict[str, Any], name: str, text: str, fed: list[_Call]) -> _Call:
        """The call that a delta belongs to: a new one, if what it says of itself is another's."""
        id = mended(string(delta.get("id")))
        key = delta.get("index")
        key = key if isinstance(key, int) else None
        # No index: the id tells, else it is the last one. tests/wire/chat/call_no_index.sse
        call = self._by_key.get(key) if key is not None else self._by_id.get(id) if id else self._last
        if call is not None and not _is_another(call, id, name, text, fed):
            self._last = call
            return call
        return self._new(key, id)

    def _new(self, key: int | None, id: str) -> _Call:
        count = len(self._calls)
        if count == _MAX_CALLS:
            raise FrameUnreadable(f"more than {_MAX_CALLS} tool calls", id.encode())
        own = id if id and id not in self._taken else f"{self._prefix}_{count}"
        while own in self._taken:
            own += "_"
        call = _Call(id, own)
        self._taken.add(own)
        self._calls.append(call)
        self._by_id.setdefault(id, call)
        if key is not None:
            self._by_key[key] = call
        self._last = call
        return call


def _is_another(call: _Call, id: str, name: str, text: str, fed: list[_Call]) -> bool:
    """Whether a delta that is counted as this call's begins another one."""
    if id and call.given_id:
        # Another call under the same index: tests/wire/chat/call_same_index.sse
        return id != call.given_id
    if not name or not call.name:
        return False
    if name != call.name or call in fed:
        # Two in one list, and no ids: tests/wire/chat/call_no_id_in_one_list.sse
        return True
    # The name on every delta is the same call (tests/wire/chat/call_name_repeated.sse), unless a whole object is
    # followed by the start of another: tests/wire/chat/call_no_id_same_name.sse
    return bool(call.said) and text.startswith("{") and call.said[-1].endswith("}")
