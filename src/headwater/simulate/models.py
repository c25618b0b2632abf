"""The list of models, as OpenAI and Anthropic give it. Pure."""

from collections.abc import Sequence
from typing import Any

from headwater.events import DialectName


def model_list(dialect: DialectName, names: Sequence[str]) -> dict[str, Any]:
    if dialect == "messages":
        shown = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names
        ]
        return {"data": shown, "has_more": False, "first_id": names[0], "last_id": names[-1]}
    listed = [{"id": name, "object": "model", "created": 1767225600, "owned_by": "simulator"} for name in names]
    return {"object": "list", "data": listed}
