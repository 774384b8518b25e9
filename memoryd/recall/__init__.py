"""Recall: one question, one clearance, one budget in; hits with their label out (`answer`)."""

from memoryd.recall.answer import get, projects, recall, records, sessions, visible_rows
from memoryd.recall.scope import Policy, Scope, narrowed

__all__ = [
    "Policy",
    "Scope",
    "get",
    "narrowed",
    "projects",
    "recall",
    "records",
    "sessions",
    "visible_rows",
]
