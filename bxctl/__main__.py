"""`python -m bxctl`: the same as the command `bxctl`."""

from bxctl.main import main

main()
