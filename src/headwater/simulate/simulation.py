"""The simulator's desk: takes a request, checks it, notes it, finds its script and hands out the answer's steps."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from headwater.checks import check_chat, check_messages, check_responses
from headwater.clock import Clock, SystemClock
from headwater.events import DialectName
from headwater.simulate import models, names
from headwater.simulate.asked import PATHS, Asked, read_asked
from headwater.simulate.connection import Connection, HttpRequest, Playing
from headwater.simulate.http import error_body
from headwater.simulate.journal import Connected, Exchange, Journal
from headwater.simulate.pacer import Pacer
from headwater.simulate.perform import perform, plain
from headwater.simulate.replay import Replays
from headwater.simulate.script import Answer, Scenario, Script

CHECKS: Final[dict[DialectName, Callable[[dict[str, Any]], list[str]]]] = {
    "chat": check_chat,
    "responses": check_responses,
    "messages": check_messages,
}
JOURNAL_PATH: Final = "/simulate/requests"
MODELS_PATH: Final = "/v1/models"
ANY: Final = "*"


class Simulation:
    def __init__(
        self, scenario: Scenario = Scenario(), clock: Clock | None = None, replays: Replays | None = None
    ) -> None:
        self._replays = replays or Replays()
        self._clock = clock or SystemClock()
        self._key = scenario.key
        self._strict = scenario.strict
        self._scripts = {name: resolve(script) for name, script in scenario.models.items()}
        self._used: Counter[tuple[str, int]] = Counter()
        self._connections: set[Connection] = set()
        self.journal = Journal(self._clock)
        self.pacer = Pacer(self._clock)

    def set_script(self, model: str, script: Script) -> None:
        """From now on; what it had used up is forgotten."""
        self._scripts[model] = resolve(script)
        self._used = Counter({key: used for key, used in self._used.items() if key[0] != model})

    def known_names(self) -> tuple[str, ...]:
        return (*self._replays.models, *(name for name in self._scripts if name != ANY), *names.EXAMPLES)

    def clear(self) -> None:
        """As if nobody had asked anything yet."""
        self.journal.clear()
        self._used.clear()
        self._replays.clear()

    def close(self) -> None:
        self.pacer.close()
        for connection in list(self._connections):
            connection.close()

    # -------------------------------------------------------------------- desk

    def joined(self, connection: Connection) -> None:
        self._connections.add(connection)

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def answer(self, request: HttpRequest, connection: Connected) -> Playing:
        if request.path == JOURNAL_PATH:
            return self._show_journal(request)
        exchange = self.journal.asked(connection, request.method, request.path, request.headers, request.body)
        dialect = PATHS.get(request.path) or PATHS.get(f"/v1{request.path}")
        if dialect is not None and request.method == "POST":
            return self._answer_model(dialect, request, exchange)
        place, _, model = request.path.removeprefix("/v1").removeprefix("/").partition("/")
        if request.method == "GET" and place == "models":
            return self._tell_models(request, unquote(model), exchange)
        paths = ", ".join([*(f"POST {path}" for path in PATHS), f"GET {MODELS_PATH}", f"GET {JOURNAL_PATH}"])
        message = f"There is no {request.method} {request.path} here. There are: {paths}."
        return self._refuse(exchange, "chat", 404, message, code="not_found")

    def _answer_model(self, dialect: DialectName, request: HttpRequest, exchange: Exchange) -> Playing:
        if not isinstance(exchange.body, dict):
            return self._refuse(exchange, dialect, 400, "The body must be a JSON object.")
        asked = read_asked(dialect, exchange.body)
        exchange.model = asked.model
        if self._key is not None and _key(request) != self._key:
            return self._refuse(exchange, dialect, 401, "Incorrect API key provided.")
        exchange.complaints = _complaints(dialect, request, exchange.body)
        if exchange.complaints and self._strict:
            param = exchange.complaints[0].partition(": ")[0]
            return self._refuse(exchange, dialect, 400, "; ".join(exchange.complaints), param=param)
        if self._replays:
            return self._replay(dialect, exchange)
        try:
            script = self._script(asked.model)
        except names.UnknownName as error:
            known = ", ".join(self.known_names())
            message = f"The model {asked.model!r} does not exist. Try one of: {known}. {error}"
            return self._refuse(exchange, dialect, 404, message, code="model_not_found", param="model")
        answer = self._choose(script, asked)
        if answer is None:
            message = f"The script of {asked.model!r} has no answer for when the last message is of this kind."
            return self._refuse(exchange, dialect, 500, message)
        status, steps = perform(answer, asked, number=exchange.number, created=int(self._clock.unix_s()))
        return Playing(steps, exchange, status)

    def _replay(self, dialect: DialectName, exchange: Exchange) -> Playing:
        taken = self._replays.take(dialect)
        if taken is None:
            message = f"Nothing was recorded in this dialect, but in: {', '.join(self._replays.dialects)}."
            return self._refuse(exchange, dialect, 404, message)
        status, steps = taken
        return Playing(steps, exchange, status)

    def _script(self, model: str) -> Script:
        """Raises `UnknownName`."""
        if model in self._scripts:
            return self._scripts[model]
        if model.startswith(names.PREFIX) or ANY not in self._scripts:
            return names.script_of(model)
        return self._scripts[ANY]

    def _choose(self, script: Script, asked: Asked) -> Answer | None:
        step = "tool_result" if asked.tool_result else "user"
        fits = [(n, answer) for n, answer in enumerate(script.answers) if answer.when in ("any", step)]
        if not fits:
            return None
        n, chosen = next(
            ((n, answer) for n, answer in fits if self._used[asked.model, n] < answer.times),
            fits[-1],
        )
        self._used[asked.model, n] += 1
        return chosen

    def _refuse(
        self,
        exchange: Exchange,
        dialect: DialectName,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
    ) -> Playing:
        return Playing(plain(status, error_body(dialect, status, message, code=code, param=param)), exchange, status)

    def _tell_models(self, request: HttpRequest, model: str, exchange: Exchange) -> Playing:
        """All of them, or the one that is named."""
        dialect: DialectName = "messages" if "anthropic-version" in request.headers else "chat"
        if self._key is not None and _key(request) != self._key:
            return self._refuse(exchange, dialect, 401, "Incorrect API key provided.")
        try:
            if model:
                self._script(model)
        except names.UnknownName as error:
            return self._refuse(exchange, dialect, 404, f"The model {model!r} does not exist. {error}")
        told = models.model(dialect, model) if model else models.model_list(dialect, self.known_names())
        return Playing(plain(200, msgspec.json.encode(told)), exchange)

    def _show_journal(self, request: HttpRequest) -> Playing:
        if request.method == "DELETE":
            self.clear()
        shown = {"requests": self.journal.exchanges, "connections": list(self.journal.connections.values())}
        return Playing(plain(200, msgspec.json.encode(shown)))


def resolve(script: Script) -> Script:
    """Raises `UnknownName`."""
    return script if script.like is None else names.script_of(script.like)


def _key(request: HttpRequest) -> str:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    return request.headers.get("x-api-key", bearer)


def _complaints(dialect: DialectName, request: HttpRequest, body: dict[str, Any]) -> list[str]:
    found = CHECKS[dialect](body)
    if not request.headers.get("content-type", "").startswith("application/json"):
        found.append("content-type: must be application/json")
    if dialect == "messages" and "anthropic-version" not in request.headers:
        found.append("anthropic-version: header is required")
    return found
