"""Are lessons found? `python -m bench.retrieval` (`make bench-lessons`): five arms on two corpora.

In: nothing; both corpora are made here, the same each time. Out: a table an arm: the share of relevant lessons among
the first five (P@5) and at the top (P@1), the share of the relevant ones that are there (R@5), and the mean
reciprocal rank (MRR); then whether ours beats plain bm25, said either way.

`public` follows the published rules of opencode-kevin's own corpus: 400 lessons of 20 topics, 5 templates and 8
fillers, 120 queries, xorshift32 with seed 1262835273, relevant is what names the topic in the same scope. Its
words are not published here, so they are ours, and the digest is another. `hard` is ours: paraphrases,
near-duplicates, stale lessons beside fresh ones, rows of other projects, tokens of code; each query has one
right answer. Plain bm25 is SQLite's FTS5 over the same texts, an OR of the query's words without stop words.
"""

import sys
from collections.abc import Callable, Sequence

import msgspec

from memoryd.lessons import gate, plan, rank, row, store, words
from memoryd.lessons.plan import Ask
from memoryd.lessons.reader import Reader

FIRST = 5
SEED = 1_262_835_273
NOW, DAY = 1_800_000_000_000, 86_400_000
OURS, THEIRS = "/w/app", "/w/other"
OWNER = Reader(7, "include", ("*",), owner=True)


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson of a corpus."""

    id: str
    text: str
    type: str = "rule"
    origin: str = "agent"
    scope: str = "project"
    project: str = OURS
    age: int = 0
    stale: bool = False


class Query(msgspec.Struct, frozen=True):
    """A question, which part of the corpus it is for, and the ids that answer it."""

    kind: str
    text: str
    scope: str
    relevant: frozenset[str]


class Corpus(msgspec.Struct, frozen=True):
    """Lessons, and what is asked about them."""

    memories: list[Memory]
    queries: list[Query]


class Xorshift:
    """xorshift32 (Marsaglia 2003): the same numbers on every machine."""

    def __init__(self, seed: int) -> None:
        """Start at `seed`, which is not 0."""
        self.state = seed & 0xFFFFFFFF

    def below(self, bound: int) -> int:
        """Return the next number, from 0 to `bound` - 1."""
        x = self.state
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        self.state = x
        return x % bound

    def of(self, things: Sequence[str]) -> str:
        """Return one of `things`."""
        return things[self.below(len(things))]


TOPICS = (
    "authentication caching database deployment encryption formatting graphql indexing kubernetes linting "
    "logging migration monitoring pagination permissions pipeline queueing routing scheduling validation"
).split()
TEMPLATES = (
    "When {topic} breaks, check {filler} first",
    "The {topic} step needs {filler} before the release",
    "Prefer {filler} over a rewrite for {topic}",
    "A failing {topic} job often means {filler} is missing",
    "Keep {topic} apart from {filler} in the pipeline",
)
FILLERS = (
    *("the lock file", "a fresh token", "the staging config", "the retry budget"),
    *("an integration test", "the feature flag", "the schema version", "a warm cache"),
)
ASKED = ("how do we handle {topic}", "{topic} is failing again", "what about {topic} and {filler}")


def public() -> Corpus:
    """Return the corpus by the published rules."""
    rng = Xorshift(SEED)
    types = ("pattern", "context", "decision", "rule", "solution")
    made: list[tuple[str, Memory]] = []
    for number in range(400):
        topic = rng.of(TOPICS)
        text = rng.of(TEMPLATES).format(topic=topic, filler=rng.of(FILLERS))
        scope = "project" if rng.below(3) else "session"
        kept = Memory(
            id=f"m{number + 1:04}", text=text, type=rng.of(types), scope=scope, age=rng.below(180)
        )
        made.append((topic, kept))
    queries: list[Query] = []
    for number in range(120):
        topic = TOPICS[number % len(TOPICS)]
        scope = "project" if number // len(TOPICS) % 2 else "session"
        text = rng.of(ASKED).format(topic=topic, filler=rng.of(FILLERS))
        right = frozenset(m.id for t, m in made if topic in m.text and m.scope == scope)
        queries.append(Query("public", text, scope, right))
    return Corpus([m for _, m in made], queries)


KINDS = (
    ("python -m app", "ModuleNotFoundError: No module named '{name}'",
     "importing {spaced} does not work, is it installed"),
    ("npm run build", "src/{path}.ts(3,5): error TS2304: Cannot find name '{name}'.",
     "the compiler says {spaced} was never declared"),
    ("node serve.js", "ENOENT: no such file or directory, open 'conf/{path}.toml'",
     "it does not find the configuration of {spaced} although I made it"),
    ("docker compose up", "Bind for {name} failed: port is already allocated",
     "something else listens where {spaced} should start"),
    ("make install", "cp: cannot create regular file '/opt/{path}/bin': Permission denied",
     "I am not allowed to write the folder of {spaced}"),
    ("make", "main.o: undefined reference to `{name}'", "linking breaks on the symbol {spaced}"),
    ("cargo test", "error[E0433]: failed to resolve: use of undeclared crate or module `{name}`",
     "rust does not know {spaced}"),
    ("curl api", "timed out after 30 s waiting for {name}", "{spaced} takes for ever and then gives up"),
    ("pytest -q", "FAILED tests/test_{path}.py::test_{name} - assert 2 == 3",
     "the check of {spaced} compares the wrong values"),
    ("git merge main", "CONFLICT (content): Merge conflict in src/{path}.py",
     "merging clashes in {spaced}"),
)  # fmt: skip
HEADS = (
    "invoice basket ledger voucher parcel tariff quota roster beacon cipher docket fabric".split()
)
TAILS = "total parser client worker index reader mapper guard".split()


def hard() -> Corpus:
    """Return our corpus: each query has one right answer, and much that looks like it."""
    rng = Xorshift(7)
    memories: list[Memory] = []
    queries: list[Query] = []
    names = [(head, tail) for head in HEADS for tail in TAILS]
    for number, (head, tail) in enumerate(names):
        command, said, asked = KINDS[number % len(KINDS)]
        name, spaced, path = f"{head}_{tail}", f"{head} {tail}", f"{head}/{tail}"
        text = _failing(command, said.format(name=name, path=path))
        age = rng.below(20)
        right = Memory(id=f"h{number:03}", text=text, type="error", origin="reflector", age=age)
        memories.append(right)
        kind = ("paraphrase", "near", "stale", "other", "code")[number % 7 % 5]
        memories += _beside(kind, right, rng)
        question = {
            "paraphrase": asked.format(spaced=spaced),
            "near": f"{command} fails for {spaced}",
            "stale": asked.format(spaced=spaced),
            "other": f"{command} fails for {spaced} again",
            "code": f"fix src/{path}.ts {name}",
        }[kind]
        queries.append(Query(kind, question, "project", frozenset({right.id})))
    return Corpus(memories, queries)


def _failing(command: str, said: str) -> str:
    return f"bash `{command}` fails with {said}\nSuggestion: look at that place first"


def _beside(kind: str, right: Memory, rng: Xorshift) -> list[Memory]:
    """Return what looks like `right` and is wrong."""
    twin = msgspec.structs.replace
    if kind == "near":
        more = (f"{rng.of(HEADS)} {rng.of(TAILS)}" for _ in range(3))
        return [
            twin(right, id=f"{right.id}n{n}", text=f"{right.text} (as in {one})")
            for n, one in enumerate(more)
        ]
    if kind == "stale":
        old = twin(
            right, id=f"{right.id}s", text=right.text.replace("look", "do not look"), stale=True
        )
        return [old, twin(right, id=f"{right.id}a", age=right.age + 120)]
    if kind == "other":
        return [twin(right, id=f"{right.id}o{n}", project=f"{THEIRS}{n}") for n in range(3)]
    return []


Arm = Callable[[Query], list[str]]


def arms(corpus: Corpus) -> dict[str, Arm]:
    """Return the five ways to answer."""
    rng = Xorshift(SEED + 1)
    newest = [m.id for m in sorted(corpus.memories, key=lambda m: (m.age, m.id))]
    every = [m.id for m in corpus.memories]
    return {
        "none": lambda _: [],
        "recent": lambda _: newest[:FIRST],
        "random": lambda _: [rng.of(every) for _ in range(FIRST)],
        "bm25": _bm25(corpus),
        "ours": _ours(corpus),
    }


def _bm25(corpus: Corpus) -> Arm:
    connection = store.memory()
    connection.execute("CREATE VIRTUAL TABLE plain USING fts5(text, scope UNINDEXED, id UNINDEXED)")
    connection.executemany(
        "INSERT INTO plain VALUES (?, ?, ?)", [(m.text, m.scope, m.id) for m in corpus.memories]
    )

    def ask(query: Query) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in words.telling(connection, query.text))
        found = connection.execute(
            "SELECT id FROM plain WHERE plain MATCH ? AND scope = ? ORDER BY bm25(plain), rowid LIMIT ?",
            (match, query.scope, FIRST),
        )
        return [str(name) for (name,) in found]

    return ask


def _ours(corpus: Corpus) -> Arm:
    connection = store.memory()
    for memory in corpus.memories:
        row.insert(connection, _lesson(memory))

    def ask(query: Query) -> list[str]:
        asked = Ask(query=query.text, session="s", project=OURS, now=NOW)
        here = plan.circumstances(connection, OWNER, asked)
        fits = rank.candidates(connection, OWNER, query.text, NOW, project=OURS)
        lessons = [one.lesson for one in fits if one.lesson.scope == query.scope]
        return [one.id for one, reason in gate.judge(lessons, here) if reason is None][:FIRST]

    return ask


def _lesson(memory: Memory) -> row.Lesson:
    at = NOW - memory.age * DAY
    return row.Lesson(
        id=memory.id,
        type=memory.type,
        content=memory.text,
        scope=memory.scope,
        project=memory.project,
        fingerprint=memory.id,
        origin=memory.origin,
        status="stale" if memory.stale else "active",
        level=0,
        untrusted=False,
        error_type="runtime",
        suggestion="look at that place first",
        created_at=at,
        updated_at=at,
    )


class Score(msgspec.Struct, frozen=True):
    """What an arm reached, over some queries."""

    p5: float
    p1: float
    r5: float
    mrr: float


def score(arm: Arm, queries: Sequence[Query]) -> Score:
    """Return the means over `queries`; one without a relevant lesson is left out."""
    asked = [query for query in queries if query.relevant]
    found = [(query, arm(query)) for query in asked]
    hits = [[name in query.relevant for name in names] for query, names in found]
    count = len(asked)
    return Score(
        sum(sum(hit) / FIRST for hit in hits) / count,
        sum(hit[0] for hit in hits if hit) / count,
        sum(sum(h) / len(q.relevant) for (q, _), h in zip(found, hits, strict=True)) / count,
        sum(1 / (1 + hit.index(True)) for hit in hits if any(hit)) / count,
    )


def table(name: str, corpus: Corpus) -> list[str]:
    """Return the lines of one corpus: a row an arm, then a row a kind of query for the two that search."""
    ways = arms(corpus)
    lines = [
        f"| {name}: {len(corpus.memories)} lessons, {len(corpus.queries)} queries | P@5 | P@1 | R@5 | MRR |"
    ]
    lines.append("|---|--:|--:|--:|--:|")
    scores = {arm: score(ask, corpus.queries) for arm, ask in ways.items()}
    lines += [_line(arm, made) for arm, made in scores.items()]
    kinds = list(dict.fromkeys(query.kind for query in corpus.queries))
    if len(kinds) > 1:
        for kind in kinds:
            some = [query for query in corpus.queries if query.kind == kind]
            lines += [_line(f"{kind}: {arm}", score(ways[arm], some)) for arm in ("bm25", "ours")]
    better = scores["ours"].mrr - scores["bm25"].mrr
    verdict = "beats" if better > 0.001 else "does not beat"
    return [*lines, "", f"On `{name}`, ours {verdict} plain bm25 (MRR {better:+.3f})."]


def _line(name: str, made: Score) -> str:
    return f"| {name} | {made.p5:.3f} | {made.p1:.3f} | {made.r5:.3f} | {made.mrr:.3f} |"


def main() -> int:
    """Print both tables."""
    for name, corpus in (("public", public()), ("hard", hard())):
        print("\n".join(table(name, corpus)), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
