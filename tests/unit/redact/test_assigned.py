"""Values beside telling names: literals go, whatever only points at a value stays readable."""

import pytest

from memoryd.redact import find, secrets


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        # shells, environments, files of settings
        ("MY_API_KEY=abc", "MY_API_KEY=<redacted>"),
        (
            "export AWS_SECRET_ACCESS_KEY=wJalr/K7MDENG+bPx",
            "export AWS_SECRET_ACCESS_KEY=<redacted>",
        ),
        ("GITHUB_TOKEN=hunter next", "GITHUB_TOKEN=<redacted> next"),
        ("aws_secret_access_key = wJalrXUtnFEMI9", "aws_secret_access_key = <redacted>"),
        ("PASSWORD=it'sme,really;ok x", "PASSWORD=<redacted> x"),
        (
            'docker run -e "DB_PASSWORD=s3cret" image',
            'docker run -e "DB_PASSWORD=<redacted>" image',
        ),
        ("psql ${PGPASSWORD:-hunter2}", "psql ${PGPASSWORD:-<redacted>}"),
        ("token=abc123", "token=<redacted>"),
        ("token = abc123", "token = <redacted>"),
        ("a?token=abc&user=me", "a?token=<redacted>&user=me"),
        ("spring.datasource.password=hunter", "spring.datasource.password=<redacted>"),
        ("//registry.example/:_authToken=abc-def", "//registry.example/:_authToken=<redacted>"),
        ("password: hunter2", "password: <redacted>"),
        ("password: hunter", "password: <redacted>"),
        ("  db_password: hunter  # local", "  db_password: <redacted>  # local"),
        ("Password: 12345", "Password: <redacted>"),
        ("MYSQL_PWD=x1 mysql", "MYSQL_PWD=<redacted> mysql"),
        ("machine h login u password swordfish", "machine h login u password <redacted>"),
        ("- name: API_KEY\n  value: abc123", "- name: API_KEY\n  value: <redacted>"),
        # JSON, also escaped, and code
        ('{"password": "x"}', '{"password": "<redacted>"}'),
        ('{"password": "x y"}', '{"password": "<redacted>"}'),
        ('{\\"password\\": \\"hunter2\\"}', '{\\"password\\": \\"<redacted>\\"}'),
        (r"{\\\"token\\\": \\\"a\\\"}", r"{\\\"token\\\": \\\"<redacted>\\\"}"),
        (r'{"password": "a\"b", "u": 1}', '{"password": "<redacted>", "u": 1}'),
        ('{"password": 12}', '{"password": <redacted>}'),
        ("{'api_key': 'abcd'}", "{'api_key': '<redacted>'}"),
        ('{"name": "API_KEY", "value": "abc123"}', '{"name": "API_KEY", "value": "<redacted>"}'),
        ('password = "hunter"', 'password = "<redacted>"'),
        ('password: str = "hunter"', 'password: str = "<redacted>"'),
        ("const apiKey: string = 'abcdef'", "const apiKey: string = '<redacted>'"),
        ('token := "abcdef"', 'token := "<redacted>"'),
        ("'password' => 'hunter'", "'password' => '<redacted>'"),
        ('os.environ["API_KEY"] = "abcdef"', 'os.environ["API_KEY"] = "<redacted>"'),
        ('setItem("token", "abc12345")', 'setItem("token", "<redacted>")'),
        ('SECRET = process.env.SECRET || "abc1"', 'SECRET = process.env.SECRET || "<redacted>"'),
        ("<password>hunter2</password>", "<password><redacted></password>"),
        ('password = """hunter2"""', 'password = """<redacted>"""'),
        ('password = "cut off here', 'password = "<redacted> off here'),
        # command lines
        ("run --token abc", "run --token <redacted>"),
        ("run --password=hunter --quiet", "run --password=<redacted> --quiet"),
        ("run --api-key 'abc' -v", "run --api-key '<redacted>' -v"),
        ("curl -H 'X-Api-Key: abcdef' u", "curl -H 'X-Api-Key: <redacted>' u"),
        ("api-key: abc123", "api-key: <redacted>"),
        # words
        ("my API key: abc123", "my API key: <redacted>"),
        ("the password is hunter2, remember", "the password is <redacted>, remember"),
        ("ALTER USER u WITH PASSWORD 'bar123';", "ALTER USER u WITH PASSWORD '<redacted>';"),
        ("the token `abc123def` leaked", "the token `<redacted>` leaked"),
        ("- **Password**: hunter2", "- **Password**: <redacted>"),
        # headers
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic <redacted>"),
        ('{"Authorization": "Bearer abc.def"}', '{"Authorization": "Bearer <redacted>"}'),
        ("Authorization: token abcdefgh", "Authorization: token <redacted>"),
        ("authorization: 0123456789abcdef", "authorization: <redacted>"),
        ("Bearer eyJ.abc==", "Bearer <redacted>"),
        ("Bearer aaa:bbb", "Bearer <redacted>"),
        ("send Bearer abcdef.", "send Bearer <redacted>."),
        ("Cookie: sid=abc; theme=dark\nHost: x", "Cookie: <redacted>\nHost: x"),
        ("-H 'Set-Cookie: sid=abc; Path=/'", "-H 'Set-Cookie: <redacted>'"),
        (
            "https://b.example/c?sv=1&sig=ab%2Bcd12345%3D&e=1",
            "https://b.example/c?sv=1&sig=<redacted>&e=1",
        ),
    ],
)
def test_a_literal_beside_a_telling_name_is_masked(text: str, masked: str):
    assert secrets(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        # about secrets
        "max_tokens: 4096, tokens: 12, a token budget of 3000, token count: 7",
        "the password field is empty; the token is invalid; a secret is kept",
        "Password: must have at least 8 characters",
        "password: string, token: Optional[str], secret: SecretStr",
        "token: missing\npassword: required",
        "keyboard: qwerty, key: Enter, primary_key=user_id, cache_key = 'abc12345'",
        "Use --token to pass one, --password-stdin, or --token-file path/to/file",
        "Bearer token, bearer of news, Bearer authentication, Authorization: Bearer <token>",
        '"password": "Your password must be at least 8 characters"',
        '{"password": {"type": "string", "description": "The password"}}',
        # code
        "token = get_token(); password = self.password; key = config.api_key",
        "def login(user: str, password: str, token: Token) -> None:",
        "def __init__(self, token=None, password='', secret=\"\"):",
        "login(user, password=password, token=access_token)",
        "const token = await fetchToken(); const { password } = req.body;",
        "api_key = os.environ['API_KEY']; key = process.env.API_KEY",
        'os.environ["TOKEN"], os.getenv("API_KEY")',
        "interface A { password: string; token?: Token; apiKey: ApiKey | null }",
        "if token == expected and token != '' and password == confirm:",
        "token => token.id; let token: &str = x; Token::new(); (token) => x",
        'assert "token=" + value, "no token"',
        "secrets = [line.strip() for line in lines]",
        "type Token = string; token: AccessToken,",
        'fetch(url, {credentials: "include"})',
        "PWD=/home/me OLDPWD=/tmp",
        "arn:aws:secretsmanager:*:*:secret:mine-*, class Token(Base): pass",
        "names = ['AES_KEY', 'PKCS7_SERIAL']; ACCESS_KEY = 'AWS_ACCESS_KEY_ID'; token = self._lexer.token",
        'export const TOKEN_KEY = "auth_token"',
        "cookie: document.cookie, cookies = SimpleCookie()",
        # references and placeholders
        "TOKEN=$TOKEN PASSWORD=${DB_PASSWORD} KEY=$(cat key) API_KEY=%API_KEY% TOKEN={{ token }}",
        "TOKEN=<your-token> API_KEY=your-api-key password=**** token=xxxxxx secret=[REDACTED]",
        "password: ${{ secrets.PASSWORD }}, token: {token}, f'Bearer {token}', `Bearer ${token}`",
        "API_KEY=sk-... TOKEN=YOUR_TOKEN_HERE token: ...",
        "token: /run/secrets/token; curl -d token=@file",
        "Cookie: sid=${SID}",
        "token=<redacted> Bearer <redacted>",
    ],
)
def test_what_only_points_at_a_secret_stays_readable(text: str):
    assert secrets(text) == text


def test_the_separator_and_the_quotes_stay():
    text = 'a="1"; DB_PASSWORD  =  "hunter"; b'
    (found,) = find(text)
    assert (found.kind, text[found.start : found.end]) == ("assignment", "hunter")
    assert secrets(text) == 'a="1"; DB_PASSWORD  =  "<redacted>"; b'


def test_a_secret_is_masked_to_its_end_however_long():
    long = "a1,b2\\x" * 500 + "z9"
    assert secrets(f"TOKEN={long} after") == "TOKEN=<redacted> after"
    assert secrets(f'token: {long}\n"b"') == 'token: <redacted>\n"b"'
    assert secrets(f'{{"token": "{"a1" * 3000}"}}') == '{"token": "<redacted>"}'
