"""A small world in which sessions fail, mend and ask, on a lessons database in memory."""

from memoryd import db
from memoryd.labels import Label
from memoryd.lessons import ledger, settlement, store
from memoryd.lessons.failure import Outcome
from memoryd.lessons.fingerprint import of_call
from memoryd.lessons.observe import observe
from memoryd.lessons.pairing import Seen, summary
from memoryd.lessons.plan import Ask, Plan
from memoryd.lessons.reader import Reader

OWNER = Reader(3, "include", ("*",), owner=True)
LOW = Label(0, False)
TS2304 = "src/main.ts(3,5): error TS2304: Cannot find name 'foo'."
START = 1_769_936_400_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


class World:
    """Time moves by a second with every event; `label` is what the session has reached."""

    def __init__(self, connection=None):
        self.connection = store.memory() if connection is None else connection
        self.now = START
        self.n = 0

    def later(self, ms):
        self.now += ms
        return self

    def call(
        self, session, *, command="npm run build", tool="bash", ok=None, code=None, text="",
        label=LOW, project="/w/app", args=None, log=None, n=None,
    ):  # fmt: skip
        self.now += 1_000
        self.n += 1
        given = {"command": command} if args is None else args
        seen = Seen(
            log=log or session,
            n=self.n if n is None else n,
            block=0,
            session=session,
            project=project,
            tool=tool,
            summary=summary(tool, given),
            fingerprint=of_call(tool, given, project),
            at=self.now,
            outcome=Outcome(ok, code),
            text=text,
            label=label,
        )
        with db.transaction(self.connection):
            return observe(self.connection, seen)

    def fail(self, session, text=TS2304, **more):
        return self.call(session, ok=False, text=text, **more)

    def succeed(self, session, **more):
        return self.call(session, ok=True, **more)

    def edit(self, session, **more):
        return self.call(session, tool="edit", args={"filePath": "src/main.ts"}, ok=True, **more)

    def ask(self, session, query="the build fails again", **more):
        self.now += 1_000
        return Ask(
            query=query,
            session=session,
            project=more.pop("project", "/w/app"),
            now=self.now,
            **more,
        )

    def block(self, session, query="the build fails again", *, reader=OWNER, **more) -> Plan:
        return ledger.block(self.connection, reader, self.ask(session, query, **more))

    def idle(self, session, *, ended=False):
        self.now += 1_000
        settlement.idle(self.connection, session, self.now, ended=ended)

    def rates(self, reader=OWNER):
        return ledger.rates(self.connection, reader)

    def all(self, sql, *bound):
        return list(self.connection.execute(sql, bound))

    def one(self, column, where="type = 'error'"):
        return self.connection.execute(f"SELECT {column} FROM lesson WHERE {where}").get

    def dump(self):
        """Every row of every table, to see that nothing changed; calls as they are shown, however they lie."""
        tables = [
            name
            for (name,) in self.all(
                "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
            )
            if name not in ("failed", "well")
        ]
        return {name: self.all(f"SELECT * FROM {name}") for name in sorted(tables)}
