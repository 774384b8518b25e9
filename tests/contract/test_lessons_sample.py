"""The hand-checked sample of `docs/lessons-sample.md` is what the logs teach today, and its shares are its rows'."""

import re
from pathlib import Path

import pytest

from tests.support.sample import lessons_of

PAGE = (Path(__file__).parents[2] / "docs" / "lessons-sample.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d+ \|", line)
]
COLUMNS = {"a true failure?": 5, "of those with a fix: the right one?": 6, "a useful hint?": 7}


def test_sixty_lessons_and_more_have_a_verdict_each():
    assert [int(row[0]) for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(ROWS) >= 60
    assert all(cell for row in ROWS for cell in row)


@pytest.mark.parametrize("question", COLUMNS)
def test_the_shares_are_those_of_the_rows(question):
    line = next(one for one in PAGE.splitlines() if one.startswith(f"| {question}"))
    told = [cell.strip() for cell in line.strip("|").split("|")][1:]
    patterns = PAGE.index("## Patterns")
    for share, kind in zip(told, (False, True), strict=True):
        mine = [row for row in ROWS if (PAGE.index(f"| {row[0]} | `") > patterns) is kind]
        verdicts = [row[COLUMNS[question]] for row in mine if row[COLUMNS[question]] != "–"]
        yes = sum(one.startswith("yes") for one in verdicts)
        half = sum(one.startswith("half") for one in verdicts)
        assert share == f"{yes} of {len(verdicts)}" + (f", half {half}" if half else "")


def test_every_lesson_of_the_logs_is_in_the_sample_and_no_other(corpus, tmp_path):
    taught = lessons_of(corpus / "sessions", tmp_path)
    assert len(taught) == len(ROWS)
    for row, lesson in zip(ROWS, taught, strict=True):
        harness, end = row[1].strip("`").split("/…")
        assert (harness, row[2], row[4]) == (
            lesson.log.split("/")[0],
            str(lesson.record),
            lesson.code,
        )
        assert lesson.log.endswith(end)
        assert (row[6] != "–") is bool(lesson.fix)
