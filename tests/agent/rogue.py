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
from typing import Any

NAMES = (
    "note",
    "slow",
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


def journal(line: str) -> None:
    with open(sys.argv[1], "a") as file:
        file.write(f"{line}\n")


def write(message: dict[str, Any]) -> None:
    with OUT:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(id: Any, *content: dict[str, Any], error: bool = False) -> None:
    write({"id": id, "result": {"content": list(content), "isError": error}})


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def progress(token: Any, done: int, said: str) -> None:
    write(
        {
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": done, "total": 9, "message": said},
        }
    )


def call(id: Any, params: dict[str, Any]) -> None:
    name, word = params["name"], params["arguments"].get("word", "")
    token = params.get("_meta", {}).get("progressToken")
    journal(f"{name} {word}")
    match name:
        case "note":
            if word == "changed":
                write({"method": "notifications/tools/list_changed"})
            answer(id, text(f"noted {word}"))
        case "slow":
            progress(token, 1, "began")
            stopped = cancelled[id].wait(60)
            journal(f"{name} {word} {'cancelled' if stopped else 'done'}")
        case "stubborn":
            time.sleep(60)
        case "crash":
            print("I am unwell.", file=sys.stderr, flush=True)
            os._exit(3)
        case "flood":
            while True:
                progress(token, 1, "x" * 1000)
        case "endless":
            while True:
                sys.stdout.write("x" * 65536)
        case "garbage":
            sys.stdout.write("this is no message\n{\n\n")
            sys.stdout.flush()
        case "wrong":
            write({"id": id, "result": {"content": "no list", "isError": 7}})
        case "refuse":
            write({"id": id, "error": {"code": -32602, "message": "Not with me."}})
        case "environment":
            answer(id, text(" ".join(sorted(os.environ))))
        case "picture":
            png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + word.encode()).decode()
            answer(
                id,
                text("Look:"),
                {"type": "image", "data": png, "mimeType": "image/png"},
                {"type": "image", "data": "%%%", "mimeType": "image/png"},
                {"type": "audio", "data": png, "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "A."}},
                {"type": "resource", "resource": {"uri": "file:///b.png", "blob": png, "mimeType": "image/tiff"}},
                {"type": "resource", "resource": {"uri": "file:///c.bin", "blob": png}},
                {"type": "resource_link", "uri": "file:///d.txt", "name": "d", "description": "More."},
            )
        case "long":
            answer(id, text("y" * int(word)))
        case "meet":
            waiting.append(id)
            while len(waiting) < 2:
                time.sleep(0.005)
            answer(id, text(f"met {word}"))
        case _:
            pass


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        id, params = message.get("id"), message.get("params", {})
        match message["method"]:
            case "initialize":
                version = params["protocolVersion"]
                info = {"name": "rogue", "version": "1"}
                write(
                    {
                        "id": id,
                        "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
                    }
                )
            case "tools/list" if sys.argv[2:] == ["unlisted"]:
                write({"id": id, "error": {"code": -32000, "message": "I have lost my list."}})
            case "tools/list":
                tools = [{"name": name, "description": f"It does {name}.", "inputSchema": SCHEMA} for name in NAMES]
                write({"id": id, "result": {"tools": tools}})
            case "tools/call":
                cancelled[id] = threading.Event()
                threading.Thread(target=call, args=(id, params), daemon=True).start()
            case "notifications/cancelled":
                cancelled[params["requestId"]].set()
            case _ if id is not None:
                write({"id": id, "error": {"code": -32601, "message": "What?"}})
            case _:
                pass


if __name__ == "__main__":
    main()
