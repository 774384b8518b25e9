"""A daemon that answers from a table, so that commands can be run without one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bxctl.main import run
from memoryd import client
from memoryd.errors import MemorydError, UnknownMethod

Answer = dict[str, Any] | MemorydError | Callable[..., dict[str, Any]]


class Daemon:
    """What the commands see of a daemon: its answers by method, and what it was asked."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        classes = ["public", "internal", "private", "secret"]
        self.server = {"classes": classes, "clearance": "secret", "versions": {"memoryd": "0.1.0"}}
        self.answers, self.asked = answers, []
        self.where: str | Path | None = None

    def call(self, method: str, /, **args: Any) -> dict[str, Any]:
        self.asked.append((method, args))
        answer = self.answers.get(method, UnknownMethod("no such method"))
        if isinstance(answer, MemorydError):
            raise answer
        return answer(**args) if callable(answer) else answer

    pages = client.Client.pages

    def close(self) -> None:
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Daemon:
    """A daemon that answers nothing until it is told how."""
    made = Daemon({})

    def connect(where="memoryd", **_):
        made.where = where
        if isinstance(made.answers.get("connect"), MemorydError):
            raise made.answers["connect"]
        return made

    monkeypatch.setattr(client, "connect", connect)
    return made


class Ran:
    """What a command did: exit code, standard output, standard error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def bxctl(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run a command in this process, as a pipe would see it."""

    def ran(*argv: str, **env: str) -> Ran:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        code = run(argv, os.environ)
        told = capfd.readouterr()
        return Ran(code, told.out, told.err)

    return ran
