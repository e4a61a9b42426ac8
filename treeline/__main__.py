"""`python -m treeline`: the command line without an installed entry point."""

from treeline.cli import main

main()
