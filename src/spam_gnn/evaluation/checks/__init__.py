"""The checks of `check_node_classifier`, one file per kind; `battery.py` runs them."""
