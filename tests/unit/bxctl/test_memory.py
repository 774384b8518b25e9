"""What the memory commands ask for, and how they print what they are told."""

import json

import pytest

from memoryd.clock import parse_rfc3339
from memoryd.errors import NotFound, NotGranted, Unavailable

HIT = {
    "id": "bbz4k6c3ah2qkz7yq4mf",
    "kind": "tool_call",
    "session": "s1",
    "project": "/home/ada/shop",
    "source": "claude-code",
    "ts": "2026-03-07T12:00:00.000Z",
    "tool": "Bash",
    "class": "internal",
    "untrusted": True,
    "score": 1.5,
    "snippet": "Bash curl\x1b[2J",
}
LABEL = {"class": "internal", "untrusted": True}
FOUND = {"hits": [HIT], "label": LABEL, "cursor": None, "capped": False}


def test_a_search_asks_for_exactly_what_was_said(daemon, bxctl):
    daemon.answers["recall"] = FOUND
    bxctl("memory", "search", "retry", "back off")
    assert daemon.asked == [("recall", {"query": "retry back off"})]


def test_every_filter_travels(daemon, bxctl):
    daemon.answers["recall"] = FOUND
    bxctl(
        "memory", "search", "x", "--kind", "owner", "--kind", "summary", "--session", "s",
        "--project", "p*", "--source", "codex", "--tool", "Bash", "--since", "2026-01-02T03:04:05Z",
        "--until", "2026-01-03T00:00:00Z", "--untrusted", "exclude", "--max-class", "internal",
        "--mode", "all", "--order", "newest", "--group", "session", "--limit", "7",
        "--cursor", "abc", "--text",
    )  # fmt: skip
    (asked,) = daemon.asked
    assert asked == (
        "recall",
        {
            "query": "x", "kinds": ["owner", "summary"], "session": "s", "project": "p*", "source": "codex",
            "tool": "Bash", "since": parse_rfc3339("2026-01-02T03:04:05Z"),
            "until": parse_rfc3339("2026-01-03T00:00:00Z"), "untrusted": "exclude", "max_class": "internal",
            "mode": "all", "order": "newest", "group": "session", "limit": 7, "cursor": "abc", "text": True,
        },
    )  # fmt: skip


def test_hits_are_data_and_their_label_is_talk(daemon, bxctl):
    daemon.answers["recall"] = FOUND | {"cursor": "next", "capped": True}
    ran = bxctl("memory", "search", "curl")
    assert ran.out.splitlines()[1:] == [
        "  Bash curl␛[2J",
        "  bbz4k6c3ah2qkz7yq4mf · claude-code · s1",
    ]
    assert ran.out.startswith("tool_call Bash  internal untrusted  ")
    assert ran.err == (
        "bxctl: 1 hit, internal, untrusted in part; words this common: only the newest rows were looked at;"
        " more with --cursor next\n"
    )


def test_json_is_one_object_that_a_terminal_cannot_act_on(daemon, bxctl):
    daemon.answers["recall"] = FOUND
    ran = bxctl("memory", "search", "curl", "--json")
    assert json.loads(ran.out) == {"format": "search", "version": 1, **FOUND}
    assert ran.out.count("\n") == 1
    assert "\x1b" not in ran.out
    assert not ran.err


def test_text_shows_the_whole_text(daemon, bxctl):
    daemon.answers["recall"] = FOUND | {"hits": [HIT | {"text": "Bash\ncurl -s\n\tx"}]}
    ran = bxctl("memory", "search", "curl", "--text")
    assert ran.out.splitlines()[1:4] == ["  Bash", "  curl -s", "  \tx"]


def test_a_text_that_was_cut_says_so(daemon, bxctl):
    daemon.answers["recall"] = FOUND | {"hits": [HIT | {"text": "Bash", "cut": True}]}
    ran = bxctl("memory", "search", "curl", "--text")
    assert "(cut: too long for one answer)" in ran.out


def test_words_that_are_no_utf8_are_asked_for_as_text(daemon, bxctl):
    daemon.answers["recall"] = FOUND
    bxctl("memory", "search", "caf\udce9")
    assert daemon.asked[0][1]["query"] == "caf\ufffd"


def row(n: int, text: str) -> dict[str, object]:
    made = {name: value for name, value in HIT.items() if name not in {"score", "snippet"}}
    return made | {"id": f"id{n}", "text": text, "n": n}


def test_a_record_is_shown_among_its_neighbours(daemon, bxctl):
    answer = {"before": [row(1, "one")], "record": row(2, "two"), "after": [row(3, "three")]}
    daemon.answers["get"] = answer | {"label": LABEL}
    ran = bxctl("memory", "show", "id2", "--before", "1", "--after", "1")
    assert daemon.asked == [("get", {"id": "id2", "before": 1, "after": 1})]
    assert [line for line in ran.out.splitlines() if line.startswith("▸ ")] == [
        ran.out.splitlines()[4]
    ]
    assert ran.out.index("one") < ran.out.index("two") < ran.out.index("three")
    as_json = json.loads(bxctl("memory", "show", "id2", "--json").out)
    assert as_json == {"format": "record", "version": 1, **answer, "label": LABEL}


def test_an_unknown_id_is_1_with_a_remedy(daemon, bxctl):
    daemon.answers["get"] = NotFound("no such record", remedy="search again")
    ran = bxctl("memory", "show", "nothing")
    assert (ran.code, ran.err) == (1, "bxctl: no such record; search again\n")


SESSION = {
    "session": "4f1c2a3b-5d6e-4711-9abc-0123456789ab",
    "project": "/home/ada/shop",
    "source": "claude-code",
    "agent": None,
    "rows": 12,
    "first_ts": "2020-03-07T12:00:00.000Z",
    "last_ts": "2020-03-08T12:00:00.000Z",
    "title": "cap the\nbackoff",
    "class": "internal",
    "untrusted": False,
}
PROJECT = {
    "project": None,
    "sessions": 2,
    "rows": 1_234,
    "first_ts": None,
    "last_ts": None,
    **LABEL,
}


def paged(name: str, *pages: list[dict[str, object]]):
    """Answer page by page, with a cursor that is the next page's number."""

    def answer(**args):
        at = int(args.get("cursor") or 0)
        more = str(at + 1) if at + 1 < len(pages) else None
        return {name: pages[at], "label": LABEL, "cursor": more}

    return answer


def test_sessions_are_a_table_for_a_person(daemon, bxctl):
    daemon.answers["sessions"] = paged("sessions", [SESSION])
    ran = bxctl("memory", "sessions")
    assert ran.out.splitlines() == [
        "last        class     rows  session, project, first words",
        "8 Mar 2020  internal    12  4f1c2a3b-5d6e-4711-9abc-0123456789ab",
        "                            /home/ada/shop · cap the backoff",
    ]


def test_listings_are_one_object_a_line_with_json_and_follow_every_page(daemon, bxctl):
    daemon.answers["sessions"] = paged(
        "sessions", [SESSION, SESSION], [SESSION | {"session": "last"}]
    )
    lines = [json.loads(line) for line in bxctl("memory", "sessions", "--json").out.splitlines()]
    assert [line["session"] for line in lines] == [SESSION["session"]] * 2 + ["last"]
    assert lines[0] == {"format": "session", "version": 1, **SESSION}
    assert bxctl("memory", "sessions", "--json", "--limit", "1").out.count("\n") == 1


def test_a_listing_says_when_there_is_more(daemon, bxctl):
    daemon.answers["projects"] = paged("projects", [PROJECT, PROJECT])
    ran = bxctl("memory", "projects", "--limit", "1")
    assert ran.out.splitlines()[1:] == [
        "no time  internal untrusted  1,234         2  (none named)"
    ]
    assert ran.err == "bxctl: the latest 1; more with --limit\n"


@pytest.mark.parametrize("command", ["sessions", "projects", "stats"])
def test_nothing_listed_is_1(daemon, bxctl, command):
    daemon.answers |= {name: paged(name, []) for name in ("sessions", "projects")}
    ran = bxctl("memory", command)
    assert ran.code == 1
    assert not ran.out
    assert "nothing found" in ran.err


def test_stats_tell_rows_by_class_kind_source_and_trust(daemon, bxctl):
    upto = {"public": 1, "internal": 7, "private": 7, "secret": 12}

    def projects(**args):
        rows = upto[args.get("max_class", "secret")]
        if args.get("kinds"):
            rows = {"owner": 5, "tool_call": 7}.get(args["kinds"][0], 0)
        if args.get("untrusted") == "exclude":
            rows = 9
        return {"projects": [PROJECT | {"rows": rows}], "cursor": None, "label": LABEL}

    daemon.answers |= {"projects": projects, "sessions": paged("sessions", [SESSION])}
    told = json.loads(bxctl("memory", "stats", "--json").out)
    assert told == {
        "format": "stats", "version": 1, "rows": 12, "sessions": 1, "projects": 1, "untrusted": 3,
        "first_ts": SESSION["first_ts"], "last_ts": SESSION["last_ts"],
        "classes": [{"class": "public", "rows": 1}, {"class": "internal", "rows": 6},
                    {"class": "private", "rows": 0}, {"class": "secret", "rows": 5}],
        "kinds": [{"kind": "owner", "rows": 5}, {"kind": "tool_call", "rows": 7}],
        "sources": [{"source": "claude-code", "sessions": 1, "rows": 12}],
    }  # fmt: skip
    assert "12 rows of 1 sessions in 1 projects" in bxctl("memory", "stats").out


def test_a_dump_is_the_lines_as_they_come(daemon, bxctl):
    daemon.answers["dump"] = lambda cursor=None: {
        "lines": ['{"a":"\x9b"}'] if cursor is None else ['{"b":2}'],
        "cursor": "more" if cursor is None else None,
    }
    ran = bxctl("memory", "dump")
    assert (ran.code, ran.out) == (0, '{"a":"\x9b"}\n{"b":2}\n')


def test_an_empty_dump_is_1(daemon, bxctl):
    daemon.answers["dump"] = {"lines": [], "cursor": None}
    assert bxctl("memory", "dump").code == 1


def test_a_dump_that_is_not_granted_is_77(daemon, bxctl):
    daemon.answers["dump"] = NotGranted(
        "the socket 'agent' does not grant dump", remedy="ask the owner's"
    )
    assert bxctl("--socket", "agent", "memory", "dump").code == 77
    assert daemon.where == "agent"


def test_sync_waits_and_says_how_long(daemon, bxctl):
    daemon.answers["sync"] = {"waited_ms": 1_234}
    ran = bxctl("memory", "sync", "--session", "s1")
    assert daemon.asked == [("sync", {"deadline_ms": 600_000, "session": "s1"})]
    assert (ran.code, ran.out) == (0, "")
    assert "1.2 s" in ran.err
    assert json.loads(bxctl("memory", "sync", "--json").out) == {
        "format": "sync",
        "version": 1,
        "waited_ms": 1_234,
    }


@pytest.mark.parametrize("command", [["sync"], ["search", "x"], ["dump"], ["sessions"]])
def test_without_daemon_and_index_it_is_69_with_what_to_do(daemon, bxctl, command):
    daemon.answers["connect"] = Unavailable(
        "memoryd is not running", remedy="start it with `memoryd`"
    )
    ran = bxctl("memory", *command)
    assert ran.code == 69
    assert "start " in ran.err
    assert ran.err.count("\n") == 1
