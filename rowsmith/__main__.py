"""`python -m rowsmith` is the command."""

from rowsmith.cli import main

main()
