"""What a name tells of its value: `api_key` holds a secret, `max_tokens` and `keyboard` hold none.

In: a name as code, JSON, a shell or an HTTP header writes it. Out: how much it tells (`Telling`). The
same answer serves argument keys and assignments in text, so that a secret is treated alike in both.
"""

from enum import IntEnum
from functools import lru_cache

from memoryd.patterns import later


class Telling(IntEnum):
    """How surely a value under a name is a secret; the more surely, the less its looks matter."""

    NOTHING = 0
    PERHAPS = 1  # `foo_key`, `credentials`: only a value that looks random
    TOKEN = 2  # `api_key`, `token`: any literal, but no short number or word
    PASSWORD = 3  # `password`, `secret`: any literal


_PART = later(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The last part says what the value is: something about the secret, not the secret itself.
_ABOUT = _words("""
    action algorithm args arn at attempts auth budget callback check checker checksum class config cost count digest dir
    enabled encoder endpoint env error errors event events exists expiration expires expiry factory field
    fields file filename fingerprint flow form format function generator group handler helper hint host id ids idx in
    index info input interface invalid jar kind label len length less limit limits list loader location
    manager map max message method min mode model module name names namespace number option options owner
    page param params parser path pattern per placeholder policy position prefix present props provider
    quota ref regex repository request required reset response result rotation router rule rules schema
    scheme screen scope selector server service set sha setting settings size source spec start state status stdin
    store strategy strength string suffix text title ttl type types uri url usage used user username valid
    validation validator value var variable verified version view window
""")
# What a key opens that is no lock. `key` alone (`{"key": "Enter"}`) tells nothing either.
_HARMLESS_KEYS = _words("""
    arrow attr attribute bucket cache candidate cell chunk code column composite config content context
    current data dedup dedupe default design dest dict document down entity entry enum error event feature field
    figma file first flag foreign free global group hash header hot html id idempotency index issue item
    jira job json keyboard keyframe keyword label lang language last layout locale lock lookup map menu
    merge message metadata meta metric modifier name natural navigation new next node node object obj
    offset old option order param parent partition path pk plan press prev previous primary project prop
    property pub public query queue range react record ref region registry release route routing row
    schema section sequence session setting settings short shortcut sort sorted space state storage store
    stream string style sub suffix tab table tag task text theme thread topic translation tree type
    unique up url value variable version view widget wildcard word
""")
_SECRET_KEYS = _words("""
    access account aes anthropic api auth aws consumer decryption encrypt encryption github hmac jwt licence
    license master openai private secret shared sign signing ssh stripe subscription wireguard
""")
_HARMLESS_TOKENS = _words("""
    bos cached cls completion continuation count css current design end eos first input last lexer look
    lookahead max min next num output pad padding page parse parser prev previous prompt reasoning sep
    special public start stop syntax thinking total unk unknown
""")
_PASS_OWNERS = _words("""
    admin auth basic database db email ftp http imap keystore ldap login mail mongo my mysql pg postgres
    proxy rabbit rabbitmq redis root sftp smtp ssh store sudo truststore user wifi
""")
_GLUED_TOKEN = later(r"(?:access|api|auth|bot|csrf|id|refresh|session|user|xsrf)tokens?\Z")
_GLUED_KEY = later(
    r"(?:access|account|api|auth|encryption|master|private|secret|signing|ssh)keys?\Z"
)
_PASSWORD = later(r"(?:.*(?:password|passwd|passphrase|secret|pwd)|passcode)\Z")
_WORKING_FOLDER = {"PWD", "OLDPWD", "pwd"}


@lru_cache(maxsize=8192)
def telling(name: str) -> Telling:
    """Return how surely a value under `name` is a secret; parts are split at case, `_`, `-`, `.`, space."""
    if name in _WORKING_FOLDER:
        return Telling.NOTHING
    parts = [part.lower() for part in _PART.findall(name)]
    if not parts or (parts[-1] in _ABOUT and not _is_bare_auth(parts)):
        return Telling.NOTHING
    if parts[-1] == "key" and "token" in parts:  # the name under which a token is kept
        return Telling.PERHAPS
    return max(_part_tells(part, parts) for part in parts)


def secret_key(name: str) -> bool:
    """Tell whether an argument of this name holds, or may hold, a secret."""
    return telling(name) is not Telling.NOTHING


def _is_bare_auth(parts: list[str]) -> bool:
    """`auth`, `_auth`, `x-auth`: the header or setting itself."""
    return parts[-1] == "auth" and len(parts) <= 2 and parts[0] in {"auth", "x", "http", "proxy"}


def _part_tells(part: str, parts: list[str]) -> Telling:
    others = {other for other in parts if other != part}
    if _PASSWORD.match(part):
        return Telling.PASSWORD
    if part in {"token", "bearer"} or _GLUED_TOKEN.match(part):
        return Telling.NOTHING if others & _HARMLESS_TOKENS else Telling.TOKEN
    if part in {"key", "keys"}:
        return _key_tells(part, others)
    if _GLUED_KEY.match(part) or part == "authorization":
        return Telling.TOKEN
    if part == "pass":
        return Telling.PASSWORD if others & _PASS_OWNERS else _alone(others)
    if part in {"auth", "cookie", "credential", "credentials", "passwords", "secrets"}:
        return Telling.PERHAPS
    return Telling.PERHAPS if part in {"sig", "signature"} else Telling.NOTHING


def _alone(others: set[str]) -> Telling:
    return Telling.NOTHING if others else Telling.PERHAPS


def _key_tells(part: str, others: set[str]) -> Telling:
    if others & _SECRET_KEYS:
        return Telling.TOKEN
    if part == "keys" or not others or others & _HARMLESS_KEYS:
        return Telling.NOTHING
    return Telling.PERHAPS
