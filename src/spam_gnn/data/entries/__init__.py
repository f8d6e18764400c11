"""Every benchmark, one `DatasetSpec` each. To add one: write its spec (and a parser, if its format is new) in a file here."""

from __future__ import annotations

from spam_gnn.data.entries import attacked, geom_gcn, linkx, platonov
from spam_gnn.data.spec import DatasetSpec

SPECS: dict[str, DatasetSpec] = {spec.name: spec for spec in (*platonov.SPECS, *geom_gcn.SPECS, *linkx.SPECS, *attacked.SPECS)}
