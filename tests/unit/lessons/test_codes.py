"""Codes and hints of every tool that is named, and that looking for words first changes no answer."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.lessons import codes
from memoryd.lessons.codes import RULES, dispatch
from memoryd.lessons.failure import Outcome, describe

EXAMPLES = {
    "typescript": [("src/a.ts(3,5): error TS2304: Cannot find name 'foo'.", "TS2304"),
                   ("error TS2322: Type 'string' is not assignable", "TS2322"),
                   ("error TS9999: something new", "TS9999")],
    "python": [("Traceback (most recent call last):\n  File \"a.py\"\nModuleNotFoundError: No module named 'x'",
                "ModuleNotFoundError"),
               ("ImportError: cannot import name 'y' from 'x'", "ImportError"),
               ("  File \"a.py\", line 3\n    x = (\nSyntaxError: '(' was never closed", "SyntaxError"),
               ("KeyError: 'a'", "KeyError"), ("E   AssertionError: x", "AssertionError")],
    "rust": [("error[E0433]: failed to resolve: use of undeclared type", "E0433"),
             ("error[E0499]: cannot borrow", "E0499"), ("error: could not compile `shop` (lib)", "CARGO_COMPILE")],
    "cargo": [("error: no matching package named `serde_jsn` found", "CARGO_DEPENDENCY")],
    "go": [("./main.go:3:2: undefined: foo", "GO_UNDEFINED"), ('"os" imported and not used', "GO_UNUSED_IMPORT"),
           ("./x.go:1:1: declared and not used: y", "GO_UNUSED"),
           ("no required module provides package example.com/x", "GO_MODULE"),
           ("panic: runtime error: index out of range", "GO_PANIC")],
    "go test": [("--- FAIL: TestX (0.00s)", "GO_TEST")],
    "node": [("Error: Cannot find module './x'", "MODULE_NOT_FOUND"),
             ("Error [ERR_REQUIRE_ESM]: require() of ES Module", "ERR_REQUIRE_ESM")],
    "c": [("main.c:1:10: fatal error: zlib.h: No such file or directory", "C_HEADER"),
          ("main.c:3:5: error: expected ';'", "C_COMPILE")],
    "linker": [("main.o: undefined reference to `foo'", "LD_UNDEFINED"),
               ("/usr/bin/ld: cannot find -lz: No such file", "LD_LIBRARY")],
    "crash": [("Segmentation fault (core dumped)", "SIGSEGV")],
    "pytest": [("FAILED tests/a.py::test_x - assert 1 == 2", "PYTEST"),
               ("== 2 failed, 3 passed in 0.12s ==", "PYTEST")],
    "jest": [("FAIL src/a.test.ts", "JEST"), ("  ● sum › adds", "JEST")],
    "vitest": [("  ❯ src/a.spec.ts (2 tests | 1 failed)", "VITEST")],
    "ruff": [("a.py:1:8: F401 [*] `os` imported but unused", "F401")],
    "mypy": [("a.py:3: error: Incompatible types in assignment  [assignment]", "assignment")],
    "golangci-lint": [("cmd/a.go:90: 90-109 lines are duplicate of `cmd/a.go:111-130` (dupl)", "dupl"),
                      ("a_test.go:35:3: Error return value of `os.Chdir` is not checked (errcheck)", "errcheck"),
                      ("a.go:2:1: exported thing should have comment (revive)", "revive")],
    "eslint": [("  3:5  error  'x' is not defined  no-undef", "no-undef")],
    "npm": [("npm ERR! code ERESOLVE", "ERESOLVE"), ("npm error code E404", "E404"),
            ("npm error Missing script: biuld", "NPM_SCRIPT")],
    "pip": [("ERROR: No matching distribution found for x", "PIP_NOT_FOUND"),
            ("error: externally-managed-environment", "PIP_EXTERNALLY_MANAGED"),
            ("ERROR: ResolutionImpossible: for help visit", "PIP_CONFLICT")],
    "apt": [("E: Unable to locate package foo", "APT_NOT_FOUND"), ("E: Could not get lock /var/lib/dpkg", "APT_LOCK")],
    "git": [("fatal: not a git repository (or any parent)", "GIT_NO_REPOSITORY"),
            ("CONFLICT (content): Merge conflict in a", "GIT_CONFLICT"),
            ("error: pathspec 'x' did not match", "GIT_NO_SUCH"),
            ("fatal: a branch named 'x' already exists", "GIT_EXISTS"),
            ("error: failed to push some refs to 'o'", "GIT_REJECTED"),
            ("error: Your local changes to the following files would be overwritten by merge:", "GIT_DIRTY")],
    "make": [("make: *** No rule to make target 'x'.  Stop.", "MAKE_NO_RULE")],
    "shell": [("zsh: command not found: rg", "rg"), ("sh: 1: rg: not found", "rg"),
              ("bash: line 3: pixi: command not found", "pixi"),
              ("grep: unrecognized option '--script'", "UNKNOWN_OPTION"),
              ("Error: Invalid usage: Unknown command: shop enabl.", "UNKNOWN_COMMAND"),
              ("git: 'stauts' is not a git command. See 'git --help'.", "UNKNOWN_COMMAND"),
              ("The term 'gh' is not recognized as the name of a cmdlet", "gh"),
              ("setup.sh: line 2: $'\\r': command not found", "SHELL_CRLF")],
    "port": [("Error: listen EADDRINUSE: address already in use :::3000", "EADDRINUSE"),
             ("OSError: [Errno 98] Address already in use", "EADDRINUSE")],
    "network": [("connect ECONNREFUSED 127.0.0.1:5432", "ECONNREFUSED"),
                ("curl: (6) Could not resolve host: x", "ENOTFOUND"),
                ("Invoke-WebRequest : 404: Not Found", "HTTP_STATUS"),
                ("curl: (22) The requested URL returned error: 503", "HTTP_STATUS"),
                ("ssl.SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "CERTIFICATE")],
    "timeout": [("Command timed out after 2m 0.0s", "ETIMEDOUT"), ("connect ETIMEDOUT 10.0.0.1:443", "ETIMEDOUT"),
                ("EXECUTION TIMED OUT", "ETIMEDOUT")],
    "permission": [("bash: ./x: Permission denied", "EACCES"), ("EPERM: operation not permitted", "EPERM")],
    "disk": [("write: No space left on device", "ENOSPC")],
    "file": [("cat: x: No such file or directory", "ENOENT"), ("EISDIR: illegal operation on a directory", "EISDIR")],
    "javascript": [("ReferenceError: x is not defined", "ReferenceError")],
    "json": [("json.decoder.JSONDecodeError: Expecting value", "JSON")],
    "edit": [("File has not been read yet. Read it first", "EDIT_NOT_READ"),
             ("Found 3 matches of the string to replace", "EDIT_MANY_MATCHES"),
             ("String to replace not found in file.", "EDIT_NO_MATCH"),
             ("File has been modified since read", "EDIT_CHANGED"),
             ("apply_patch verification failed: Failed to find expected lines in a.md:", "EDIT_NO_MATCH"),
             ("Your proposed edit has introduced new syntax error(s).", "EDIT_BREAKS_SYNTAX")],
}  # fmt: skip
ALL = [(family, text, code) for family, told in EXAMPLES.items() for text, code in told]


def plainly(text):
    """The first rule whose pattern matches, without looking for words first."""
    return next((rule for rule in RULES if re.search(rule.pattern, text, re.MULTILINE)), None)


def test_there_are_examples_of_every_family():
    assert set(EXAMPLES) == {rule.family for rule in RULES}


@pytest.mark.parametrize(("family", "text", "code"), ALL)
def test_every_family_has_its_code_and_a_hint(family, text, code):
    found = dispatch(text)
    assert (found.code, bool(found.hint)) == (code, True)
    assert plainly(text).family == family


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.pattern[:40])
def test_what_a_rule_matches_holds_one_of_its_words(rule):
    held = [text for _, text, _ in ALL if re.search(rule.pattern, text, re.MULTILINE)]
    assert all(any(needle in text.lower() for needle in rule.needles) for text in held)
    assert rule.needles == tuple(needle.lower() for needle in rule.needles)


@given(
    st.lists(
        st.sampled_from([text for _, text, _ in ALL] + ["x", "0 errors", "all is well"]), max_size=4
    )
)
def test_looking_for_words_first_changes_no_answer(lines):
    text = "\n".join(lines)
    found, rule = dispatch(text), plainly(text)
    assert (found is None) is (rule is None)
    if found is not None:
        assert found.hint in rule.hints.values()
        assert describe("bash", Outcome(False), text).code == found.code


def test_no_hint_is_missing_where_a_rule_names_a_code():
    assert all(rule.hints.get("", "") or any(rule.hints.values()) for rule in codes.RULES)
