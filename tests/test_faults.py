"""Every row of the table of faults has a test that carries its id, or a reason why it cannot happen."""

import pytest

from etc import faults

SECTIONS = faults.sections()
PROOFS = faults.proofs()


@pytest.mark.parametrize("letter", list(SECTIONS))
def test_every_row_is_there_and_is_proved_or_excused_or_said_to_wait(letter):
    section = SECTIONS[letter]
    rows = list(section.rows)
    assert rows == [f"{letter.upper()}{n:02}" for n in range(1, faults.ROWS[letter] + 1)]
    unproved = [one for one in rows if one not in PROOFS and one not in section.excused]
    assert sorted(section.waits) == unproved, f"remedy: `waits` of etc/faults/{letter}.toml"


def test_the_table_has_179_rows_and_excuses_few_of_them_with_a_reason():
    assert sum(len(section.rows) for section in SECTIONS.values()) == 179
    excused = [one for section in SECTIONS.values() for one in section.excused]
    assert len(excused) <= faults.MOST_EXCUSED
    for section in SECTIONS.values():
        assert set(section.excused) <= set(section.rows)
        assert all(len(reason) > 20 for reason in section.excused.values())


def test_no_row_is_both_proved_and_excused_and_no_name_carries_an_id_without_row():
    rows = {one for section in SECTIONS.values() for one in section.rows}
    excused = {one for section in SECTIONS.values() for one in section.excused}
    assert set(PROOFS) <= rows
    assert not set(PROOFS) & excused


def test_a_name_tells_the_rows_it_proves_wherever_they_stand_in_it():
    assert faults.ids("test_t07_t09_bytes_that_are_no_text") == ["T07", "T09"]
    assert faults.ids("test_a_full_disk_s01_q06") == ["S01", "Q06"]
    assert faults.ids("test_case_17_rewinds_and_the_v2_of_utf8_and_s3") == []


def test_the_page_is_as_its_program_makes_it():
    assert faults.PAGE.read_text("utf-8") == faults.page(), "remedy: python etc/faults.py"
