"""The invented sessions of `examples/`, and the words that stand only where none may be found."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SESSIONS = ROOT / "examples" / "sessions"
LOGS = sorted(SESSIONS.rglob("*.jsonl"))
PUDDINGS = (
    "butterscotch", "eclair", "gingerbread", "marmalade", "marzipan", "meringue", "nougat",
    "plumduff", "profiterole", "sorbet", "strudel", "trifle", "zabaglione",
)  # fmt: skip
