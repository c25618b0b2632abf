"""Whether and how a messages upstream is asked to reason, and what it does not take beside that.

The provider refuses a sampling of the client's own, a forced tool, a prefilled
answer, and calls without the reasoning that led to them: what gives way is
noted by `dialects.carry`.
"""

from typing import Any, Final

from msgspec import Struct

from headwater.conversation import Effort, Request, Target
from headwater.dialects.messages.turns import History

_LEAST_BUDGET: Final = 1024
_BUDGETS: Final[dict[Effort, int]] = {
    "minimal": _LEAST_BUDGET,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32768,
    "max": 64000,
}
_LEAST_TOP_P: Final = 0.95


class Plan(Struct, frozen=True):
    thinking: dict[str, Any] | None = None
    effort: str | None = None
    budget: int = 0
    """Tokens that thinking takes for itself, beside the answer's."""
    prevented: bool = False
    """The client wants reasoning, and the dialect does not allow it here."""
    cut: bool = False
    """The limit of tokens leaves less for thinking than the effort stands for."""

    @property
    def on(self) -> bool:
        return self.thinking is not None and self.thinking["type"] != "disabled"

    def top_p(self, top_p: float | None) -> float | None:
        return None if top_p is None or (self.on and top_p < _LEAST_TOP_P) else top_p

    def temperature(self, temperature: float | None) -> float | None:
        return None if temperature is None or self.on else min(temperature, 1.0)


def plan(request: Request, target: Target, history: History) -> Plan:
    asked, told_effort = _asked(request)
    if asked is not None and asked["type"] != "disabled":
        possible = _possible(request, target, history, signed=asked["type"] == "enabled")
        return Plan(asked if possible else None, told_effort, prevented=not possible)
    if asked is not None or told_effort is not None:
        return Plan(asked, told_effort)
    effort = request.parameters.reasoning_effort
    if effort == "none":
        return Plan({"type": "disabled"})
    if effort is None:
        return Plan()
    limit = request.parameters.max_tokens
    budgeted = target.thinking == "budget"
    no_room = budgeted and limit is not None and limit <= _LEAST_BUDGET
    if no_room or not _possible(request, target, history, signed=budgeted):
        return Plan(prevented=True)
    if not budgeted:
        return Plan({"type": "adaptive"}, "low" if effort == "minimal" else effort)
    whole = _BUDGETS[effort]
    budget = whole if limit is None else max(_LEAST_BUDGET, min(whole, limit // 2))
    return Plan({"type": "enabled", "budget_tokens": budget}, budget=budget if limit is None else 0, cut=budget < whole)


def _asked(request: Request) -> tuple[dict[str, Any] | None, str | None]:
    """`thinking` and the effort, in this dialect's own words."""
    if request.extras is None or request.extras.dialect != "messages":
        return None, None
    fields = request.extras.fields
    return fields.get("thinking"), fields.get("output_config", {}).get("effort")


def _possible(request: Request, target: Target, history: History, *, signed: bool) -> bool:
    """`signed`: the calls that are answered now must begin with the signed reasoning that led to them."""
    turns = history.turns
    forced = bool(request.tools) and request.tool_choice not in (None, "auto", "none")
    prefilled = turns[-1].role == "assistant"
    unsigned = len(turns) > 1 and bool(turns[-1].results) and not turns[-2].opens_with_thinking
    return not (target.thinking == "none" or forced or prefilled or (signed and unsigned))
