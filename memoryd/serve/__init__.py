"""The serving room: bytes in, a method, bytes out. `server` accepts, `connection` talks, `methods` answer.

A socket is a capability: who can connect to it may do what it grants, up to its clearance (`peers`).
"""
