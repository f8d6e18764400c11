"""`python -m spam_gnn`, the same as the command `spam-gnn`."""

from spam_gnn.cli import main

main()
