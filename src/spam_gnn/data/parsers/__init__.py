"""From verified raw files to a `RawGraph`, one file per family of formats."""
