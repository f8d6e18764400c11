"""What each command of `spam-gnn` does once its options are parsed."""
