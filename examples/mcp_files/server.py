"""A server of tools for the files of one folder, over stdio or HTTP, with the official SDK.

    python server.py FOLDER                 # stdio, as Headwater starts it
    python server.py FOLDER --port 8791     # http://127.0.0.1:8791/mcp, for others to use

In headwater.toml:

    [mcp.files]
    command = ["python", "examples/mcp_files/server.py", "/srv/files"]   # or url = "http://127.0.0.1:8791/mcp"

    [agents.helper]
    model = "fast"
    tools = ["files"]
    approve = ["files.write_*"]
"""

import argparse
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}


def build(folder: Path) -> MCPServer:
    server = MCPServer("files", instructions="The files of one folder.")
    root = folder.resolve()

    def inside(path: str) -> Path:
        found = (root / path).resolve()
        if not found.is_relative_to(root):
            raise ToolError(f"{path} is outside of the folder.")
        return found

    @server.tool()
    def list_files(folder: str = ".") -> list[str]:
        """Names of all files below a folder."""
        return sorted(str(one.relative_to(root)) for one in inside(folder).rglob("*") if one.is_file())

    @server.tool(structured_output=False)
    def read_file(path: str) -> str | Image:
        """The text of a file, or the image that is in it."""
        found = inside(path)
        return Image(path=found) if found.suffix.lower() in IMAGES else found.read_text()

    @server.tool()
    def write_file(path: str, text: str) -> str:
        """Write a text into a file; what was in it is gone."""
        found = inside(path)
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(text)
        return f"{len(text)} characters are in {path} now."

    @server.tool()
    async def find_text(words: str, context: Context) -> list[str]:
        """Files whose text has these words."""
        found: list[str] = []
        names = [one for one in sorted(root.rglob("*")) if one.is_file()]
        for number, one in enumerate(names, 1):
            await context.report_progress(number, len(names), one.name)
            if words in one.read_text(errors="ignore"):
                found.append(str(one.relative_to(root)))
        return found

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, help="serve http://127.0.0.1:PORT/mcp instead of stdio")
    asked = parser.parse_args()
    server = build(asked.folder)
    if asked.port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", port=asked.port)


if __name__ == "__main__":
    main()
