"""Arguments masked by their keys, batches, paths, and what masking never does."""

import pytest

from memoryd.records import call_text
from memoryd.redact import arguments, find, paths, secrets, secrets_many


@pytest.mark.parametrize(
    ("args", "masked"),
    [
        ({"api_key": "abc", "path": "a.py"}, {"api_key": "<redacted>", "path": "a.py"}),
        ({"password": 1234, "n": 5}, {"password": "<redacted>", "n": 5}),
        ({"headers": {"X-Api-Key": "abc"}}, {"headers": {"X-Api-Key": "<redacted>"}}),
        ({"headers": {"Authorization": "Basic a"}}, {"headers": {"Authorization": "<redacted>"}}),
        (
            {"a": [{"token": "abc"}, {"token": None}]},
            {"a": [{"token": "<redacted>"}, {"token": None}]},
        ),
        ({"passwords": ["hunter22", "x"]}, {"passwords": ["<redacted>", "x"]}),
        (
            ["run", "--token", "abc", "x"],
            ["run", "--token", "<redacted>", "x"],
        ),
        ([{"name": "API_KEY", "value": "abc"}], [{"name": "API_KEY", "value": "<redacted>"}]),
        ({"password": "keep the door shut"}, {"password": "<redacted>"}),
    ],
)
def test_a_value_under_a_telling_key_is_masked(args: object, masked: object):
    assert arguments(args) == masked


@pytest.mark.parametrize(
    "args",
    [
        {"key": "Enter", "max_tokens": 4096, "tokens": 12, "keyboard": "de", "token": 12},
        {"issueKey": "ABC-1", "password_required": True, "token": None, "secret": ""},
        {"token": "$TOKEN", "password": "${PASSWORD}", "api_key": "<your-key>"},
        {"name": "x", "value": "abc123def", "flags": ["--verbose", "abc123def"]},
        {"todos": [{"content": "rotate the token", "status": "pending"}]},
        ["a", 1, None, True, 1.5],
        "token=abc",
        None,
    ],
)
def test_arguments_without_a_secret_are_the_same_object(args: object):
    assert arguments(args) is args


def test_arguments_are_not_changed_in_place():
    args = {"env": {"TOKEN": "abcdef"}, "list": ["--token", "abcdef"]}
    arguments(args)
    assert args == {"env": {"TOKEN": "abcdef"}, "list": ["--token", "abcdef"]}


def test_arguments_as_deep_as_a_log_may_nest_are_masked():
    args: object = {"token": "abcdef"}
    for _ in range(200):
        args = {"a": args}
    assert "abcdef" not in repr(arguments(args))


def test_no_word_of_a_secret_is_left_in_what_is_indexed_of_a_call():
    args = {
        "command": "curl -H 'Authorization: Bearer s3cr3tword' x",
        "env": {"API_KEY": "otherword"},
    }
    text = secrets(call_text("Bash", arguments(args)))
    assert text == "Bash\ncurl -H 'Authorization: Bearer <redacted>' x\n<redacted>"


def test_a_batch_gives_what_each_text_gives_alone():
    texts = [
        "plain",
        "token=abc123",
        "",
        "é password: hunter2",
        "line\nbreak",
        "TOKEN=ab\0cd",
        "\ud800 pwd=x1",
    ]
    assert secrets_many(texts) == [secrets(text) for text in texts]
    assert secrets_many(texts * 300) == [secrets(text) for text in texts] * 300


def test_a_batch_of_ordinary_texts_is_handed_back_untouched():
    texts = ["plain words", "nothing here"]
    assert secrets_many(texts) is texts
    assert secrets_many([]) == []


def test_no_needle_reaches_from_one_text_into_the_next():
    assert secrets_many(["to", "ken=abc123"]) == ["to", "ken=abc123"]


def test_what_overlaps_is_one_finding():
    text = "API_KEY=sk-" + "a1b2c3d4" * 4
    assert [one.kind for one in find(text)] == ["token"]
    assert secrets(text) == "API_KEY=<redacted>"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("in /home/u/x.ts:42:7 and /var/log/a-b.log.", "in <path>:42:7 and <path>"),
        ("~/a/b ~ /mnt/d /srv/x /data/y /tmp", "<path> <path> <path> <path> <path> <path>"),
        (r"C:\Users\me\a.txt, D:/x/y \\host\share\f", "<path>, <path> <path>"),
        ('open("/etc/hosts")', 'open("<path>")'),
    ],
)
def test_absolute_paths_are_masked_on_request(text: str, masked: str):
    assert paths(text) == masked
    assert paths(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "https://ex.com/api/v1/users and http://h/home/u and GET /api/v1",
        "src/main.ts, ./src/home/x, ../lib, a/b, and/or, 1/2, x~/y, std::vec, C: and </tmp>",
    ],
)
def test_urls_routes_and_relative_paths_stay(text: str):
    assert paths(text) == text


def test_paths_are_no_secrets_so_that_files_can_be_found():
    assert (
        secrets("edit /home/me/src/main.ts and C:\\x\\y")
        == "edit /home/me/src/main.ts and C:\\x\\y"
    )
