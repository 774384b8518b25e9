"""What is indexed of a call, and the words of kinds."""

from memoryd.records import KIND_WORDS, Kind, call_text


def test_call_text_is_the_tool_then_strings_and_numbers_in_document_order() -> None:
    args = {"b": "two\nlines", "a": [1, 2.5, {"x": "deep", "y": None}], "flag": True, "z": "é"}
    assert call_text("Edit", args) == "Edit\ntwo\nlines\n1\n2.5\ndeep\né"


def test_keys_never_become_text() -> None:
    assert call_text("T", {"hidden_key": {"inner_key": []}}) == "T"


def test_raw_text_arguments_are_kept_whole() -> None:
    assert call_text("apply_patch", "*** Begin") == "apply_patch\n*** Begin"


def test_deep_arguments_need_no_recursion() -> None:
    args: object = "end"
    for _ in range(100_000):
        args = [args]
    assert call_text("T", args) == "T\nend"


def test_words_and_kinds_agree() -> None:
    assert [kind.word for kind in Kind] == [
        "owner",
        "assistant",
        "tool_call",
        "summary",
        "note",
        "lesson",
    ]
    assert KIND_WORDS["tool_call"] is Kind.TOOL_CALL
