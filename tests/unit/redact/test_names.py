"""Which names tell that a secret follows, and which only sound like it."""

import pytest

from memoryd.redact import secret_key
from memoryd.redact.names import Telling, telling


@pytest.mark.parametrize(
    "name",
    [
        *(
            "password",
            "Password",
            "DB_PASSWORD",
            "dbPassword",
            "PGPASSWORD",
            "userpassword",
            "passwd",
        ),
        *(
            "passphrase",
            "MYSQL_PWD",
            "smtp_pass",
            "DB_PASS",
            "password2",
            "secret",
            "client_secret",
        ),
        *("clientSecret", "clientsecret", "AWS_SECRET_ACCESS_KEY", "SECRET_KEY_BASE", "secrets"),
        *(
            "token",
            "GITHUB_TOKEN",
            "accessToken",
            "auth-token",
            "_authToken",
            "X-CSRF-Token",
            "authtoken",
        ),
        *(
            "bearer",
            "api_key",
            "apiKey",
            "APIKey",
            "apikey",
            "X-Api-Key",
            "MY_API_KEY",
            "API_KEY_2",
        ),
        *("OPENAI_KEY", "private_key", "privateKey", "account_key", "authorization", "cookie"),
        *("credentials", "auth", "_auth", "frobnicator_key", "api_keys", "signature"),
    ],
)
def test_a_name_of_a_secret_tells(name: str):
    assert secret_key(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "max_tokens",
            "tokens",
            "token_count",
            "input_tokens",
            "maxToken",
            "next_page_token",
            "eos_token",
        ),
        *(
            "tokenizer",
            "tokenize",
            "token_type",
            "token-budget",
            "TOKEN_TTL",
            "keyboard",
            "keyword",
        ),
        *(
            "key",
            "keys",
            "monkey",
            "primary_key",
            "foreignKey",
            "cache_key",
            "sort_key",
            "issueKey",
        ),
        *(
            "public_key",
            "key_id",
            "key_path",
            "KeyError",
            "onKeyDown",
            "password_field",
            "passwordless",
        ),
        *(
            "password_reset_required",
            "secret_name",
            "secretary",
            "PWD",
            "OLDPWD",
            "author",
            "authenticate",
        ),
        *(
            "compass",
            "passed",
            "test_pass",
            "first_pass",
            "cookie_jar",
            "bearing",
            "",
            "42",
            "_",
            "-",
        ),
    ],
)
def test_a_name_that_only_sounds_like_one_tells_nothing(name: str):
    assert not secret_key(name)


def test_how_much_a_name_tells_decides_how_much_a_value_must_look_it():
    assert telling("db_password") is Telling.PASSWORD
    assert telling("api_key") is Telling.TOKEN
    assert telling("frobnicator_key") is Telling.PERHAPS
    assert telling("frobnicator") is Telling.NOTHING
