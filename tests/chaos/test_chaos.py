"""A short run of chaos in the gate, a longer one among the slow tests; and that it catches what it must."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.index import catch_up
from tests.chaos import oracle, points
from tests.chaos.ground import Ground, Violation, seeded
from tests.support.indexing import dumped

ROOT = Path(__file__).parents[2]


def chaos(*arguments: str) -> str:
    """Run the program as `make chaos` does, and return what it printed; it must have found nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_short_run_with_a_fixed_seed_finds_nothing():
    said = chaos("--seed", "17", "--small")
    counts = re.findall(r"chaos: (\w+): 1 rounds, (\d+) ", said)
    assert [name for name, _ in counts] == [
        "faults",
        "points",
        "kills",
        "machine",
        "fuzz",
        "limits",
    ]
    assert all(int(number) > 0 for _, number in counts), said


@pytest.mark.slow
def test_a_minute_with_a_random_seed_finds_nothing():
    assert "0 violations" in chaos("--seconds", "60")


def test_every_named_point_is_known_and_none_is_named_twice_over():
    names = points.named()
    assert {"catch-up: rows added", "swap: renamed", "notes: intent written"} <= set(names)
    assert len(names) == len(set(names)) > 30


def test_one_seed_gives_the_same_bytes_and_another_gives_others(tmp_path):
    def made(name, seed):
        ground = Ground(tmp_path / name, seeded(seed, "x", 0))
        ground.change(60)
        return [data for field in ground.fields for data in field.logs().values()]

    for name in "abc":
        (tmp_path / name).mkdir()
    assert made("a", 1) == made("b", 1) != made("c", 2)


def test_the_oracle_tells_objects_apart_as_they_were_written():
    whole = b'{"a":1}'
    cases = {
        whole + b"\n": [{"a": 1}],
        whole: [{"a": 1}],
        whole + whole + b"\n": [{"a": 1}, {"a": 1}],
        b'{"a":1' + whole + b"\n": [None],
        whole + b'{"a":': [{"a": 1}],
        b"\0\0" + whole + b"\n": [{"a": 1}],
        b"\0\0\n": [None],
        b"\n  \r\n": [],
        b"5\n[1]\n": [None, None],
        b'{"a":"\xff"}\n': [None],
        '{"a":"x\u2028y"}\n'.encode(): [{"a": "x\u2028y"}],
    }
    assert {data: list(oracle.objects(data)) for data in cases} == cases


@pytest.mark.parametrize(
    "wrong", ["a row less", "a row more", "another label", "a canary", "a mode", "a label fell"]
)
def test_a_violation_is_seen(tmp_path, wrong):
    ground = Ground(tmp_path, seeded(3, "x", 1), vanished="drop")
    ground.change(40)
    with ground.world.index() as index:
        catch_up(index)
        lines = dumped(index)
    ground.compare(lines)
    ground.private()
    with pytest.raises(Violation):
        match wrong:
            case "a row less":
                ground.compare(lines[1:])
            case "a row more":
                ground.compare([*lines, lines[-1]])
            case "another label":
                ground.compare([lines[0].replace(b'"public"', b'"internal"'), *lines[1:]])
            case "a canary":
                (ground.state / "x").write_bytes(b"..canarywren..")
                (ground.state / "x").chmod(0o600)
                ground.private()
            case "a mode":
                (ground.state / "x").write_bytes(b"")
                (ground.state / "x").chmod(0o640)
                ground.private()
            case _:
                for field in ground.fields:
                    field.peaks = dict.fromkeys(field.logs(), (4, True))
                ground.compare(lines)
