"""What the configuration means for the daemon that runs, and a changed one taken over without an end of it.

In: the environment with the file it names. Out: `Standing`: settings, and sockets that listen already. A
configuration that cannot be used changes nothing: `refused` says why, the daemon goes on as it was.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog

from memoryd import config
from memoryd.errors import ConfigError
from memoryd.index import Settings, from_config
from memoryd.serve.listening import Listening, Sockets

log = structlog.get_logger()


class Standing(msgspec.Struct, frozen=True):
    """One configuration, ready to be served."""

    settings: Settings
    listens: list[Listening]


class Configuration:
    """The configuration of one state folder, as it stands and as it may be taken over."""

    def __init__(self, home: Path, key: bytes, env: Mapping[str, str], sockets: Sockets) -> None:
        self._home, self._key, self._env, self._sockets = home, key, env, sockets
        self._served = ""
        self.refused = ""

    def stand(self, loaded: config.Config) -> Standing:
        """Make ready what a configuration asks for. Raises: ConfigError, with everything as it was."""
        settings = from_config(loaded, self._home, self._key, self._env)
        standing = Standing(settings, self._sockets.stand(loaded.socket, settings.classes))
        self._served = config.fingerprint(loaded)
        return standing

    def again(self) -> Standing | None:
        """Read the configuration again; None where it says what it said, or cannot be used."""
        try:
            loaded = config.load(self._env).config
            if config.fingerprint(loaded) == self._served:
                self.refused = ""
                log.info("the configuration says what it said")
                return None
            standing = self.stand(loaded)
        except ConfigError as error:
            self.refused = error.message
            log.warning(
                "the configuration is not taken over", code=error.code, problem=error.message
            )
            return None
        self.refused = ""
        return standing
