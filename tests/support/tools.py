"""Arguments for every tool, as much as each takes: what a model might write."""

from typing import Any

LOG_ID = "a" * 20
HASH = "0" * 64
FULL: dict[str, dict[str, Any]] = {
    "memory_view": {"path": "/memories/internal/a.md", "view_range": [1, -1], "depth": 2},
    "memory_create": {"path": "/memories/internal/a.md", "file_text": "x\n", "reason": "why"},
    "memory_str_replace": {
        "path": "/memories/internal/a.md", "old_str": "x", "new_str": "y", "expect": HASH, "reason": "why",
    },
    "memory_insert": {
        "path": "/memories/internal/a.md", "insert_line": 0, "insert_text": "y", "expect": HASH,
        "reason": "why",
    },
    "memory_delete": {
        "path": "/memories/internal/a.md", "recursive": False, "expect": HASH, "reason": "why",
    },
    "memory_rename": {
        "old_path": "/memories/internal/a.md", "new_path": "/memories/internal/b.md", "expect": HASH,
        "reason": "why",
    },
    "recall": {
        "query": "x", "limit": 20, "kinds": ["note", "tool_call"], "since": "2026-01-01",
        "until": "2026-02-01T00:00:00Z", "project": "web", "max_class": "internal",
        "untrusted": "exclude", "cursor": "c",
    },
    "recall_open": {"id": LOG_ID, "before": 10, "after": 0},
    "lesson_save": {
        "type": "error", "content": "x", "scope": "session", "metadata": {"a": 1}, "relevance": 0.5,
    },
    "lesson_query": {"query": "x", "type": "rule", "limit": 3, "full": True, "evidence": False},
    "lesson_get": {"id": "x"},
    "lesson_recall": {"query": "x", "limit": 5, "scope": "all"},
    "lesson_status": {},
    "lesson_retrospective": {"session": "s"},
    "lesson_why": {"query": "x"},
    "lesson_export": {"format": "okf"},
    "lesson_import": {"bundle": "x"},
    "lesson_config": {"action": "set", "key": "throttle_ms", "value": "1"},
    "lesson_feedback": {"memory_id": "x", "verdict": "useful", "note": "n"},
    "lesson_trace": {"query": "x", "session": "s", "tag": "memory", "cap": 900},
    "lesson_audit": {"verbose": True},
}  # fmt: skip
