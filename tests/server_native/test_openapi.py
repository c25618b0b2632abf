"""The document says what is served, and whoever follows it, or nearly, gets no 5xx."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headwater.config.secret import SecretUrl
from headwater.server.native.api import table
from headwater.server.native.streaming import OpenStreams
from headwater.server.openapi import openapi
from headwater.testing.postgres import PostgresServer
from tests.server_native.serving import Served, served, settings_of, store_url
from tests.server_native.test_owners import things
from tests.store.postgres_backend import emptied

EXAMPLES = 50 if os.environ.get("CI") == "true" else 25

pytestmark = pytest.mark.anyio

DOCUMENT = msgspec.json.decode(msgspec.json.encode(openapi(table(OpenStreams()))))


def test_every_endpoint_and_every_reference_is_there() -> None:
    for one in table(OpenStreams()):
        operation = DOCUMENT["paths"][one.path][one.method.lower()]
        assert str(one.status) in operation["responses"]
    names = [o["operationId"] for path in DOCUMENT["paths"].values() for o in path.values()]
    assert len(names) == len(set(names))

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [found for child in value.values() for found in references(child)]
        return [found for child in value for found in references(child)] if isinstance(value, list) else []

    schemas = DOCUMENT["components"]["schemas"]
    assert {found.removeprefix("#/components/schemas/") for found in references(DOCUMENT)} <= set(schemas)


async def test_it_is_served_and_a_page_lists_all(server: Served) -> None:
    assert (await server.get("/openapi.json")).json == DOCUMENT
    page = await server.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for one in table(OpenStreams()):
        assert one.path in page.body.decode()
    # Each type is explained once, and every link goes somewhere.
    html = page.body.decode()
    links = set(re.findall(r"href=#(\w+)", html))
    assert links <= set(re.findall(r"id=(\w+)", html))
    assert "RunShape" in links
    assert "<td><code class=needed>q</code>" in html
    # Nothing is fetched from anywhere, and nothing is run.
    assert "://" not in html
    assert "<script" not in html
    assert "default-src 'none'" in page.headers["content-security-policy"]


# Streams don't end; they have tests of their own.
CASES = [
    found.ok()
    for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
    if isinstance(found, Ok) and "events" not in found.ok().path
]


CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance, content_type_conformance]


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.parametrize("operation", CASES, ids=[f"{case.method} {case.path}" for case in CASES])
async def test_nothing_that_is_sent_makes_it_fail(tmp_path: Path, operation: Any) -> None:
    """Neither what the document allows nor what is next to it, of things that are there and of others."""
    async with served(settings_of(store_url("memory", tmp_path))) as server:
        await send_any(server, operation, await things(server), EXAMPLES)
        assert (await server.get("/api/me")).status == 200


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
async def test_nor_on_postgres_which_does_not_keep_every_text(postgres: PostgresServer) -> None:
    """Fewer of each, at one server: what makes the difference is in the store alone."""
    async with served(settings_of(SecretUrl(emptied(postgres, "any_request")))) as server:
        for operation in CASES:
            await send_any(server, operation, await things(server), examples=8)
        assert (await server.get("/api/me")).status == 200


async def send_any(server: Served, operation: Any, names: dict[str, str], examples: int) -> None:
    def ask(case: Any, named: str) -> None:
        if named == "real":
            case.path_parameters = {name: names[name] for name in case.path_parameters}
        elif named == "null":
            case.path_parameters = dict.fromkeys(case.path_parameters, "a%00b")
        answer = case.call(base_url=server.url)
        case.validate_response(answer, checks=CHECKS)

    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    cases = st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes])
    quiet = settings(
        max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    # In a thread: schemathesis asks by a client that waits.
    await asyncio.to_thread(quiet(given(cases, st.sampled_from(["any", "real", "null"]))(ask)))
