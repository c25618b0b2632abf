"""A server that gives one prepared answer, for real clients on a real socket."""

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serving(body: bytes, *, status: int = 200, content_type: str = "text/event-stream") -> Iterator[str]:
    """The base URL at which every POST is answered with `body`, chunked, and then a clean end."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("x-should-retry", "false")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            # Cut at odd places: no client may depend on how we happen to write.
            # A client that has read enough may go.
            with contextlib.suppress(ConnectionError):
                for start in range(0, len(body), 61):
                    piece = body[start : start + 61]
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
