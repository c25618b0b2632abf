"""A conversation printed: who said what, and the notices between. Markdown as it is, where there is no terminal."""

import sys
from typing import Any

from headwater.cli.cards import MARKS
from headwater.cli.words import arguments, one_line, safe


def show_items(items: list[dict[str, Any]]) -> None:
    """To stdout; rendered if that is a terminal."""
    pretty = sys.stdout.isatty()
    for item in items:
        for line in _pretty(item) if pretty else _plain(item):
            print(line)


def _plain(item: dict[str, Any]) -> list[str]:
    if item["kind"] == "notice":
        return [f"({one_line(item['text'])})", ""]
    head = f"## {_who(item)}"
    return [head, "", *[f"- {line}" for line in _calls(item)], *_parts(item), safe(item["content"]), ""]


def _pretty(item: dict[str, Any]) -> list[str]:
    import shutil

    from headwater.cli.paint import Painter

    painter = Painter(shutil.get_terminal_size().columns)
    if item["kind"] == "notice":
        return [painter.dim(one_line(item["text"])), ""]
    if item["role"] == "user":
        body = safe(item["content"]).splitlines() or [""]
        return [painter.bold("› " + body[0]), *(painter.bold("  " + line) for line in body[1:]), *_parts(item), ""]
    calls = [painter.dim(line) for line in _calls(item)]
    return [painter.dim(_who(item)), *calls, *painter.markdown(item["content"]), ""]


def _who(item: dict[str, Any]) -> str:
    if item["role"] != "assistant":
        return str(item["role"])
    who = item.get("answered_by") or item.get("model") or "assistant"
    return f"{who} (partial)" if item["status"] == "partial" else str(who)


def _calls(item: dict[str, Any]) -> list[str]:
    calls = item.get("tool_calls") or ()
    return [
        f"{MARKS.get(call['state'], '·')} {call['name']}({arguments(call['arguments'])})"
        + (f" → {one_line(call['result'])}" if call.get("result") else "")
        for call in calls
    ]


def _parts(item: dict[str, Any]) -> list[str]:
    return [f"[{part['type']}: {part.get('url') or part.get('blob') or part.get('name')}]" for part in item["parts"]]
