"""What the index must hold and where it lies: everything a reader of logs needs, as one value.

In: the checked configuration, the state folder and its key. Out: `Settings`, and the epoch: a name for all
that decides the content of rows. At another epoch nothing is served until the index is rebuilt.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memoryd import migrations, paths, redact
from memoryd.config import Config
from memoryd.errors import ConfigError
from memoryd.ids import Ids
from memoryd.labels import Classes
from memoryd.rules import Rules
from memoryd.sources import ADAPTERS, Root, discover

FILE = "memory.sqlite3"
FOLDER = "index"
DAY_MS = 86_400_000


class Settings(msgspec.Struct, frozen=True):
    """Where the state lies, what may be indexed of which folders, and under which rules.

    `max_level`: rows above this class are counted and not written. `keep_days` 0 is for ever. `config` and
    `env` are what these were made of, so that a rebuild in another process can make them again.
    """

    home: Path
    classes: Classes
    max_level: int
    rules: Rules
    key: bytes
    roots: tuple[Root, ...]
    vanished: str
    keep_days: int
    epoch: str
    config: Config
    env: dict[str, str]

    @property
    def path(self) -> Path:
        """Return where the index lies."""
        return self.home / FOLDER / FILE

    @property
    def ids(self) -> Ids:
        """Return the names of logs and records under this state's key."""
        return Ids(self.key)

    @property
    def pause(self) -> int:
        """Return after how many milliseconds without a record a session has come to rest."""
        return int(self.config.lessons.idle_after_s * 1_000)


def from_config(config: Config, home: Path, key: bytes, env: Mapping[str, str]) -> Settings:
    """Return the settings that a checked configuration means for the state at `home`.

    Raises: ConfigError.
    """
    classes = Classes(config.labels.classes)
    user = paths.user_home(env)
    rules = Rules(config, state=home, home=user)
    roots = tuple(discover.roots(config.source, state=home, home=user, env=env))
    for root in roots:
        _check_root(root.path, home)
    return Settings(
        home=home,
        classes=classes,
        max_level=classes.level(config.index.max_class),
        rules=rules,
        key=key,
        roots=roots,
        vanished=config.index.vanished,
        keep_days=config.index.keep_days,
        epoch=epoch(config, rules, roots),
        config=config,
        env=dict(env),
    )


def _check_root(folder: Path, home: Path) -> None:
    """Refuse to read what memoryd itself writes as somebody's logs. Raises: ConfigError.

    A folder around the state is no mistake: looking through it leaves the state out.
    """
    if folder.is_relative_to(home) and folder != home / "sessions":
        raise ConfigError(
            f"[[source]]: {folder} lies in memoryd's own folder, {home}",
            remedy="name a folder of logs outside it; its sessions/ are read in any case",
        )


def epoch(config: Config, rules: Rules, roots: tuple[Root, ...]) -> str:
    """Return the name of all that decides what rows say: 64 hexadecimal digits.

    Which folders are read is no part of it: their logs come and go one by one.
    """
    parts = {
        "adapters": {name: adapter.version for name, adapter in sorted(ADAPTERS.items())},
        "classes": config.labels.classes,
        "max_class": config.index.max_class,
        "redaction": redact.VERSION,
        "rules": rules.fingerprint,
        "schema": [step.sql for step in migrations.steps("index")],
        "starts": sorted((str(root.path), root.start or "") for root in roots if root.start),
    }
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()
