"""What is shipped beside the program is what the program says of itself today."""

import shutil
import subprocess

import pytest

from etc.share import SHARE, files
from tests.support.samples import ROOT

MADE = dict(files())


@pytest.mark.parametrize("path", sorted(MADE))
def test_a_shipped_file_is_as_its_program_makes_it(path):
    assert (SHARE / path).read_text("utf-8") == MADE[path], "remedy: python etc/share.py"


def test_nothing_else_is_shipped():
    there = {str(path.relative_to(SHARE)) for path in SHARE.rglob("*") if path.is_file()}
    assert there == set(MADE)


@pytest.mark.parametrize("path", [path for path in sorted(MADE) if path.startswith("man/")])
def test_a_manual_page_holds_no_roff_that_its_reader_would_complain_of(path):
    if (groff := shutil.which("groff")) is None:
        pytest.skip("there is no groff")
    argv = [groff, "-man", "-ww", "-Tutf8", "-P-c", "-P-b", "-P-u", SHARE / path]
    told = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert "SYNOPSIS" in told.stdout


def test_every_command_stands_in_the_manual():
    manual = MADE["man/man1/bxctl.1"]
    for line in ("bxctl status", "bxctl memory search", "bxctl memory notes list"):
        assert f"\\fB{line}\\fR" in manual
    assert ROOT.joinpath("etc/share/man/man1/bxctl.1").is_file()
