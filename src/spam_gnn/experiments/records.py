"""Compact records: one short JSON line per run, from which a study can be rendered without the store.

What many runs share (settings, versions, all of a spec but its split and seed, the names of metrics) stands on lines of its
own and is named by the runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spam_gnn.errors import BadInput
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import Record, RunStore
from spam_gnn.files import write_durably

_KEPT = ("reason", "test", "val", "test_calibrated", "temperature", "edges", "measures", "epochs", "best_epoch", "seconds",
         "seconds_per_epoch", "seconds_total", "cpu_seconds", "peak_memory_mb", "findings")  # fmt: skip
_IN_SPEC, _OF_ONE_RUN = ("settings", "train"), ("split", "seed")
_METRICS = ("test", "val", "test_calibrated")  # groups of numbers, written as values behind the name of their names
_NUMBERS = ("temperature", "epochs", "best_epoch", "seconds", "seconds_per_epoch", "seconds_total", "cpu_seconds",
            "peak_memory_mb")  # of the run itself, likewise  # fmt: skip


def planned_records(specs: Iterable[RunSpec], store: RunStore) -> list[Record]:
    """The record of every planned run; one that has not been made is there too, with status `missing`."""
    unique = dict.fromkeys(specs)
    return [store.read(spec) or {"status": "missing", "hash": spec.spec_hash, "spec": spec.to_json()} for spec in unique]


def compact(record: Record) -> Record:
    """What tables and figures need of a record, numbers to six digits; of a compact record, the same again."""
    made = record.get("made", {key: record[key] for key in ("code", "packages", "machine") if key in record})
    kept = {key: _rounded(record[key]) for key in _KEPT if record.get(key) not in (None, {}, "")}
    short = {"status": record["status"], "hash": record["hash"], "spec": record.get("spec", {}), "made": made, **kept}
    data = record.get("data_sha256", record.get("data"))
    return {**short, "data": data[:12]} if data else short


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, list) else value


def take_over(paths: Iterable[Path], store: RunStore) -> int:
    """Finished runs of record files join a store that lacks them, so that a fresh checkout continues where those ended.

    A record whose spec this version of the code would name otherwise (a setting was added) is passed over: it is not the
    run that would be made now.
    """
    taken = 0
    for path in paths:
        for record in read_records(path):
            spec = _spec_of(record) if record["status"] == "ok" else None
            if spec is None or store.read(spec) is not None:
                continue
            with store.claim(spec) as mine:  # another process may take over the same records
                if mine and store.read(spec) is None:
                    store.write(spec, record)
                    taken += 1
    return taken


def _spec_of(record: Record) -> RunSpec | None:
    try:
        spec = RunSpec.from_json(record["spec"])
    except (BadInput, KeyError, TypeError):
        return None
    return spec if spec.spec_hash == record["hash"] else None


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write compact records, shared parts first. A run is `at` [spec, split, seed, hash, what it was made with, data], `values`
    [names, numbers of the run and its metrics], and what else it has by name."""
    names: dict[str, str] = {}

    def named(value: Any) -> str:
        return names.setdefault(json.dumps(value, sort_keys=True), f"@{len(names)}")

    runs: list[Record] = []
    for record in records:
        run = json.loads(json.dumps(record))
        spec = {key: named(value) if key in _IN_SPEC else value for key, value in run.pop("spec").items()}
        own = [spec.pop(key, None) for key in _OF_ONE_RUN]
        place = [named(spec), *own, run.pop("hash"), named(run.pop("made")), run.pop("data", None)]
        metrics = {f"{group}.{key}": value for group in _METRICS for key, value in run.pop(group, {}).items()}
        numbers = {key: run.pop(key) for key in _NUMBERS if key in run} | metrics
        rest = {key: value for key, value in run.items() if (key, value) != ("status", "ok")}
        runs.append({"at": place, **rest, **({"values": [named(list(numbers)), *numbers.values()]} if numbers else {})})
    lines = [json.dumps({"name": name, "value": json.loads(text)}, separators=(",", ":")) for text, name in names.items()]
    lines += [json.dumps(run, separators=(",", ":"), allow_nan=False) for run in runs]
    write_durably(path, ("\n".join(lines) + "\n").encode())


def read_records(path: Path) -> list[Record]:
    """The inverse of :func:`write_records`."""
    shared: dict[str, Any] = {}
    records: list[Record] = []
    try:
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if "name" in entry:
                shared[entry["name"]] = entry["value"]
            else:
                records.append(_read(entry, shared))
    except FileNotFoundError:
        raise BadInput(f"{path}: not found; run `spam-gnn reproduce {path.stem}` first") from None
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); write it again with `spam-gnn reproduce {path.stem}`") from None
    return records


def _read(entry: dict[str, Any], shared: Mapping[str, Any]) -> Record:
    """A run as it was before it was written."""
    if "at" not in entry:
        return _read_earlier(entry, shared)
    same, split, seed, name, made, data = entry.pop("at")
    spec = {**shared[same], **{key: value for key, value in zip(_OF_ONE_RUN, (split, seed), strict=True) if value is not None}}
    spec |= {key: shared[spec[key]] for key in _IN_SPEC if key in spec}
    numbers: list[Any] = entry.pop("values", [""])
    found: Record = {"status": "ok", "hash": name, "spec": spec, "made": shared[made], **entry}
    for key, value in zip(shared.get(numbers[0], ()), numbers[1:], strict=True):
        group, _, metric = key.rpartition(".")
        (found.setdefault(group, {}) if group else found)[metric] = value
    return found if data is None else {**found, "data": data}


def _read_earlier(entry: dict[str, Any], shared: Mapping[str, Any]) -> Record:
    """The same from files of before runs were written as lists."""
    spec = {**shared[entry["spec"].pop("same")], **entry["spec"]}
    spec |= {key: shared[spec[key]] for key in _IN_SPEC if key in spec}
    listed = {key: entry[key] for key in (*_METRICS, "numbers") if isinstance(entry.get(key), list)}
    entry |= {key: dict(zip(shared[of], values, strict=True)) for key, (of, *values) in listed.items()}
    entry |= entry.pop("numbers", {})  # older files have them one by one
    return {**entry, "spec": spec, "made": shared[entry["made"]]}
