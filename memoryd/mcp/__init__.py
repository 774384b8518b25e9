"""The memory over the Model Context Protocol: a client of the daemon like any other, and a server to a harness.

Needs the extra ``memoryd[mcp]``. `link` asks the daemon, `answers` turns what it says into the protocol's values,
`server` speaks the protocol on standard input and output with the official SDK.
"""
