"""Tools of MCP servers: `servers.Servers` is all of them. The SDK takes a second to import, so the rest comes late."""
