"""`python -m tieredctl`."""

from tieredctl.cli.main import main

main()
