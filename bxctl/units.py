"""memoryd as a systemd user service: the text of its two units. Pure.

In: the program, where state and configuration lie. Out: `memoryd.service` and `memoryd.socket`. Each line that
takes something away from the service takes what the daemon has no use for (docs/operations.md says which and why).
"""

import hashlib
from typing import NamedTuple

SERVICE, SOCKET = "memoryd.service", "memoryd.socket"
USUAL_RUN = "%t/memoryd"
_MARK = "# memoryd unit "
# The folder outlives the service: the manager's own socket stands in it.
_RUNTIME = "RuntimeDirectory=memoryd\nRuntimeDirectoryMode=0700\nRuntimeDirectoryPreserve=yes\n"
_SERVICE = """\
# A user's memoryd. `bxctl install systemd` writes this file and its socket; change it by a drop-in:
#   systemctl --user edit memoryd
[Unit]
Description=memoryd, the memory of the agents on this machine
Documentation=man:memoryd(1)
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
{variables}ExecStart={program}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
# Another memoryd that runs already (75), or a configuration that cannot be used (78), does not mend itself.
RestartPreventExitStatus=75 78
TimeoutStartSec=30
TimeoutStopSec=10
WatchdogSec=60

# A guest on the machine of somebody who works.
Nice=5
IOSchedulingClass=best-effort
IOSchedulingPriority=6
UMask=0077
LimitCORE=0

# It reads logs, writes its state folder, and speaks on Unix sockets; nothing else.
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={state}
{runtime}PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
PrivateNetwork=yes
RestrictAddressFamilies=AF_UNIX
IPAddressDeny=any
PrivateUsers=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectProc=invisible
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallFilter=@chown
SystemCallErrorNumber=EPERM

[Install]
WantedBy=default.target
"""


class Where(NamedTuple):
    """What a unit names, as a unit writes it: the program, state folder, folder of sockets, variables to set."""

    program: str = "%h/.local/bin/memoryd"
    state: str = "%h/.local/state/memoryd"
    run: str = USUAL_RUN
    variables: tuple[str, ...] = ()


def text(name: str, where: Where) -> str:
    """Return the unit `name`, with a mark on its first line by which it is known as ours and unchanged."""
    body = (_service if name == SERVICE else _socket)(where)
    return f"{_MARK}{_hash(body)}\n{body}"


def ours(found: str) -> bool:
    """Say whether `found` is a unit that was written here, by any version, and not changed since."""
    first, _, body = found.partition("\n")
    return first == f"{_MARK}{_hash(body)}"


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def _service(where: Where) -> str:
    runtime = _RUNTIME if where.run == USUAL_RUN else ""
    set_ = "".join(f'Environment="{each}"\n' for each in where.variables)
    return _SERVICE.format(
        program=where.program, state=where.state, runtime=runtime, variables=set_
    )


def _socket(where: Where) -> str:
    return f"""\
# The owner's socket of memoryd: it is there from the start of the session, and starts the daemon.
[Unit]
Description=memoryd, the owner's socket
Documentation=man:memoryd(1)

[Socket]
ListenStream={where.run}/memoryd.sock
SocketMode=0600
DirectoryMode=0700

[Install]
WantedBy=sockets.target
"""
