"""The command line of `memoryd`: what it prints, and refusals of one line without a traceback."""

import builtins
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd import config
from memoryd.__main__ import main


def configured(monkeypatch: pytest.MonkeyPatch, home: Path, text: str) -> Path:
    path = home / "memoryd.toml"
    path.write_text(text)
    path.chmod(0o600)
    monkeypatch.setenv("MEMORYD_CONFIG", str(path))
    return path


def test_version_and_help_need_no_configuration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMORYD_CONFIG", "/nowhere/memoryd.toml")
    for option, word in (("--version", "memoryd 0."), ("--help", "bxctl status")):
        with pytest.raises(SystemExit) as ended:
            main([option])
        assert ended.value.code == 0
        assert word in capsys.readouterr().out


def test_every_setting_is_shown_with_its_origin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], user_home: Path
) -> None:
    text = '[index]\nmax_class = "internal"\n\n[[socket]]\nname = "a"\nclearance = "public"\ntools = []\n'
    path = configured(monkeypatch, user_home, text)
    assert main(["--check-config"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = {line.partition(" = ")[0]: line for line in lines}
    assert told["index.max_class"].endswith(f"# {path}:2")
    assert told["index.max_class"].startswith('index.max_class = "internal"')
    assert told["index.keep_days"].endswith("# default")
    assert told["socket[0].name"].endswith(f"# {path}:5")
    assert lines[0] == f"# configuration: {path}"
    assert lines[-1].startswith("# no [[source]]")


def test_without_a_file_the_defaults_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check-config"]) == 0
    assert "# configuration: built-in defaults" in capsys.readouterr().out


def test_whoever_has_seen_enough_of_the_settings_ends_nothing_badly(user_home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "memoryd", "--check-config"],
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["--check-config"], []], ids=["check", "start"])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('[index]\nmax_clas = "internal"\n', ":2: unknown key `index.max_clas`; did you mean"),
        ('[index]\nmax_class = "top"\n', ":2: `index.max_class`: no class 'top'"),
        ("[index]\nkeep_days = 'x'\n", ":2: `index.keep_days`: expected int, got str"),
        ("[index\n", "line 1"),
        ("[[labels.tool]]\nmatch = 'x'\nargs = '('\nclass = 'public'\n", "regular expression"),
    ],
)
def test_a_bad_file_is_one_line_that_names_place_and_remedy(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    user_home: Path,
    arguments: list[str],
    text: str,
    names: str,
) -> None:
    path = configured(monkeypatch, user_home, text)
    assert main(arguments) == 78
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith(f"memoryd: {path}")
    assert names in line
    assert not (user_home / "state").exists()


def test_a_socket_path_that_cannot_be_is_found_by_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], user_home: Path
) -> None:
    monkeypatch.setenv("MEMORYD_HOME", str(user_home / ("x" * 100)))
    assert main(["--check-config"]) == 78
    assert "107" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["memoryd.daemon", "trio"])
def test_an_import_that_fails_is_one_line_l17(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    real = builtins.__import__

    def broken(name: str, *rest: object, **more: object) -> object:
        if name == missing or (name == "memoryd" and "daemon" in (rest[2] or ())):
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", broken)
    assert main([]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"memoryd: {missing} cannot be imported; install memoryd again")


def test_cycles_are_sought_again_once_the_daemon_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[bool, bool]] = []
    frozen = gc.get_freeze_count()

    def run(*_: object) -> int:
        seen.append((gc.isenabled(), gc.get_freeze_count() > 0))
        return 0

    monkeypatch.setattr("memoryd.daemon.run", run)
    try:
        assert main([]) == 0
    finally:
        if not frozen:
            gc.unfreeze()
    assert seen == [(True, True)]


def test_a_fault_of_ours_at_the_start_is_one_line_without_its_words_l17(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(env: object) -> object:
        raise RuntimeError("the owner's words")

    monkeypatch.setattr(config, "load", broken)
    assert main(["--check-config"]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "memoryd: a fault of memoryd (RuntimeError); please report it"


def test_a_python_that_is_too_old_is_refused_by_the_package_l17() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["requires-python"] == ">=3.11"
    assert sys.version_info >= (3, 11)
