"""Who is let in, and from where."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings
from headwater.errors import StoreError
from headwater.records import Key
from headwater.server.callers import KNOWN_S, TRUSTED_S, Keyring, hash_of
from headwater.server.guard import COOKIE, Guard
from headwater.server.refusals import Refusal
from headwater.store.base import KeyStore
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.store.results import Adopted
from headwater.testing import ManualClock
from tests.server_native.serving import KEYS, TWO_OWNERS, Served, served, settings_of, store_url

pytestmark = pytest.mark.anyio

EVIL = "http://evil.example"


def headers(server: Served, **more: str) -> dict[str, str]:
    return {name.replace("_", "-"): value.replace("SELF", server.url) for name, value in more.items()}


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        ({"host": "evil.example"}, 421, "host_not_allowed"),
        ({"host": "evil.example:8790"}, 421, "host_not_allowed"),
        ({"host": "localhost.evil.example"}, 421, "host_not_allowed"),
        ({"host": "192.168.1.4"}, 421, "host_not_allowed"),
        ({"origin": EVIL}, 403, "cross_origin"),
        ({"origin": "null"}, 403, "cross_origin"),
        ({"origin": "http://127.0.0.1:1"}, 403, "cross_origin"),
        ({"origin": "http://[::1"}, 403, "cross_origin"),
        ({"sec_fetch_site": "cross-site"}, 403, "cross_origin"),
        ({"sec_fetch_site": "same-site"}, 403, "cross_origin"),
        ({"x_forwarded_for": "127.0.0.1"}, 403, "proxy_without_keys"),
        ({"forwarded": "for=127.0.0.1"}, 403, "proxy_without_keys"),
        ({"x_real_ip": "10.0.0.1"}, 403, "proxy_without_keys"),
        ({"x_forwarded_port": "443"}, 403, "proxy_without_keys"),
        ({"true_client_ip": "10.0.0.1"}, 403, "proxy_without_keys"),
        ({"x_original_host": "chat.example.com"}, 403, "proxy_without_keys"),
        ({"via": "1.1 proxy"}, 403, "proxy_without_keys"),
        ({"x_forwarded_scheme": "https"}, 403, "proxy_without_keys"),
        ({"x_forwarded_client_cert": "x"}, 403, "proxy_without_keys"),
        ({"x_original_forwarded_for": "10.0.0.1"}, 403, "proxy_without_keys"),
        ({"x_vercel_forwarded_for": "10.0.0.1"}, 403, "proxy_without_keys"),
        ({"x_envoy_external_address": "10.0.0.1"}, 403, "proxy_without_keys"),
        ({"x_scheme": "https"}, 403, "proxy_without_keys"),
        ({"x_original_url": "/"}, 403, "proxy_without_keys"),
        ({"fastly_client_ip": "10.0.0.1"}, 403, "proxy_without_keys"),
        ({"x_azure_clientip": "10.0.0.1"}, 403, "proxy_without_keys"),
        ({"x_appengine_user_ip": "10.0.0.1"}, 403, "proxy_without_keys"),
        ({"cdn_loop": "cloudflare"}, 403, "proxy_without_keys"),
        ({"x_big": "x" * 70_000}, 431, "headers_too_large"),
    ],
)
async def test_without_keys_only_this_machine_is_let_in(
    server: Served, sent: dict[str, str], status: int, code: str
) -> None:
    for method, path in (("GET", "/api/runs"), ("POST", "/api/login")):
        body = {"key": "x"} if method == "POST" else None
        answer = await server.ask(method, path, body, headers=headers(server, **sent))
        assert (answer.status, answer.code) == (status, code)
    # What names nothing of anybody is behind the same door, but may be linked to.
    if code != "cross_origin":
        assert (await server.get("/openapi.json", headers=headers(server, **sent))).status == status
        assert (await server.get("/api/nothing", headers=headers(server, **sent))).status == status
    else:
        assert (await server.get("/openapi.json", headers=headers(server, **sent))).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"host": "localhost:8790"},
        {"host": "me.localhost"},
        {"host": "[::1]:8790"},
        {"origin": "SELF"},
        {"origin": "http://localhost:5000", "host": "localhost:5000"},
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "none"},
        {"x_stainless_lang": "python", "x_request_id": "1", "x_forward": "1"},
    ],
)
async def test_this_machine_is_let_in(server: Served, sent: dict[str, str]) -> None:
    assert (await server.get("/api/runs", headers=headers(server, **sent))).status == 200


async def test_hosts_that_are_allowed_are_let_in(tmp_path: Path) -> None:
    names = ("chat.example.com", "*.lan")
    async with served(settings_of(store_url("memory", tmp_path), allowed_hosts=names)) as server:
        for host, status in {"chat.example.com:80": 200, "a.b.lan": 200, "lan": 421, "example.com": 421}.items():
            assert (await server.get("/api/me", headers={"host": host})).status == status
    async with served(settings_of(store_url("memory", tmp_path), keys=TWO_OWNERS, allowed_hosts=names)) as server:
        for host, status in {"x.lan": 200, "example.com": 421, "localhost.example.com": 421}.items():
            assert (await server.get("/api/me", key="ann", headers={"host": host})).status == status
            assert (await server.get("/openapi.json", headers={"host": host})).status == status


@pytest.mark.parametrize("any_name", ["*", "*."])
async def test_any_name_is_none_without_keys(tmp_path: Path, any_name: str) -> None:
    """A page of evil.com, whose name was pointed at this machine, is of the same origin as what it asks."""
    hosts = (any_name, "chat.example.com")
    rebound = {"host": "evil.com.", "origin": "http://evil.com."}
    async with served(settings_of(store_url("memory", tmp_path), allowed_hosts=hosts)) as server:
        for method, path in (("GET", "/api/me"), ("POST", "/api/login"), ("GET", "/openapi.json")):
            answer = await server.ask(method, path, {"key": "x"} if method == "POST" else None, headers=rebound)
            assert (answer.status, answer.code) == (421, "host_not_allowed")
            assert ("keys create" in answer.error["message"]) is (any_name == "*")
        assert (await server.get("/api/me", headers={"host": "chat.example.com"})).status == 200
        assert (await server.get("/api/me", headers={"host": "localhost"})).status == 200
    async with served(settings_of(store_url("memory", tmp_path), keys=TWO_OWNERS, allowed_hosts=hosts)) as server:
        assert (await server.get("/api/me", key="ann", headers=rebound)).status == 200


async def test_with_keys_this_machine_may_call_the_server_by_its_own_names(tmp_path: Path) -> None:
    """A command here, whatever names others have to use. It has to bring a key."""
    settings = settings_of(store_url("memory", tmp_path), keys=TWO_OWNERS, allowed_hosts=("chat.example.com",))
    async with served(settings) as server:
        for host in (None, "localhost:8790", "[::1]:8790"):
            sent = {} if host is None else {"host": host}
            assert (await server.get("/api/me", key="ann", headers=sent)).status == 200
            assert (await server.get("/openapi.json", headers=sent)).status == 200
            assert (await server.get("/api/me", headers=sent)).code == "key_needed"


async def test_whoever_is_elsewhere_may_not() -> None:
    _, _, guard = await ring(ManualClock(), *TWO_OWNERS, allowed_hosts=("chat.example.com",))
    bearer, far = ("authorization", f"Bearer {KEYS['ann']}"), ("192.168.1.7", 5)
    assert (await guard.caller(scope(bearer, client=None))).owner == "ann"
    for refused in (guard.caller(scope(bearer, client=far)), guard.visitor(scope(client=far))):
        with pytest.raises(Refusal) as refusal:
            await refused
        assert (refusal.value.status, refusal.value.code) == (421, "host_not_allowed")


# --------------------------------------------------------------------------- keys


async def test_a_key_comes_in_a_header(keyed: Served) -> None:
    key = KEYS["ann"]
    for sent in ({"authorization": f"Bearer {key}"}, {"authorization": f"bearer  {key} "}, {"x-api-key": key}):
        # From wherever: a page elsewhere can't send these without being allowed to, and nobody is.
        answer = await keyed.get("/api/me", headers=sent | {"origin": EVIL, "x-forwarded-for": "1.2.3.4"})
        assert answer.json["owner"] == "ann"
        assert "access-control-allow-origin" not in answer.headers
    for sent in ({"authorization": "Bearer "}, {"authorization": f"Basic {key}"}, {}):
        assert (await keyed.get("/api/me", headers=sent)).code == "key_needed"
    assert (await keyed.get("/api/me", headers={"x-api-key": "wrong"})).code == "key_unknown"
    assert key not in str((await keyed.get("/api/me", headers={"x-api-key": f"{key}x"})).body)


async def test_a_cookie_is_not_good_for_pages_of_others(keyed: Served) -> None:
    answer = await keyed.post("/api/login", {"key": KEYS["ann"]})
    assert answer.json["owner"] == "ann"
    cookie = answer.headers["set-cookie"]
    for flag in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="):
        assert flag in cookie
    assert "Secure" not in cookie
    # Others on this machine have cookies, too, legal or not.
    sent = {"cookie": f"a{{b=1; {cookie.partition(';')[0]}; c"}
    assert (await keyed.get("/api/me", headers=sent)).json["owner"] == "ann"
    for strange in ({"origin": EVIL}, {"sec-fetch-site": "cross-site"}):
        assert (await keyed.get("/api/me", headers=sent | strange)).code == "cross_origin"
    assert (await keyed.post("/api/login", {"key": "wrong"})).status == 401
    assert (await keyed.post("/api/login", {"key": KEYS["ann"]}, headers={"origin": EVIL})).code == "cross_origin"
    gone = await keyed.post("/api/logout")
    assert gone.status == 204
    assert COOKIE in gone.headers["set-cookie"]
    assert "Max-Age=0" in gone.headers["set-cookie"]
    assert (await keyed.get("/api/me", headers={"cookie": "a b=; ,;="})).code == "key_needed"
    assert (await keyed.get("/api/me", headers={"cookie": "other=1"})).code == "key_needed"


@pytest.mark.parametrize(("trusted", "secure"), [(("127.0.0.0/8",), True), (("10.0.0.0/8",), False)])
async def test_a_cookie_is_for_https_alone_where_the_browser_came_so(
    tmp_path: Path, trusted: tuple[str, ...], secure: bool
) -> None:
    async with served(settings_of(store_url("memory", tmp_path), keys=TWO_OWNERS, trusted_proxies=trusted)) as server:
        answer = await server.post("/api/login", {"key": KEYS["ann"]}, headers={"x-forwarded-proto": "https"})
        assert ("Secure" in answer.headers["set-cookie"]) is secure
        # Nor is the name that it was called by believed of anybody else.
        sent = {"x-forwarded-host": "chat.example.com", "origin": "https://chat.example.com"}
        sent["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        assert (await server.get("/api/me", headers=sent)).status == (200 if secure else 403)


async def test_scopes_and_models_of_a_key_hold(tmp_path: Path) -> None:
    keys = (
        KeySettings(owner="ann", key=Secret("a" * 20), models=("fast", "demo/*")),
        KeySettings(owner="ops", key=Secret("o" * 20), scopes=("admin",)),
        KeySettings(owner="boss", key=Secret("c" * 20), scopes=("chat", "admin")),
    )
    async with served(settings_of(store_url("memory", tmp_path), keys=keys)) as server:
        ann, ops, boss = "a" * 20, "o" * 20, "c" * 20
        run = await server.post("/api/runs", {"model": "hang", "input": "x"}, key=ann)
        assert (run.status, run.code) == (403, "model_not_allowed")
        group = await server.post("/api/groups", {"models": ["fast", "hang"], "content": "x"}, key=ann)
        assert (group.status, group.code) == (403, "model_not_allowed")
        made = (await server.post("/api/runs", {"model": "fast", "input": "x"}, key=ann)).json["id"]
        await server.services.runs.wait(None, made)
        approval = {"decision": "yes", "arguments_digest": "x"}
        assert (await server.post(f"/api/runs/{made}/approvals/c", approval, key=ann)).code == "scope_needed"
        # An administrator sees all runs, and may follow and stop them; conversations stay their owners'.
        assert (await server.get("/api/runs?all=true", key=ann)).code == "scope_needed"
        for admin in (ops, boss):
            assert (await server.get("/api/runs", key=admin)).json["runs"] == []
            assert [run["id"] for run in (await server.get("/api/runs?all=true", key=admin)).json["runs"]] == [made]
            run = await server.get(f"/api/runs/{made}", key=admin)
            last_seq = run.json["last_seq"]
            assert (await server.post(f"/api/runs/{made}/stop", key=admin)).status == 200
            assert (await server.get(f"/api/runs/{made}/events?after={last_seq}", key=admin)).status == 204
            gone = await server.get(f"/api/runs/{made}/events?after={last_seq + 1}", key=admin)
            assert (gone.code, gone.error["run"]) == ("log_gone", run.json)
            assert (await server.post(f"/api/runs/{made}/continue", key=admin)).status == (
                404 if admin == boss else 403
            )
            assert (await server.post(f"/api/runs/{made}/approvals/c", approval, key=admin)).code == "scope_needed"
        for method, path in (("POST", "/api/runs"), ("GET", "/api/sessions"), ("GET", "/api/events")):
            assert (await server.ask(method, path, key=ops)).code == "scope_needed"


async def test_an_administrator_follows_a_run_of_anybody_as_its_owner_does(tmp_path: Path) -> None:
    keys = (*TWO_OWNERS, KeySettings(owner="ops", key=Secret("o" * 20), scopes=("admin",)))
    async with served(settings_of(store_url("memory", tmp_path), keys=keys)) as server:
        made = (await server.post("/api/runs", {"model": "slow", "input": "x"}, key="ann")).json["id"]
        read = []
        for key in ("o" * 20, KEYS["ann"]):
            async with server.stream(f"/api/runs/{made}/events", authorization=f"Bearer {key}") as events:
                read.append(await events.rest())
        assert read[0] == read[1]
        assert read[0][-1].event == "run.completed"
        assert (await server.get(f"/api/runs/{made}/events", key="bob")).status == 404


async def test_a_key_has_as_many_runs_at_a_time_as_it_may(tmp_path: Path) -> None:
    keys = (KeySettings(owner="ann", key=Secret("a" * 20), concurrent_runs=2),)
    async with served(settings_of(store_url("memory", tmp_path), keys=keys)) as server:
        body = {"model": "hang", "input": "x"}
        group = {"models": ["hang", "hang"], "content": "x"}
        first = (await server.post("/api/runs", body, key="ann")).json["id"]
        assert (await server.post("/api/groups", group, key="ann")).code == "too_many_runs"
        assert (await server.post("/api/runs", body, key="ann")).status == 201
        third = await server.post("/api/runs", body, key="ann")
        assert (third.status, third.code) == (429, "too_many_runs")
        assert third.headers["retry-after"] == "5"
        await server.post(f"/api/runs/{first}/stop", key="ann")
        assert (await server.post("/api/runs", body, key="ann")).status == 201


# ----------------------------------------------------------- with a clock to move


def scope(*sent: tuple[str, str], client: Any = ("127.0.0.1", 1)) -> dict[str, Any]:
    raw = [(name.encode(), value.encode()) for name, value in (("host", "localhost"), *sent)]
    asked = {"type": "http", "http_version": "1.1", "scheme": "http", "method": "GET", "path": "/"}
    return {**asked, "headers": raw, "client": client}


async def ring(clock: ManualClock, *keys: KeySettings, **server: Any) -> tuple[Any, Keyring, Guard]:
    store = await open_memory(MemoryDatabase(), address="", clock=clock, entropy=lambda n: b"0" * n)
    keyring = Keyring(keys, store, clock)
    return store, keyring, Guard(settings_of(store_url("memory", Path()), **server).server, keyring, clock)


async def test_more_requests_than_allowed_are_refused_until_time_has_passed() -> None:
    clock = ManualClock()
    _, _, guard = await ring(clock, KeySettings(owner="ann", key=Secret("k" * 20), requests_per_minute=2))
    bearer = scope(("authorization", f"Bearer {'k' * 20}"))
    await guard.caller(bearer)
    await guard.caller(bearer)
    with pytest.raises(Refusal) as refusal:
        await guard.caller(bearer)
    assert (refusal.value.status, refusal.value.code) == (429, "too_many_requests")
    assert refusal.value.headers == {"retry-after": "30"}
    await clock.advance(30)
    await guard.caller(bearer)
    with pytest.raises(Refusal):
        await guard.caller(bearer)


async def test_keys_are_known_for_a_while_and_revoking_the_last_lets_nobody_in() -> None:
    clock = ManualClock()
    store, keyring, guard = await ring(clock)
    assert (await guard.caller(scope())).owner == "local"
    key = Key(id="key_1", owner="ann", hash=hash_of("secret"), created_at=0.0)
    await store.put_key(key)
    bearer = scope(("authorization", "Bearer secret"))
    await clock.advance(6)
    assert (await guard.caller(bearer)).owner == "ann"
    with pytest.raises(Refusal):
        await guard.caller(scope())
    await store.put_key(Key(id="key_1", owner="ann", hash=key.hash, created_at=0.0, revoked_at=1.0))
    assert await keyring.caller("secret") is not None
    await clock.advance(6)
    with pytest.raises(Refusal) as refusal:
        await guard.caller(bearer)
    assert refusal.value.code == "key_unknown"
    assert await keyring.is_needed()


class SometimesDown:
    """Keys in a store that can't be read at times."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self.down = False
        self.silent: asyncio.Event | None = None
        """Until when it says nothing."""
        self.asked = 0

    async def _answers(self) -> None:
        self.asked += 1
        if self.silent is not None:
            await self.silent.wait()
        if self.down:
            raise StoreError("down", trouble="unreachable")

    async def key(self, hash: str) -> Key | None:
        await self._answers()
        return await self._store.key(hash)

    async def keys(self, owner: str | None = None) -> tuple[Key, ...]:
        await self._answers()
        return await self._store.keys(owner)

    async def put_key(self, key: Key) -> None:
        await self._store.put_key(key)

    async def adopt(self, owner: str, of: str) -> Adopted:
        return await self._store.adopt(owner, of)


ANNS = Key(id="key_1", owner="ann", hash=hash_of("secret"), created_at=0.0)
BEARER = ("authorization", "Bearer secret")


async def unsteady(clock: ManualClock, *kept: Key) -> tuple[SometimesDown, Keyring, Guard]:
    store = SometimesDown(await open_memory(MemoryDatabase(), address="", clock=clock, entropy=lambda n: b"0" * n))
    for key in kept:
        await store.put_key(key)
    keyring = Keyring((), store, clock)
    return store, keyring, Guard(settings_of(store_url("memory", Path())).server, keyring, clock)


async def test_without_keys_this_machine_is_let_in_for_as_long_as_the_store_is_away() -> None:
    clock = ManualClock()
    store, keyring, guard = await unsteady(clock)
    assert (await guard.caller(scope())).owner == "local"
    store.down = True
    for _ in range(3):
        await clock.advance(TRUSTED_S)
        asked = store.asked
        assert (await guard.caller(scope())).owner == "local"
        # It is not asked for every request.
        assert guard.recognised(scope()) is not None
        assert store.asked == asked + 1
    # What was read anew says nothing of the store.
    keyring.reload(())
    await clock.advance(KNOWN_S)
    assert (await guard.caller(scope())).owner == "local"
    store.down = False
    await store.put_key(ANNS)
    await clock.advance(KNOWN_S)
    with pytest.raises(Refusal) as refusal:
        await guard.caller(scope())
    assert refusal.value.code == "key_needed"


async def test_a_store_that_is_away_opens_no_door() -> None:
    clock = ManualClock()
    store, keyring, guard = await unsteady(clock)
    store.down = True
    # It never said that there are no keys.
    with pytest.raises(StoreError):
        await guard.caller(scope())
    keyring.reload(TWO_OWNERS)
    with pytest.raises(Refusal):
        await guard.caller(scope())
    # Nor that there are none besides those of the file, which are taken out of it.
    keyring.reload(())
    with pytest.raises(StoreError):
        await guard.caller(scope())
    store.down = False
    await store.put_key(ANNS)
    with pytest.raises(Refusal):
        await guard.caller(scope())
    store.down = True
    # Never seen.
    with pytest.raises(StoreError):
        await guard.caller(scope(BEARER))
    store.down = False
    assert await keyring.caller("guess") is None
    store.down = True
    await clock.advance(KNOWN_S)
    with pytest.raises(StoreError):
        await keyring.caller("guess")


async def test_a_key_is_trusted_for_a_while_if_the_store_is_away() -> None:
    clock = ManualClock()
    store, _, guard = await unsteady(clock, ANNS)
    assert (await guard.caller(scope(BEARER))).owner == "ann"
    await store.put_key(replace(ANNS, revoked_at=1.0))
    store.down = True
    await clock.advance(TRUSTED_S - 1)
    assert (await guard.caller(scope(BEARER))).owner == "ann"
    assert guard.recognised(scope(BEARER)) is not None
    await clock.advance(1)
    assert guard.recognised(scope(BEARER)) is None
    with pytest.raises(StoreError):
        await guard.caller(scope(BEARER))
    store.down = False
    with pytest.raises(Refusal) as refusal:
        await guard.caller(scope(BEARER))
    assert refusal.value.code == "key_unknown"


async def test_a_revocation_is_felt_as_soon_as_the_store_is_back() -> None:
    clock = ManualClock()
    store, _, guard = await unsteady(clock, ANNS)
    assert (await guard.caller(scope(BEARER))).owner == "ann"
    await store.put_key(replace(ANNS, revoked_at=1.0))
    store.down = True
    await clock.advance(KNOWN_S)
    assert (await guard.caller(scope(BEARER))).owner == "ann"
    store.down = False
    await clock.advance(KNOWN_S)
    with pytest.raises(Refusal):
        await guard.caller(scope(BEARER))


async def test_a_store_that_says_nothing_is_not_waited_for_by_those_who_are_known() -> None:
    clock = ManualClock()
    store, keyring, guard = await unsteady(clock)
    assert (await guard.caller(scope())).owner == "local"
    store.silent = asyncio.Event()
    await clock.advance(KNOWN_S)
    async with asyncio.timeout(120):
        assert (await guard.caller(scope())).owner == "local"
    # What it says in the end is known from then on.
    await store.put_key(ANNS)
    store.silent.set()
    await clock.advance(0)
    assert keyring.is_known_to_be_needed() is True


async def test_whether_somebody_may_stay_costs_no_requests_and_is_not_answered_by_a_store_that_is_down() -> None:
    clock = ManualClock()
    key = replace(ANNS, requests_per_minute=1)
    store, _, guard = await unsteady(clock, key)
    bearer = scope(BEARER)
    caller = await guard.caller(bearer)
    staying = asyncio.create_task(guard.until_unwelcome(bearer, caller))
    for _ in range(20):
        await clock.advance(KNOWN_S)
    await guard.caller(bearer)
    store.down = True
    await store.put_key(replace(key, revoked_at=1.0))
    for _ in range(5):
        await clock.advance(KNOWN_S)
    assert not staying.done()
    store.down = False
    await clock.advance(KNOWN_S)
    assert (await staying).code == "key_unknown"


async def test_guesses_do_not_fill_the_memory() -> None:
    clock = ManualClock()
    _, keyring, _ = await ring(clock)
    for n in range(5000):
        assert await keyring.caller(f"guess {n}") is None
    assert len(keyring._known) < 4097


async def test_strangers_are_refused_whatever_they_say() -> None:
    _, _, guard = await ring(ManualClock(), trusted_proxies=("10.0.0.0/8",))
    with pytest.raises(Refusal) as refusal:
        await guard.caller(scope(client=("192.168.1.7", 5)))
    assert (refusal.value.status, refusal.value.code) == (403, "not_local")
    # A Unix socket has no address.
    assert (await guard.caller(scope(client=None))).owner == "local"
    assert guard.is_secure(scope(("x-forwarded-proto", "https"), client=None)) is False
