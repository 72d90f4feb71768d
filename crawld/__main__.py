"""`python -m crawld` is `crawld`."""

from crawld.cli.main import main

main()
