"""The rogue over HTTP, a module that says its port on stdout. Apart from the other, for it takes longer to start."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agent.rogue import Call, Message, cancelled, journal, reply


class Handler(BaseHTTPRequestHandler):
    """A call is answered by a stream of events, all else by JSON. It is of the time before 2026."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if message["method"] == "tools/call":
            self.call(message)
        elif (answer := reply(message)) is not None:
            self.head(200, "application/json")
            self.wfile.write(json.dumps({"jsonrpc": "2.0", **answer}).encode())
        else:
            self.head(202)

    def do_GET(self) -> None:
        self.head(405)

    def do_DELETE(self) -> None:
        self.head(200)

    def head(self, status: int, content_type: str | None = None) -> None:
        self.send_response(status)
        self.send_header("mcp-session-id", "s")
        if content_type is not None:
            self.send_header("content-type", content_type)
        self.end_headers()

    def call(self, message: Message) -> None:
        cancelled[message["id"]] = threading.Event()
        call = Call(message["id"], message["params"], self.write, lambda said: f"event: message\ndata: {said}\n\n")
        self.head(200, "text/event-stream")
        try:
            call.run()
        except OSError:
            journal(f"{call.name} {call.word} hung up")

    def write(self, said: str) -> None:
        self.wfile.write(said.encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def over_http() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    over_http()
