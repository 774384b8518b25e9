"""`bxctl memory lessons`: recordings in, rows out; imports under the lock."""

import json
from pathlib import Path

import apsw
import pytest

from bxctl.main import run
from memoryd import migrations, state
from memoryd.lessons import store

FIXTURES = Path(__file__).parents[2] / "replay" / "fixtures"
OKF = "---\nid: x\ntype: rule\n---\n\nrun the linter first\n"


@pytest.fixture
def env(user_home: Path) -> dict[str, str]:
    return {"HOME": str(user_home), "MEMORYD_HOME": str(user_home / "state"), "PATH": ""}


def lessons(*words: str, env: dict[str, str]) -> int:
    return run(["memory", "lessons", *words], env)


def test_replay_prints_a_row_a_recording(env, capsys):
    assert lessons("replay", str(FIXTURES), env=env) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()] == ["recording", "mended", "prevented"]


def test_replay_prints_json_and_twice_the_same(env, capsys):
    told = []
    for _ in range(2):
        assert lessons("replay", "--json", str(FIXTURES / "mended.json"), env=env) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert json.loads(told[0])["precision_rate"] == 1.0


@pytest.mark.parametrize("content", ["", "[]", '{"events": [{"kind": "x"}]}', "nonsense"])
def test_what_is_no_recording_is_refused_in_one_line(env, tmp_path, capsys, content):
    path = tmp_path / "x.json"
    path.write_text(content, "utf-8")
    assert lessons("replay", str(path), env=env) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_folder_without_recordings_and_a_missing_file_exit_with_1(env, tmp_path):
    assert lessons("replay", str(tmp_path), env=env) == 1
    assert lessons("replay", str(tmp_path / "none.json"), env=env) == 1


def test_a_bundle_is_taken_over_once(env, tmp_path, capsys):
    bundle = tmp_path / "team.okf"
    bundle.write_text(OKF, "utf-8")
    words = ("import", "--json", "--class", "internal", "--trusted", str(bundle))
    assert lessons(*words, env=env) == 0
    assert json.loads(capsys.readouterr().out)["imported"] == 1
    assert lessons(*words, env=env) == 0
    assert json.loads(capsys.readouterr().out)["imported"] == 0
    held = apsw.Connection(str(Path(env["MEMORYD_HOME"]) / store.NAME))
    assert list(held.execute("SELECT level, untrusted FROM lesson")) == [(1, 0)]


def test_another_memorys_database_is_taken_over_once_and_only_read(env, tmp_path, capsys):
    path = tmp_path / "kevin.db"
    old = apsw.Connection(str(path))
    old.execute("CREATE TABLE schema_version(version TEXT PRIMARY KEY, applied_at TEXT)")
    for step in migrations.steps("lessons")[:6]:
        old.execute(step.sql)
        old.execute("INSERT INTO schema_version VALUES (?, 'now')", (f"{step.number:03}",))
    old.execute("INSERT INTO memories(id, type, content) VALUES ('m', 'rule', 'keep it short')")
    old.execute(
        "INSERT INTO kevin_injections(id, memory_id, fingerprint, session_id, hook, tokens) "
        "VALUES ('i', 'm', 'f', 's', 'pre_prompt', 3)"
    )
    old.close()
    before = path.read_bytes()
    assert lessons("import", "--json", "--kevin", str(path), env=env) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["lessons"], first["injections"]) == (1, 1)
    assert lessons("import", "--json", "--kevin", str(path), env=env) == 0
    second = json.loads(capsys.readouterr().out)
    assert (second["lessons"], second["injections"]) == (0, 0)
    assert path.read_bytes() == before
    held = apsw.Connection(str(Path(env["MEMORYD_HOME"]) / store.NAME))
    assert list(held.execute("SELECT id, level, untrusted, words > 0 FROM lesson")) == [
        ("m", 3, 1, 1)
    ]


def test_a_class_that_is_not_configured_is_refused(env, tmp_path):
    bundle = tmp_path / "team.okf"
    bundle.write_text(OKF, "utf-8")
    assert lessons("import", "--class", "cosmic", str(bundle), env=env) == 2


def test_an_import_waits_for_nobody_while_memoryd_runs(env, tmp_path):
    bundle = tmp_path / "team.okf"
    bundle.write_text(OKF, "utf-8")
    home = state.private_folder(Path(env["MEMORYD_HOME"]))
    with state.held(home):
        assert lessons("import", str(bundle), env=env) == 75
    assert lessons("import", str(tmp_path / "none.okf"), env=env) == 78
