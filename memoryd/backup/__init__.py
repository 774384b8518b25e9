"""A copy of what only memoryd has, and an empty state folder filled from one again.

In: a state folder, live or not. Out: a folder with `home/`, the configuration and `manifest.json`, which names
every file with its hash; or, from such a folder, the state as it was. What can be derived (`index/`) is not
copied, sockets and locks neither.
"""

from memoryd.backup.manifest import Manifest
from memoryd.backup.restoring import restore
from memoryd.backup.taking import take

__all__ = ["Manifest", "restore", "take"]
