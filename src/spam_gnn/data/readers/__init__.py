"""One file per format. A table format gives a `Table` (`table.py`); a whole-graph format gives a `GraphFile` (`formats.py`)."""
