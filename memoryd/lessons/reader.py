"""Who reads lessons: the value that every function which yields one must be given.

In: what a socket grants. Out: the part of a WHERE clause that keeps everything else out of sight, so that a
lesson above the reader is not filtered out of an answer but never part of it.
"""

from fnmatch import fnmatchcase

import msgspec

from memoryd.labels import Label


class Reader(msgspec.Struct, frozen=True):
    """What one reader may see: levels up to `level`, untrusted lessons or not, projects that match a glob.

    `untrusted`: ``include``, ``owner-only`` or ``exclude``; a lesson is nobody's own words, so that the
    latter two come to the same. `owner`: the reader is the machine's owner.
    """

    level: int
    untrusted: str = "include"
    projects: tuple[str, ...] = ("*",)
    owner: bool = False

    @property
    def sees_untrusted(self) -> bool:
        """Say whether untrusted lessons are told at all."""
        return self.untrusted == "include"

    def covers(self, label: Label, project: str) -> bool:
        """Say whether a row of `label` and `project` is inside."""
        return (
            label.level <= self.level
            and (self.sees_untrusted or not label.untrusted)
            and ("*" in self.projects or any(fnmatchcase(project, glob) for glob in self.projects))
        )

    def where(self, table: str) -> str:
        """Return the condition on `table` for what is inside; there are no other ways to read a row."""
        parts = [f"{table}.level <= {int(self.level)}"]
        if not self.sees_untrusted:
            parts.append(f"{table}.untrusted = 0")
        if "*" not in self.projects:
            globs = ",".join("'" + glob.replace("'", "''") + "'" for glob in self.projects)
            named = f"SELECT p.value FROM json_each(json_array({globs})) p"
            parts.append(f"EXISTS ({named} WHERE {table}.project GLOB p.value)")
        return "(" + " AND ".join(parts) + ")"
