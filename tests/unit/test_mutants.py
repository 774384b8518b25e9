"""The faults that mutation testing makes: each changes one thing, and runs."""

import types

from etc import mutants

SOURCE = '''
LIMIT = 3


class Scale:
    def weigh(self, kilos: int = 2) -> str:
        """Say how heavy it is."""
        if kilos > 10 and not self.odd:
            return "heavy"
        if kilos < 0:
            raise ValueError(f"{kilos}")
        return "light"
'''


def made():
    return list(mutants.mutants(SOURCE, "scale.py"))


def test_every_operator_constant_and_statement_of_a_function_is_changed_once():
    assert [mutant.title.removeprefix("Scale.weigh: ") for mutant in made()] == [
        "if kilos > 10 and (not self.odd): return 'heavy' → if not (kilos > 10 and (not self.odd)): return 'heavy'",
        "kilos > 10 and (not self.odd) → kilos > 10 or not self.odd",
        "kilos > 10 → kilos >= 10",
        "10 → 11",
        "not self.odd → self.odd",
        "return 'heavy' → return None",
        "'heavy' → 'heavyX'",
        "if kilos < 0: raise ValueError(f'{kilos}') → if not kilos < 0: raise ValueError(f'{kilos}')",
        "kilos < 0 → kilos <= 0",
        "0 → 1",
        "raise ValueError(f'{kilos}') → pass",
        "return 'light' → return None",
        "'light' → 'lightX'",
    ]


def test_a_mutant_knows_the_lines_of_its_statement_and_of_one_that_holds_others_the_head():
    lines = {
        mutant.title.removeprefix("Scale.weigh: "): (mutant.first, mutant.last)
        for mutant in mutants.mutants(SOURCE.replace("10 and not", "10 and \\\n not"), "scale.py")
    }
    assert lines["kilos > 10 → kilos >= 10"] == lines["not self.odd → self.odd"] == (8, 9)
    assert lines["return 'heavy' → return None"] == lines["'heavy' → 'heavyX'"] == (10, 10)
    assert lines["kilos < 0 → kilos <= 0"] == (11, 11)
    assert lines["raise ValueError(f'{kilos}') → pass"] == (12, 12)


def test_a_mutant_s_code_runs_in_the_place_of_the_function_s_own():
    scale = {}
    exec(compile(SOURCE, "scale.py", "exec"), scale)
    weigh = scale["Scale"].weigh
    standing = types.SimpleNamespace(odd=False)
    assert weigh(standing, 10) == "light"
    (off_by_one,) = [mutant for mutant in made() if mutant.after == "kilos >= 10"]
    weigh.__code__ = off_by_one.code
    assert weigh(standing, 10) == "heavy"
    assert weigh(standing) == "light"  # the default argument is what it was
