"""Puts an upstream's tool-call deltas together, whatever way it counts them.

Every call gets a dense index and an id of its own; the upstream's index, id
and name are only hints for which call a delta belongs to.
"""

from typing import Any, Final

from msgspec import Struct, field

from headwater.dialects.lenient import json_text, mended, string
from headwater.events import Event, ToolArgsDelta, ToolCallEnded, ToolCallStarted

_FIELDS: Final = frozenset({"index", "id", "type", "function"})


class _Call(Struct):
    index: int
    key: int
    """The upstream's index for it, or one that we gave it in its place."""
    given_id: str
    id: str
    name: str = ""
    """Empty until it has come: only then has the call started."""
    early: str = ""
    """Arguments from before the name."""
    extra: dict[str, Any] = field(default_factory=dict)
    late_extra: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


class CallTracker:
    def __init__(self, id_prefix: str) -> None:
        self._prefix = id_prefix
        self._calls: list[_Call] = []
        self._by_key: dict[int, _Call] = {}
        """The call that each of the upstream's indexes means by now."""
        self._last: _Call | None = None

    def feed(self, delta: dict[str, Any], out: list[Event]) -> None:
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        name = mended(string(function.get("name")))
        # An object, where JSON text should be: tests/wire/chat/call_object_arguments.sse
        text = json_text(function.get("arguments"))
        call = self._find(delta, name)
        extra = {key: value for key, value in delta.items() if key not in _FIELDS}
        if call.name:
            call.late_extra.update(extra)
        else:
            # The name may come after the id: tests/wire/chat/call_name_late.sse
            call.extra.update(extra)
            call.early += text
            if not name:
                return
            call.name = name
            text = call.early
            out.append(ToolCallStarted(call.index, call.id, name, call.extra or None))
        if text:
            out.append(ToolArgsDelta(call.index, text))

    def end(self, out: list[Event]) -> None:
        """The upstream is done, and so are its calls: no chat delta says it of a single one."""
        for call in self._calls:
            if call.name and not call.ended:
                call.ended = True
                out.append(ToolCallEnded(call.index, call.late_extra or None))

    def _find(self, delta: dict[str, Any], name: str) -> _Call:
        id = mended(string(delta.get("id")))
        key = delta.get("index")
        call = self._by_key.get(key) if isinstance(key, int) else self._without_index(id)
        if call is not None:
            # Another call under the same index: tests/wire/chat/call_same_index.sse
            other_id = id and call.given_id and id != call.given_id
            # The name on every delta is the same call: tests/wire/chat/call_name_repeated.sse
            other_name = name and call.name and name != call.name
            if not (other_id or other_name):
                self._last = call
                return call
        return self._new(key if isinstance(key, int) else -1 - len(self._calls), id)

    def _without_index(self, id: str) -> _Call | None:
        """No index: the id tells, else it is the last one. tests/wire/chat/call_no_index.sse"""
        if not id:
            return self._last
        return next((call for call in self._calls if call.given_id == id), None)

    def _new(self, key: int, id: str) -> _Call:
        index = len(self._calls)
        taken = any(call.id == id for call in self._calls)
        call = _Call(index, key, id, f"{self._prefix}_{index}" if taken or not id else id)
        self._calls.append(call)
        self._by_key[key] = call
        self._last = call
        return call
