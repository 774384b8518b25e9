"""Secrets that are known by their shape alone. No whole token stands here: scanners would cry."""

import pytest

from memoryd.redact import find, secrets

DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7"
LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"


@pytest.mark.parametrize(
    "token",
    [
        "sk-" + LETTERS[:20] + DIGITS,
        "sk-proj-" + MIXED + "_-" + MIXED,
        "sk-ant-api03-" + MIXED + "-" + MIXED,
        "sk-test-" + MIXED,
        *(f"{prefix}_" + MIXED + DIGITS[:9] for prefix in ("ghp", "gho", "ghs")),
        "github_pat_" + MIXED[:22] + "_" + MIXED * 2,
        "glpat-" + MIXED[:20],
        *(f"xox{letter}-" + DIGITS + "-" + MIXED for letter in "baprs"),
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ASIA" + "IOSFODNN7EXAMPLE",
        "AIza" + (MIXED + MIXED)[:35],
        "npm_" + (MIXED + MIXED)[:36],
        "pypi-" + "AgEIcHlwaS5vcmc" + MIXED,
        "hf_" + (MIXED + MIXED)[:34],
        "SG." + MIXED[:22] + "." + MIXED + MIXED[:16],
        "sk_live_" + MIXED[:24],
        "rk_live_" + MIXED[:24],
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".dozjgNryP4J3jVmN-HlMGw",
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0",
    ],
)
@pytest.mark.parametrize("around", ["{}", "use {} now", "x={};y", '["{}"]', "a\n{}\nb", "é{}ü"])
def test_a_token_is_masked_wherever_it_stands(token: str, around: str):
    assert secrets(around.format(token)) == around.format("<redacted>")


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn, a task-based approach, risk-averse, .sk-folding-cube, sk-circle-fade-dot",
        "npm_config_registry, hf_hub_download, npm_lifecycle_event, HF_HOME",
        "Asia/Tokyo, ASIA, AKIA, asiapacific, Aizawa, eyJ, SG.Name",
        "pypi-publish-action-to-the-package-index-2024, xoxo, glpat-",
        "ghp_" + "x" * 36 + ", sk-" + "x" * 40,
        "https://example.com/api/v1?x=1#a@b, http://localhost:8080/@scope, git@github.com:a/b.git",
        "postgres://user:password@host/db, https://${USER}:${PASSWORD}@host, ftp://u:<pw>@h",
        "docker run -u 1000:1000 image; curl https://example.com; sort -u a:b",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, 123e4567-e89b-12d3-a456-426614174000",
        "-----BEGIN PUBLIC KEY-----\n" + LINE + "\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\n" + LINE + "\n-----END CERTIFICATE-----",
        'if text.startswith("-----BEGIN PRIVATE KEY-----") and "-----END PRIVATE KEY-----" in text:',
        "<privatex>a</privatex>, </private>, a private method, <private",
    ],
)
def test_what_only_looks_like_one_stays(text: str):
    assert secrets(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://u:p1@host/x", "https://u:<redacted>@host/x"),
        ("https://u:p@host", "https://u:<redacted>@host"),
        ("amqp://guest:a@b@host:5672//", "amqp://guest:<redacted>@host:5672//"),
        ("redis://:s3cret@[::1]:6379", "redis://:<redacted>@[::1]:6379"),
        ("https://0123456789abcdef0123@host", "https://<redacted>@host"),
        ("curl -u admin:hunter2 https://x", "curl -u admin:<redacted> https://x"),
        ("curl --user 'a:bc' https://x", "curl --user 'a:<redacted>' https://x"),
        (
            "https://hooks.slack.com/services/T0000/B0000/abcdefgh1234",
            "https://hooks.slack.com/services/<redacted>",
        ),
    ],
)
def test_a_password_in_a_url_is_masked_and_its_host_stays(text: str, masked: str):
    assert secrets(text) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("a <private>b c</private> d", "a <private: redacted 3 chars> d"),
        ('<PRIVATE why="x">\nb\n</Private >', "<private: redacted 3 chars>"),
        (
            "<private>a</private>b<private></private>",
            "<private: redacted 1 chars>b<private: redacted 0 chars>",
        ),
        ("<private>a<private>b</private>c</private>d", "<private: redacted 22 chars>d"),
        ("<private>password=hunter2 x</private>", "<private: redacted 18 chars>"),
        ("</private> x <private> y z", "</private> x <private: redacted 4 chars>"),
        ("a <private>b <private>c</private> d", "a <private: redacted 24 chars>"),
    ],
)
def test_a_private_block_is_replaced_by_its_length(text: str, masked: str):
    assert secrets(text) == masked


BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"x\n{BEGIN}\n{LINE}\n{LINE}\nabc=\n{END}\ny", f"x\n{BEGIN}\n<redacted>\n{END}\ny"),
        (f'"{BEGIN}\\n{LINE}\\nabc\\n{END}\\n"', f'"{BEGIN}\\n<redacted>\\n{END}\\n"'),
        (f"{BEGIN} {LINE} {LINE} {END}", f"{BEGIN} <redacted> {END}"),
        (f"{BEGIN}\nshort\n{END}", f"{BEGIN}\n<redacted>\n{END}"),
        (
            f"{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,00\n\n{LINE}\n{END}",
            f"{BEGIN}\n<redacted>\n{END}",
        ),
        (f"{BEGIN}\n{LINE}\n{LINE}\nMIIE", f"{BEGIN}\n<redacted>"),
        (f"{BEGIN}\nMIIEow", f"{BEGIN}\n<redacted>"),
        (f"{BEGIN}\n{LINE}\n{LINE}\n\nAnd then prose.", f"{BEGIN}\n<redacted>\n\nAnd then prose."),
        (f"prose here\n{LINE}\n{LINE}\nabc=\n{END}\ny", f"prose here\n<redacted>\n{END}\ny"),
        (f"{LINE}\n{END}\n{BEGIN}\n{LINE}", f"<redacted>\n{END}\n{BEGIN}\n<redacted>"),
        (
            f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{LINE}\n=aBcD\n-----END PGP PRIVATE KEY BLOCK-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n<redacted>\n-----END PGP PRIVATE KEY BLOCK-----",
        ),
    ],
)
def test_a_private_key_is_masked_whole_cut_escaped_or_on_one_line(text: str, masked: str):
    assert secrets(text) == masked


def test_findings_give_kind_and_place_and_never_the_text():
    text = "<private>x</private> https://u:p1@h password=hunter2 ghp_" + MIXED
    assert [(one.kind, text[one.start : one.end]) for one in find(text)] == [
        ("private", "<private>x</private>"),
        ("userinfo", "p1"),
        ("assignment", "hunter2"),
        ("token", "ghp_" + MIXED),
    ]
    assert MIXED not in repr(find(text))
