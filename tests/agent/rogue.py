"""A server of tools that does all that one should not do. No SDK: it starts at once, and nothing keeps it in order.

    python rogue.py JOURNAL [unlisted]

What it does is written to the journal, line by line, by the process that does it.
"""

import base64
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

NAMES = (
    "note",
    "slow",
    "late",
    "mute",
    "stubborn",
    "crash",
    "flood",
    "endless",
    "garbage",
    "wrong",
    "never",
    "refuse",
    "environment",
    "picture",
    "long",
    "meet",
)
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
OUT = threading.Lock()
cancelled: dict[Any, threading.Event] = {}
waiting: list[Any] = []

Message = dict[str, Any]


def journal(line: str) -> None:
    with open(sys.argv[1], "a") as file:
        file.write(f"{line}\n")


def text(said: str) -> Message:
    return {"type": "text", "text": said}


class Call:
    """One call, and a way to write: whole messages, or anything at all."""

    def __init__(self, id: Any, params: Message, write: Callable[[str], None], framed: Callable[[str], str]) -> None:
        self.id = id
        self.name, self.word = params["name"], params["arguments"].get("word", "")
        self.token = params.get("_meta", {}).get("progressToken")
        self.write = write
        self._framed = framed

    def say(self, message: Message) -> None:
        self.write(self._framed(json.dumps({"jsonrpc": "2.0", **message})))

    def answer(self, *content: Message) -> None:
        self.say({"id": self.id, "result": {"content": list(content), "isError": False}})

    def refuse(self, code: int, message: str) -> None:
        self.say({"id": self.id, "error": {"code": code, "message": message}})

    def progress(self, said: str) -> None:
        params = {"progressToken": self.token, "progress": 1, "total": 9, "message": said}
        self.say({"method": "notifications/progress", "params": params})

    def until_cancelled(self) -> None:
        self.progress("began")
        if cancelled[self.id].wait(60):
            journal(f"{self.name} {self.word} cancelled")

    def run(self) -> None:
        journal(f"{self.name} {self.word}")
        match self.name:
            case "note":
                if self.word == "changed":
                    self.say({"method": "notifications/tools/list_changed"})
                self.answer(text(f"noted {self.word}"))
            case "slow":
                self.until_cancelled()
                # As the first SDK does: it says nothing of what was done by then.
                self.refuse(0, "Request cancelled")
            case "late":
                self.until_cancelled()
                self.answer(text(f"late {self.word}"))
            case "mute":
                # As the second one does.
                self.until_cancelled()
                time.sleep(60)
            case "stubborn":
                time.sleep(60)
            case "crash":
                print("I am unwell.", file=sys.stderr, flush=True)
                os._exit(3)
            case "flood":
                while True:
                    self.progress("x" * 1000)
            case "endless":
                while True:
                    self.write("x" * 65536)
            case "garbage":
                self.write(self._framed("this is no message"))
                self.write(self._framed("{"))
            case "wrong":
                self.say({"id": self.id, "result": {"content": "no list", "isError": 7}})
            case "refuse":
                self.refuse(-32602, "Not with me.")
            case "environment":
                self.answer(text(" ".join(sorted(os.environ))))
            case "picture":
                self.answer(*pictures(self.word))
            case "long":
                self.answer(text("y" * int(self.word)))
            case "meet":
                waiting.append(self.id)
                while len(waiting) < 2:
                    time.sleep(0.005)
                self.answer(text(f"met {self.word}"))
            case _:
                # Never, over HTTP, too.
                time.sleep(60)


def pictures(word: str) -> list[Message]:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + word.encode()).decode()
    return [
        text("Look:"),
        {"type": "image", "data": png, "mimeType": "image/png"},
        {"type": "image", "data": "%%%", "mimeType": "image/png"},
        {"type": "audio", "data": png, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "A."}},
        {"type": "resource", "resource": {"uri": "file:///b.png", "blob": png, "mimeType": "image/tiff"}},
        {"type": "resource", "resource": {"uri": "file:///c.bin", "blob": png}},
        {"type": "resource_link", "uri": "file:///d.txt", "name": "d", "description": "More."},
    ]


def reply(message: Message) -> Message | None:
    """To all but calls."""
    id, params = message.get("id"), message.get("params", {})
    match message["method"]:
        case "initialize":
            info = {"name": "rogue", "version": "1"}
            version = params["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list" if sys.argv[2:] == ["unlisted"]:
            return {"id": id, "error": {"code": -32000, "message": "I have lost my list."}}
        case "tools/list":
            result = {
                "tools": [{"name": name, "description": f"It does {name}.", "inputSchema": SCHEMA} for name in NAMES]
            }
        case "notifications/cancelled":
            if cancelled[params["requestId"]].is_set():
                journal("cancelled twice")
            cancelled[params["requestId"]].set()
            return None
        case _ if id is not None:
            return {"id": id, "error": {"code": -32601, "message": "What?"}}
        case _:
            return None
    return {"id": id, "result": result}


def write_out(said: str) -> None:
    with OUT:
        sys.stdout.write(said)
        sys.stdout.flush()


def over_stdio() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "tools/call":
            cancelled[message["id"]] = threading.Event()
            call = Call(message["id"], message["params"], write_out, lambda said: f"{said}\n")
            threading.Thread(target=call.run, daemon=True).start()
        elif (answer := reply(message)) is not None:
            write_out(json.dumps({"jsonrpc": "2.0", **answer}) + "\n")


if __name__ == "__main__":
    over_stdio()
