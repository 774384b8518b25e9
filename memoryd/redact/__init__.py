"""Masks secrets in what is about to be indexed; see `memoryd.redact.masking`."""

from memoryd.redact.masking import Finding, arguments, find, paths, secrets, secrets_many
from memoryd.redact.names import secret_key
from memoryd.redact.sieve import held, holding

VERSION = 2
"""Counts up with every change of what is masked: an index made with another version is rebuilt."""

__all__ = [
    "Finding",
    "arguments",
    "find",
    "held",
    "holding",
    "paths",
    "secret_key",
    "secrets",
    "secrets_many",
]
