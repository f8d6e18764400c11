"""Sentences that say whether the paper's claim held, computed from the data."""

from __future__ import annotations

from collections.abc import Sequence

from spam_gnn.experiments.paper import published
from spam_gnn.experiments.paper.comparison import OURS, Comparison
from spam_gnn.experiments.paper.plan import title
from spam_gnn.experiments.store import Record


def best_accuracy_verdict(records: Sequence[Record], columns: Sequence[str]) -> str:
    """Of tables in which the paper claims the best accuracy: how often SpaM is first there and here."""
    made = Comparison(records, tuple(columns))
    claimed = [data for data in made.ranked if published.paper_figure(OURS, data) is not None]
    if not claimed or OURS not in made.models:
        return f"{made.progress}No dataset of the paper's table has a split yet that every system has been run on."
    there = [data for data in claimed if _first_in_the_paper(data)]
    here = [data for data in claimed if data in made.first_places]
    above = [data for data in claimed if (made.cell(OURS, data).mean or 0.0) > _paper_mean(data)]
    held = "holds" if there and set(there) <= set(here) else "holds in part" if here else "does not hold"
    return (
        f"{made.progress}The paper's claim of the best accuracy {held} here: SpaM is first on {len(here)} of "
        f"{len(claimed)} of its datasets ({', '.join(here) or 'none'}), in the paper's table on {len(there)} of them; its mean "
        f"rank is {made.mean_rank(OURS):.1f} among {len(made.models)} systems over {len(made.ranked)} datasets, and it is "
        f"above the paper's own figure for SpaM on {len(above)} of {len(claimed)}."
    )


def large_verdict(records: Sequence[Record], real: Sequence[str], claimed: Sequence[str]) -> str:
    """The paper's claim where its graphs are here; else SpaM beside the strongest system that has as many splits of a graph."""
    made, parts = Comparison(records, tuple(real)), list[str]()
    if set(claimed) & set(made.datasets):
        return best_accuracy_verdict(records, claimed)
    for data in made.datasets:
        ours, gaps = made.cell(OURS, data), made.against(data)
        means = {model: made.cell(model, data).mean for model, (pair, _) in gaps.items() if pair.pairs == len(ours.values)}
        known = {model: mean for model, mean in means.items() if mean is not None}
        if ours.mean is None or not known:
            continue
        best = max(known, key=lambda model: known[model])
        pair = gaps[best][0]
        gap = f"{pair.difference:+.1f}" + ("" if pair.error is None else f" ± {pair.error:.1f}")
        parts.append(f"{data}, splits: {pair.pairs}, SpaM {ours.mean:.1f}, {title(best)} {known[best]:.1f} ({gap})")
    beside = "; ".join(parts) or "no run yet"
    return f"{made.progress}None of the paper's large graphs is here, so its claim is not tested. Those that are: {beside}."


def _paper_mean(dataset: str) -> float:
    figure = published.paper_figure(OURS, dataset)
    assert figure is not None
    return figure.mean


def _first_in_the_paper(dataset: str) -> bool:
    others = [f.mean for f in published.figures(dataset) if f.from_the_paper and f.system != OURS]
    return _paper_mean(dataset) >= max(others, default=0.0)


def attacked_verdict(records: Sequence[Record], columns: Sequence[str]) -> str:
    """Of the attacked graphs: SpaM against the other systems here and against the best published defence."""
    made = Comparison(records, tuple(columns))
    if OURS not in made.models or not made.datasets:
        return "SpaM has not been measured on the attacked graphs yet."
    parts, above, first, compared = [], 0, 0, 0
    for data in made.datasets:
        mean, keys = made.cell(OURS, data).mean, made.shared_splits(data)
        ours = made.cell(OURS, data).mean_on(keys)
        found = [made.cell(model, data).mean_on(keys) for model in made.models if model != OURS]
        others = [value for value in found if value is not None]
        compared += bool(others) and ours is not None
        first += ours is not None and bool(others) and ours >= max(others)
        best = max(published.figures(data), key=lambda f: f.mean, default=None)
        if mean is None or best is None:
            continue
        above += mean >= best.mean
        parts.append(f"{mean:.1f} against {best.mean:.1f} of {best.system} at rate {data.partition(':')[2]}")
    return (
        f"{made.progress}On the published attacks SpaM has the highest mean of the systems measured here, on the seeds that "
        f"all of them have, at {first} of {compared} rates, and reaches the best published figure at {above} of {len(parts)}: "
        f"{', '.join(parts)}."
    )
