"""`python -m bxctl`: the same as the command `bxctl`."""

from bxctl.entry import main

main()
