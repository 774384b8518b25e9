"""Notes under any edits and any text: the journal replayed is the disk, and nothing leaves its folder."""

import os
import tempfile
from functools import partial
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.notes import commands, front, history, names, text
from tests.support.notes import CLASSES, OWNER, Desk, refused, session

PATHS = st.builds(
    "/memories/{}/{}{}.md".format,
    st.sampled_from(["public", "internal", "secret"]),
    st.sampled_from(["", "inbox/", "d/"]),
    st.sampled_from("abA"),
)
TEXTS = st.text(st.sampled_from("ab\n\r\t\u2028é"), max_size=12)
ASKERS = st.sampled_from([OWNER, session(0), session(1), session(1, untrusted=True), session(3)])
EDITS = st.one_of(
    st.tuples(st.just("create"), PATHS, ASKERS, st.fixed_dictionaries({"file_text": TEXTS})),
    st.tuples(
        st.just("str_replace"),
        PATHS,
        ASKERS,
        st.fixed_dictionaries({"old_str": TEXTS, "new_str": TEXTS}),
    ),
    st.tuples(
        st.just("insert"),
        PATHS,
        ASKERS,
        st.fixed_dictionaries({"insert_line": st.integers(-1, 5), "insert_text": TEXTS}),
    ),
    st.tuples(st.just("delete"), PATHS, ASKERS, st.fixed_dictionaries({})),
    st.tuples(st.just("rename"), PATHS, ASKERS, st.fixed_dictionaries({"to": PATHS})),
    st.tuples(st.just("undo"), st.integers(0, 9), st.none(), st.none()),
    st.tuples(st.just("accept"), st.none(), st.none(), st.none()),
    st.tuples(st.just("restart"), st.none(), st.none(), st.none()),
)


def act(desk: Desk, command: str, path: object, asker: object, more: object) -> None:
    match command:
        case "undo":
            edits = [entry for entry in history.log(desk.notes) if entry["kind"] == "intent"]
            if edits:
                history.undo(desk.notes, OWNER, edits[int(str(path)) % len(edits)]["txn"])
        case "accept":
            for txn in list(desk.notes.journal.state.proposals):
                history.accept(desk.notes, OWNER, txn=txn)
        case "restart":
            desk.reopen()
        case _:
            desk.edit(command, path, asker, **more)


@settings(max_examples=60)
@given(st.lists(EDITS, max_size=14))
def test_after_any_edits_the_journal_replayed_is_the_disk(edits):
    sync, os.fsync = os.fsync, lambda handle: None
    try:
        with (
            tempfile.TemporaryDirectory(prefix="md-") as folder,
            Desk(Path(folder) / "state") as desk,
        ):
            for command, path, asker, more in edits:
                before = desk.tree()
                error = refused(partial(act, desk, command, path, asker, more))
                if error is not None:
                    assert error.remedy
                    assert command == "accept" or desk.tree() == before
                assert desk.replayed() == desk.on_disk()
            desk.check_sound()
    finally:
        os.fsync = sync


@given(st.text(max_size=80))
def test_no_text_names_a_place_outside_the_class_folders(path):
    whole = f"/memories/internal/{path}"
    error = refused(lambda: names.parse(whole, CLASSES, 3))
    if error is not None:
        assert error.data["check"] == "path"
        return
    found = names.parse(whole, CLASSES, 3)
    assert found is not None
    assert found.level == 1
    assert all(
        part.isascii() and part not in {"", ".", ".."} and "/" not in part
        for part in found.segments
    )


@given(st.text(max_size=200))
def test_what_is_taken_as_a_note_comes_back_byte_for_byte(content):
    error = refused(lambda: text.encoded(content))
    if error is not None:
        assert error.data["check"] in {"text", "front", "size"}
        return
    written = text.encoded(content)
    assert text.decoded(written) == content
    assert content.endswith(front.parse(content)[1])
    text.suspicious(content)


@given(
    st.text(st.sampled_from("ab\n\x0b\x0c\x85\u2028\r"), max_size=30),
    st.integers(0, 8),
    st.text("xy\n", max_size=6),
)
def test_insert_adds_its_lines_and_touches_no_other_byte(content, at, added):
    lines = commands.lines_of(content)
    if at > len(lines):
        return
    made = commands.insert(content, at, added).text
    new = commands.lines_of(added if added.endswith("\n") or not added else added + "\n")
    assert commands.lines_of(made) == lines[:at] + new + lines[at:]


@given(
    st.text("ab\n", max_size=30), st.text("ab\n", min_size=1, max_size=4), st.text("xy", max_size=4)
)
def test_str_replace_changes_one_place_or_nothing(content, old, new):
    places = [at for at in range(len(content)) if content.startswith(old, at)]
    error = refused(lambda: commands.str_replace(content, old, new))
    if len(places) != 1:
        assert error is not None
        assert error.data["check"] == ("multiple" if places else "no_match")
        return
    made = commands.str_replace(content, old, new).text
    [at] = places
    assert made == content[:at] + new + content[at + len(old) :]
