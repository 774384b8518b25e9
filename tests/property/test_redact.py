"""Masking, for every text: once is enough, alone as in a batch, and nothing but secrets is touched."""

from hypothesis import example, given
from hypothesis import strategies as st

from memoryd.redact import arguments, find, paths, secrets, secrets_many

PIECES = [
    *(
        "password",
        "API_KEY",
        "token",
        "key",
        "Bearer",
        "Authorization",
        "cookie",
        "sig",
        "--token",
        "is",
    ),
    *(
        "=",
        ":",
        ": ",
        " = ",
        ":=",
        "=>",
        ":-",
        ",",
        " ",
        "\n",
        "\t",
        '"',
        "'",
        "`",
        "\\",
        '\\"',
        "\\n",
    ),
    *(
        "$",
        "${",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "&",
        ";",
        "|",
        "...",
        ".",
        "@",
        "/",
        "://",
        "-",
        "_",
    ),
    *(
        "abc123",
        "hunter2",
        "hunter",
        "x",
        "1234567",
        "é",
        "İ",
        "\ud800",
        "\0",
        "\x1f",
        "xxxx",
        "<redacted>",
    ),
    *(
        "<private>",
        "</private>",
        "<private x='y'>",
        "<private",
        "curl -u ",
        "value",
        "name",
        "login ",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "MIIEvQIBADANBgkqhkiG9w0",
        "sk-",
        "sk-proj-",
    ),
    *("ghp_", "a1B2c3D4e5F6g7H8i9J0", "eyJ", "xoxb-", "https", "user", "AKIA", "ABCDEFGH12345678"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.text(max_size=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(texts)
@example("PASSWORD=<private>x</private>y")
@example("<private>token=ab</private>cd</private>")
@example("token=token=abc123")
def test_masking_what_is_masked_changes_nothing(text: str):
    assert secrets(secrets(text)) == secrets(text)
    assert find(secrets(text)) == []


@given(st.lists(texts, max_size=12))
def test_a_batch_gives_what_each_text_gives_alone(many: list[str]):
    assert secrets_many(many) == [secrets(text) for text in many]


@given(texts)
def test_findings_stand_in_order_apart_and_inside_the_text(text: str):
    at = 0
    for one in find(text):
        assert at <= one.start < one.end <= len(text)
        at = one.end


@given(texts)
def test_a_text_grows_by_no_more_than_its_masks(text: str):
    longest_mask = len("<private: redacted 1000 chars>")
    assert len(secrets(text)) <= len(text) + longest_mask * len(find(text))


@example("login login password", '\n"api_key": "')
@given(texts, st.sampled_from(["\nDB_PASSWORD=", "\npassword: ", '\n"api_key": "', "\nBearer "]))
def test_a_planted_secret_is_gone_whatever_stands_before_it(text: str, name: str):
    assert "canaryA1B2C3" not in secrets(text.replace("\\", "") + name + "canaryA1B2C3")


@given(json_values)
def test_arguments_are_masked_once_and_keep_their_shape(args: object):
    masked = arguments(args)
    assert arguments(masked) is masked or arguments(masked) == masked
    assert type(masked) is type(args) or masked == "<redacted>"


@given(texts)
def test_masked_paths_are_masked_once(text: str):
    assert paths(paths(text)) == paths(text)
