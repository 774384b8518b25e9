"""From an error's text to the code that names it and the hint that experience has for it.

In: text of a failed call. Out: `Found(code, hint)`, first rule that matches, or nothing. The table reads top to
bottom: specific compilers before general runtimes, runtimes before the shell.
"""

import re
from functools import cache

import msgspec


class Found(msgspec.Struct, frozen=True):
    """A code such as ``TS2304`` or ``ENOENT``, and one sentence of what usually mends it."""

    code: str
    hint: str


class Rule(msgspec.Struct, frozen=True):
    """A pattern with one group (or a fixed `code`), its family, and hints by code; "" is the family's own.

    `needles`: words of which a text that the pattern matches holds at least one; looking for them costs a
    hundredth of the pattern. In lower case.
    """

    family: str
    pattern: str
    hints: dict[str, str]
    code: str = ""
    needles: tuple[str, ...] = ()


def _rule(
    family: str, pattern: str, hints: dict[str, str] | str, *, code: str = "", needles: str
) -> Rule:
    table = {"": hints} if isinstance(hints, str) else hints
    return Rule(family, pattern, table, code, tuple(needles.lower().split("|")))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when its needle is met first: all of them cost a daemon's start 30 ms."""
    return re.compile(pattern, re.MULTILINE)


_PYTHON = (
    "NameError|AttributeError|TypeError|ValueError|KeyError|IndexError|AssertionError|RecursionError"
    "|ZeroDivisionError|UnicodeDecodeError|UnicodeEncodeError|FileNotFoundError|PermissionError"
    "|NotImplementedError|RuntimeError|StopIteration|OverflowError"
)

RULES: tuple[Rule, ...] = (
    _rule("edit", r"File has not been read yet", "read the file first, then edit it", code="EDIT_NOT_READ",
          needles="File has not been read yet"),
    _rule("edit", r"File has been modified since", "read the file again, then edit it", code="EDIT_CHANGED",
          needles="File has been modified since"),
    _rule("edit", r"String to replace not found", "read the file again and copy the text exactly",
          code="EDIT_NO_MATCH", needles="String to replace not found"),
    _rule("edit", r"^apply_patch verification failed: Failed to find (?:expected lines|context)",
          "read the file again and copy the lines exactly", code="EDIT_NO_MATCH",
          needles="apply_patch verification failed"),
    _rule("edit", r"matches of the string to replace", "give more of the text around it, or replace all",
          code="EDIT_MANY_MATCHES", needles="matches of the string to replace"),
    _rule("edit", r"^Your proposed edit has introduced new syntax error",
          "the edit would break the file: mend what the linter names in it, then edit again",
          code="EDIT_BREAKS_SYNTAX", needles="Your proposed edit has introduced"),
    _rule("file", r"^(?:File|Path) does not exist", "list the folder and correct the path", code="NO_SUCH_PATH",
          needles="does not exist"),
    _rule("shell", r"\$'\\r': command not found|\bbash\\r\b",
          "the script has Windows line ends: take the carriage returns out", code="SHELL_CRLF", needles="\\r"),
    _rule(
        "typescript",
        r"\b(TS\d{4,5})\b",
        {
            "TS2304": "the name is not declared here: import it or correct its spelling",
            "TS2552": "the name is not declared here; the compiler suggests a similar one",
            "TS2322": "the value's type does not fit the declared one: change one of the two",
            "TS2345": "the argument's type does not fit the parameter's",
            "TS2339": "the member does not exist on that type: check its name and the type",
            "TS2305": "the module does not export that name: check its exports",
            "TS2307": "the module is not found: install it, declare it or correct the path",
            "TS2739": "properties are missing from the value",
            "TS2740": "properties are missing from the value",
            "TS2741": "a property is missing from the value",
            "TS18047": "the value may be null: check it first",
            "TS18048": "the value may be undefined: check it first",
            "TS18004": "there is no such name in scope for the short form: declare it",
            "TS2353": "the type has no such property: take it out or add it to the type",
            "TS2531": "the value may be null: check it first",
            "TS2532": "the value may be undefined: check it first",
            "TS6133": "the name is never used: use it or remove it",
            "TS7006": "the parameter has no type: annotate it",
            "TS1005": "a token is missing: mend the syntax just before that place",
            "": "look the code up and mend the type error at that place",
        },
        needles="TS",
    ),
    _rule(
        "rust",
        r"\berror\[(E\d{4})\]",
        {
            "E0433": "the path does not resolve: add the `use` or the dependency",
            "E0432": "the import does not resolve: check the crate's features and the path",
            "E0425": "the name is not in scope: import or declare it",
            "E0382": "the value was moved: borrow it or clone it before",
            "E0308": "the types do not match: convert one of the two",
            "E0277": "a trait bound is not met: implement the trait or change the type",
            "E0599": "no such method on that type: bring the trait into scope",
            "E0502": "it is borrowed already: end the first borrow earlier",
            "E0499": "it is borrowed mutably twice: end the first borrow earlier",
            "": "run `rustc --explain` for the code and mend that place",
        },
        needles="error[E",
    ),
    _rule("rust", r"^error: could not compile `?([\w-]+)",
          "mend the compiler errors above it", code="CARGO_COMPILE", needles="could not compile"),
    _rule("cargo", r"\b(?:no matching package named|failed to select a version for)",
          "correct the dependency's name or version in Cargo.toml", code="CARGO_DEPENDENCY",
          needles="no matching package named|failed to select a version for"),
    _rule("go", r"^\S+\.go:\d+:\d+: undefined: ",
          "declare the name or import its package", code="GO_UNDEFINED", needles=": undefined: "),
    _rule("go", r"\bno required module provides package\b",
          "run `go get` for that package", code="GO_MODULE", needles="no required module provides package"),
    _rule("go", r"\"[^\"]+\" imported and not used",
          "remove the import or use it", code="GO_UNUSED_IMPORT", needles="imported and not used"),
    _rule("go", r"\bdeclared and not used\b", "use the variable or remove it", code="GO_UNUSED",
          needles="declared and not used"),
    _rule("go", r"^panic: ",
          "the Go program panicked: read the first frame of its own code", code="GO_PANIC", needles="panic: "),
    _rule("go test", r"^--- FAIL: ",
          "run that test alone with `go test -run` and read its output", code="GO_TEST", needles="--- FAIL: "),
    _rule("linker", r"\bundefined reference to\b",
          "link the library that defines it, after the object that uses it", code="LD_UNDEFINED",
          needles="undefined reference to"),
    _rule("linker", r"\bcannot find -l\S+",
          "install the library's development package", code="LD_LIBRARY", needles="cannot find -l"),
    _rule("c", r"\bfatal error: \S+\.h(?:pp)?: No such file",
          "install the header's package or add its include path", code="C_HEADER", needles="fatal error: "),
    _rule("c", r"^\S+\.(?:c|cc|cpp|cxx|h|hpp):\d+:\d+: (?:fatal )?error: ",
          "mend the first error; later ones often follow from it", code="C_COMPILE", needles="error: "),
    _rule("crash", r"\bSegmentation fault\b",
          "a pointer went wrong: run it under a debugger or a sanitizer", code="SIGSEGV",
          needles="Segmentation fault"),
    _rule("python", r"\b(ModuleNotFoundError|ImportError)\b", {
        "ModuleNotFoundError": "install the module in this environment, or run from the right folder",
        "ImportError": "the module has no such name: check its version and circular imports", "": ""},
          needles="ModuleNotFoundError|ImportError"),
    _rule("python", r"^(?:E\s+)?(?:[\w.]+\.)?(SyntaxError|IndentationError|TabError)\b",
          "mend the syntax at the line shown, or just before it", needles="SyntaxError|IndentationError|TabError"),
    _rule("pytest", r"^(?:FAILED|ERROR) \S+\.py(?:::\S+)?",
          "run that test alone with `pytest -x` and read its first assertion", code="PYTEST",
          needles="FAILED |ERROR "),
    _rule("pytest", r"\b\d+ failed\b.*\bin \d",
          "run the failing tests alone with `pytest --lf -x`", code="PYTEST", needles=" failed"),
    _rule("python", rf"^(?:E\s+)?(?:[\w.]+\.)?({_PYTHON})\b(?::|$)", {
        "NameError": "the name is not defined there: import or spell it right",
        "AttributeError": "the object has no such attribute: check its type",
        "TypeError": "the call or operation does not fit the types: check the signature",
        "KeyError": "the key is not there: check the mapping's keys",
        "IndexError": "the sequence is shorter than that",
        "AssertionError": "an assumption does not hold: compare both sides",
        "FileNotFoundError": "the file is not there: check the path and the working folder",
        "PermissionError": "access is refused: check owner and mode",
        "": "read the last frame of the traceback"}, needles="Error|StopIteration"),
    _rule("ruff", r"^\S+\.py:\d+:\d+: ([A-Z]{1,4}\d{3,4}) ",
          "the linter names the rule: mend that line or run its --fix", needles=".py:"),
    _rule("mypy", r"^\S+\.py:\d+: error: .*\[([a-z-]+)\]$", "mend the type error at that line", needles=": error: "),
    _rule("golangci-lint", r"^\S+\.go:\d+(?::\d+)?: .*\(([a-z][a-z0-9]+)\)$", {
        "dupl": "two stretches are alike: make one function of what they share",
        "maintidx": "the function is too long and too branched: split it",
        "funlen": "the function is too long: split it",
        "gocyclo": "the function has too many branches: split it",
        "cyclop": "the function has too many branches: split it",
        "gocognit": "the function is too hard to follow: split it",
        "errcheck": "an error is dropped: handle it, or say that it does not matter",
        "ineffassign": "the value is never used: use it or leave the assignment out",
        "unused": "it is never used: use it or remove it",
        "typecheck": "the package does not compile: mend the first error that the compiler names",
        "": "the linter names the rule in brackets: mend that line"}, needles=".go:"),
    _rule("eslint", r"^\s+\d+:\d+\s+error\s+.*\s([@\w/-]+)$",
          "the linter names the rule: mend that line or run its --fix", needles="error"),
    _rule("jest", r"^(?:FAIL\s+\S+\.[jt]sx?|\s*● .+ › )",
          "run that test file alone and read the first difference", code="JEST", needles="FAIL|● "),
    _rule("vitest", r"^\s*(?:❯|×|FAIL)\s+\S+\.(?:test|spec)\.[jt]sx?",
          "run that test file alone and read the first difference", code="VITEST", needles=".test.|.spec."),
    _rule("node", r"\b(ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|ERR_REQUIRE_ESM)\b|Cannot find module",
          {
        "ERR_REQUIRE_ESM": "the package is an ES module: import it instead of requiring it",
        "": "install the module, or correct its path"}, code="MODULE_NOT_FOUND",
          needles="MODULE_NOT_FOUND|ERR_REQUIRE_ESM|Cannot find module"),
    _rule("npm", r"npm (?:ERR!|error) code (E[A-Z0-9]+)", {
        "ERESOLVE": "two dependencies want different versions: align them",
        "E404": "no such package or version in the registry",
        "ENOENT": "there is no package.json here: run it in the package's folder",
        "EINTEGRITY": "the lock file does not fit what was fetched: renew it",
        "": "read npm's message for that code"}, needles="code E"),
    _rule("npm", r"npm (?:ERR!|error) Missing script: ",
          "add the script to package.json or call one that it has", code="NPM_SCRIPT", needles="Missing script: "),
    _rule("pip", r"^ERROR: (?:Could not find a version|No matching distribution)",
          "correct the package's name or version for this Python", code="PIP_NOT_FOUND", needles="ERROR: "),
    _rule("pip", r"\bexternally-managed-environment\b",
          "make a virtual environment and install there", code="PIP_EXTERNALLY_MANAGED",
          needles="externally-managed-environment"),
    _rule("pip", r"\bResolutionImpossible\b",
          "two requirements conflict: loosen one of them", code="PIP_CONFLICT", needles="ResolutionImpossible"),
    _rule("apt", r"^E: Unable to locate package ",
          "run `apt-get update`, then check the package's name", code="APT_NOT_FOUND",
          needles="E: Unable to locate package "),
    _rule("apt", r"^E: Could not (?:get lock|open lock file)",
          "another package manager runs, or root is needed", code="APT_LOCK", needles="E: Could not "),
    _rule("git", r"^CONFLICT \(|^Automatic merge failed",
          "resolve the conflicts, add the files, go on", code="GIT_CONFLICT",
          needles="CONFLICT (|Automatic merge failed"),
    _rule("git", r"\bnot a git repository\b",
          "run it inside the repository", code="GIT_NO_REPOSITORY", needles="not a git repository"),
    _rule("git", r"^fatal: (?:pathspec|ambiguous argument|bad revision)|^error: pathspec ",
          "check the name of the branch, revision or file", code="GIT_NO_SUCH", needles="fatal: |error: pathspec "),
    _rule("git", r"\b(?:rejected\] .*(?:non-fast-forward|fetch first)|failed to push some refs)",
          "fetch and rebase first, then push", code="GIT_REJECTED", needles="rejected]|failed to push some refs"),
    _rule("git", r"local changes to the following files would be overwritten",
          "commit or stash them first", code="GIT_DIRTY",
          needles="local changes to the following files would be overwritten"),
    _rule("git", r"\ba (?:branch|tag) named '[^']+' already exists",
          "switch to it, or choose another name", code="GIT_EXISTS", needles="already exists"),
    _rule("make", r"^make(?:\[\d+\])?: \*\*\* No rule to make target",
          "check the target's name and the prerequisite's path", code="MAKE_NO_RULE",
          needles="No rule to make target"),
    _rule("shell", r"^(?:[\w/.-]+: )*(?:line \d+: |\d+: )?([\w./+-]+): (?:command )?not found$",
          "install the command or correct its name", code="COMMAND_NOT_FOUND", needles="not found"),
    _rule("shell", r"^[\w/.-]+: command not found: ([\w./+-]+)$",
          "install the command or correct its name", code="COMMAND_NOT_FOUND", needles="command not found: "),
    _rule("shell", r"The term '([^']+)' is not recognized",
          "install the command or correct its name", code="COMMAND_NOT_FOUND", needles="The term '"),
    _rule("shell", r"\b(?:unrecognized|unrecognised|unknown|invalid|illegal) option\b",
          "the command has no such option: read its help", code="UNKNOWN_OPTION", needles=" option"),
    _rule("shell", r"\b(?:[Uu]nknown|[Ii]nvalid|[Nn]o such) (?:sub)?command\b|\bis not a \w+ command\b",
          "the program has no such command: read its help", code="UNKNOWN_COMMAND", needles=" command|subcommand"),
    _rule("port", r"\b(EADDRINUSE)\b|[Aa]ddress already in use",
          "free the port or choose another", code="EADDRINUSE", needles="EADDRINUSE|ddress already in use"),
    _rule("network", r"\b(ECONNREFUSED)\b|[Cc]onnection refused",
          "nothing listens there: start the service or check the port", code="ECONNREFUSED",
          needles="ECONNREFUSED|onnection refused"),
    _rule("network", r"\b(ENOTFOUND|EAI_AGAIN)\b|Could not resolve host|Temporary failure in name resolution",
          "the host's name does not resolve: check it and the network", code="ENOTFOUND",
          needles="ENOTFOUND|EAI_AGAIN|Could not resolve host|Temporary failure in name resolution"),
    _rule("network", r"\bInvoke-(?:WebRequest|RestMethod) : \(?[45]\d\d\b"
          r"|The requested URL returned error: [45]\d\d\b",
          "the server refuses that address: check it, and what it asks for", code="HTTP_STATUS",
          needles="Invoke-WebRequest : |Invoke-RestMethod : |requested URL returned error"),
    _rule("timeout", r"\b(ETIMEDOUT)\b|\b(?:[Cc]ommand|[Oo]peration|[Cc]onnection|[Rr]equest) timed out\b"
          r"|\bTimeoutExpired\b|^EXECUTION TIMED OUT$",
          "it took too long: give it more time or less to do; else look for a loop, a prompt, a slow network",
          code="ETIMEDOUT", needles="ETIMEDOUT|timed out|TimeoutExpired"),
    _rule("network", r"\b(?:SSL: CERTIFICATE_VERIFY_FAILED|certificate verify failed)\b",
          "the certificate is not trusted here: check the clock and the CA bundle", code="CERTIFICATE",
          needles="certificate verify failed|CERTIFICATE_VERIFY_FAILED"),
    _rule("disk", r"\b(ENOSPC)\b|No space left on device", "free some space", code="ENOSPC",
          needles="ENOSPC|No space left on device"),
    _rule("permission", r"\b(EACCES|EPERM)\b|[Pp]ermission denied|Operation not permitted",
          "check owner, mode and whether it needs another user", code="EACCES",
          needles="EACCES|EPERM|ermission denied|Operation not permitted"),
    _rule("file", r"\b(ENOENT)\b|No such file or directory|cannot find the (?:file|path)",
          "check the path and the working folder", code="ENOENT",
          needles="ENOENT|No such file or directory|cannot find the "),
    _rule("file", r"\b(EISDIR|ENOTDIR|EEXIST)\b", "check what lies at that path", needles="EISDIR|ENOTDIR|EEXIST"),
    _rule("javascript", r"\b(ReferenceError|RangeError|URIError): ",
          "read the first frame of its own code", needles="ReferenceError|RangeError|URIError"),
    _rule("json", r"\b(JSONDecodeError)\b|Unexpected token .* in JSON",
          "the text is no JSON there: print what is parsed", code="JSON",
          needles="JSONDecodeError|Unexpected token "),
)  # fmt: skip


NEEDLES = frozenset(needle for rule in RULES for needle in rule.needles)


def dispatch(text: str, held: frozenset[str] | None = None) -> Found | None:
    """Return the code and hint of the first rule that matches `text`, or None.

    `held`: those of `NEEDLES` that stand in `text`, in whatever case, where that is known.
    """
    if held is None:
        folded = text.lower()
        held = frozenset(needle for needle in NEEDLES if needle in folded)
    for rule in RULES:
        if held.isdisjoint(rule.needles):
            continue
        if match := _compiled(rule.pattern).search(text):
            named = next((group for group in match.groups() if group), "")
            code = rule.code if rule.code and not _is_code(named) else named
            hint = rule.hints.get(code) or rule.hints.get("", "")
            if rule.code == "COMMAND_NOT_FOUND" and named:
                return Found(named, hint)
            return Found(code, hint)
    return None


def _is_code(named: str) -> bool:
    return bool(re.fullmatch(r"E[A-Z0-9_]{3,}|[A-Z]+_[A-Z_]+", named))
