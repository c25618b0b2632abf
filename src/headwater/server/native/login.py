"""Who I am, and a cookie for a browser, which can't put a key into every request.

The cookie is the key: no script can read it, no other site can have it sent, and what revokes the key ends it.
"""

from http.cookies import SimpleCookie
from typing import Final
from urllib.parse import quote

from headwater.server.callers import Caller
from headwater.server.guard import COOKIE
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, endpoint
from headwater.server.native.shapes import LoginIn, Me
from headwater.server.refusals import Refusal

_KEPT_S: Final = 30 * 86_400


async def login(call: Call, body: LoginIn) -> Reply:
    caller = await call.guard.caller_of(body.key)
    if caller is None:
        raise Refusal("This key is not known, or was revoked.", status=401, code="key_unknown")
    return Reply(_me(call, caller), headers={"set-cookie": _cookie(call, body.key, _KEPT_S)})


async def logout(call: Call, body: Nothing) -> Reply:
    return Reply(status=204, headers={"set-cookie": _cookie(call, "", 0)})


async def me(call: Call, query: Nothing) -> Reply:
    return Reply(_me(call, call.caller))


def _me(call: Call, caller: Caller) -> Me:
    default = call.services.settings.server.default_model
    return Me(
        owner=caller.owner,
        scopes=caller.scopes,
        models=caller.models,
        key_id=caller.key_id,
        default_model=default if default and caller.may_ask(default) else None,
    )


def _cookie(call: Call, key: str, age_s: int) -> str:
    cookie: SimpleCookie = SimpleCookie()
    # Quoted: a key in the configuration may have any character.
    cookie[COOKIE] = quote(key, safe="")
    morsel = cookie[COOKIE]
    morsel["path"] = call.services.settings.server.base_path or "/"
    morsel["max-age"] = age_s
    morsel["httponly"] = True
    morsel["samesite"] = "Strict"
    morsel["secure"] = call.guard.is_secure(call.scope)
    return morsel.OutputString()


ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    endpoint("POST", "/api/login", login, LoginIn, Me, "A key for a cookie", needs=None),
    endpoint("POST", "/api/logout", logout, Nothing, None, "Forget the cookie", status=204, needs=None),
    endpoint("GET", "/api/me", me, Nothing, Me, "Whose key this is, and what it may do"),
)
