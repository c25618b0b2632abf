"""`GET /v1/models`: the names that can be asked for, in a form that OpenAI's and Anthropic's clients both read."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from headwater.dialects.base import Whole
from headwater.errors import CallerError, StoreError
from headwater.server.dialect_routes import dialect_of, out_of_order, refuse
from headwater.server.direct import Send
from headwater.server.http import Identify, Receive, Scope, send_whole
from headwater.server.services import Services
from headwater.upstream.catalog import Entry


class ModelsRoute:
    """An ASGI application: all models, or the one that the path names."""

    def __init__(self, services: Services, identify: Identify) -> None:
        self._services = services
        self._identify = identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller = await self._identify(scope)
            catalog = self._services.upstreams.catalog
            await catalog.refresh(self._services.clock.now_s())
            entries = [entry for entry in catalog.entries() if caller.may_ask(entry.name)]
            body = _one(entries, scope["path_params"]["name"]) if "name" in scope["path_params"] else _all(entries)
        except CallerError as error:
            await refuse(send, dialect_of(scope), error)
        except StoreError as error:
            await refuse(send, dialect_of(scope), out_of_order(error))
        else:
            await send_whole(send, Whole(200, msgspec.json.encode(body)))


def _all(entries: list[Entry]) -> dict[str, Any]:
    ends = {"first_id": entries[0].name, "last_id": entries[-1].name} if entries else {}
    return {"object": "list", "data": [_written(entry) for entry in entries], "has_more": False, **ends}


def _one(entries: list[Entry], name: str) -> dict[str, Any]:
    found = next((entry for entry in entries if entry.name == name), None)
    if found is None:
        raise CallerError(f"There is no model '{name}'.", status=404, code="model_not_found", param="model")
    return _written(found)


def _written(entry: Entry) -> dict[str, Any]:
    created = entry.created or 0
    openai = {"id": entry.name, "object": "model", "created": created, "owned_by": entry.owned_by}
    at = datetime.fromtimestamp(created, UTC)
    return {**openai, "type": "model", "display_name": entry.title or entry.name, "created_at": at}
