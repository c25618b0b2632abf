"""Whom the doctor asks, and what of: the installation, and a model of each upstream."""

import platform
import sys
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec.structs import replace

import headwater
from headwater.cli import facts, probing
from headwater.cli.diagnosis import Finding, Subject, of_answer, of_call, of_going_on
from headwater.clock import SystemClock
from headwater.config.load import Loaded
from headwater.config.settings import Settings
from headwater.errors import CallerError
from headwater.events import Failed
from headwater.upstream import demo
from headwater.upstream.catalog import Resolved
from headwater.upstream.upstreams import Upstreams

# ------------------------------------------------------------------- installation


def installation(loaded: Loaded) -> list[Finding]:
    python = platform.python_version()
    found = [Finding("fine", "headwater", f"{headwater.__version__} on Python {python}, {sys.platform}.")]
    try:
        found.append(Finding("fine", "event loop", f"uvloop {version('uvloop')}."))
    except PackageNotFoundError:
        found.append(Finding("warning", "event loop", "Without uvloop every token costs more.", "pip install uvloop"))
    found.append(Finding("fine", "configuration", f"{loaded.file or 'No file; defaults and the environment'}."))
    found += [Finding("warning", "configuration", str(warning)) for warning in loaded.warnings]
    found += [Finding("note", "configuration", str(hint)) for hint in loaded.hints]
    if not loaded.settings.upstreams:
        what = "There is no upstream: only the demo models answer."
        found.append(Finding("note", "upstreams", what, "set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST"))
    return found


# ---------------------------------------------------------------------- upstreams


async def examine(settings: Settings, models: list[str], patience_s: float) -> AsyncIterator[tuple[str, list[Finding]]]:
    """What was found, of one after the other, by `UPSTREAM/MODEL`."""
    clock = SystemClock()
    # Each is asked once, and what it does not say within our patience it does not say.
    eager = {name: replace(one, retries=0, record=False) for name, one in settings.upstreams.items()}
    upstreams = Upstreams(replace(settings, upstreams=eager), clock, Path())
    upstreams.list_s = patience_s
    try:
        await upstreams.catalog.refresh(clock.now_s())
        one_of_each = _one_of_each(settings, upstreams)
        for name in models or one_of_each.values():
            listed: list[Finding] = []
            try:
                resolved = await upstreams.catalog.resolve(name, clock.now_s())
            except CallerError as error:
                yield name, [Finding("fault", "model", error.message)]
                continue
            listed = _listing(resolved, upstreams)
            yield f"{resolved.upstream}/{resolved.model}", listed + await _examined(upstreams, resolved, patience_s)
        if not models:
            for name in settings.upstreams:
                if name not in one_of_each:
                    yield name, _unlisted(name, upstreams)
    finally:
        await upstreams.close()


def _one_of_each(settings: Settings, upstreams: Upstreams) -> dict[str, str]:
    """A name to ask for, by upstream. What is configured comes before what is merely listed, and need not be so."""
    found: dict[str, str] = {}
    for model in settings.models:
        found.setdefault(model.upstream, model.name)
    for entry in upstreams.catalog.entries():
        upstream, slash, _ = entry.name.partition("/")
        if slash and upstream in settings.upstreams:
            found.setdefault(upstream, entry.name)
    found.pop(demo.NAME, None)
    return found


def _listing(resolved: Resolved, upstreams: Upstreams) -> list[Finding]:
    failure = upstreams.catalog.failures.get(resolved.upstream)
    if failure is None:
        return []
    change = f"[upstreams.{resolved.upstream}] list_models = false, if it can't"
    return [Finding("warning", "list", f"Its models can't be listed: {failure}", change)]


def _unlisted(name: str, upstreams: Upstreams) -> list[Finding]:
    """Nothing of it could be asked."""
    failure = upstreams.catalog.failures.get(name)
    how = "name one: headwater doctor -m " + name + "/MODEL"
    if failure is None:
        return [Finding("warning", "list", "It tells of no model, so none was asked.", how)]
    return [Finding("fault", "reach", failure, f"[upstreams.{name}] base_url or api_key; or {how}")]


async def _examined(upstreams: Upstreams, resolved: Resolved, patience_s: float) -> list[Finding]:
    asked = upstreams.of(resolved).routes[0]
    subject = Subject(resolved.upstream, resolved.settings)
    answer = facts.read(asked, await probing.ask(asked, probing.said(), patience_s))
    found = [*of_answer(subject, answer)]
    if isinstance(answer.outcome, Failed):
        # What it can't do at all it can't do with tools.
        return found
    found += of_call(subject, facts.read(asked, await probing.ask(asked, probing.called(), patience_s)))
    if asked.prefill != "none":
        going_on = facts.read(asked, await probing.ask_to_go_on(asked, patience_s))
        found += of_going_on(subject, going_on, asked.prefill)
    return found
