"""Comparing norms on a cluster: what workers count and write is what is counted and written here."""

import numpy as np
import pytest

from comparison.compared_sides import evaluation_side, training_side
from evenscore import LabelledBlocks, compare
from evenscore.files import open_scores, write_table
from scale.chunked_examples import in_tiles

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def stored(part, folder):
    """Return labelled blocks in zarr stores of small chunks."""
    tables = {}
    for name in ("trials", "enroll", "test", "cohort"):
        write_table(in_tiles(getattr(part.blocks, name)), folder / f"{name}.zarr")
        tables[name] = open_scores(folder / f"{name}.zarr").in_tiles(2000.0)
    known = {name: table.with_axes(*axes(getattr(part.blocks, name))) for name, table in tables.items()}
    return LabelledBlocks(part.blocks.replace(**known), part.labels)


def axes(table):
    return table.enroll_axis, table.test_axis


def test_a_comparison_on_a_cluster(client, tmp_path):
    training, [part] = training_side(), evaluation_side()
    chunks = stored(part, tmp_path)
    methods = ["raw", "as:top_k=5", "lgsm:dim=1"]
    here, there = (
        compare(training, [chunks], methods, bootstrap=20, directory=tmp_path / name, client=client_or_none)
        for name, client_or_none in (("here", None), ("there", client))
    )
    whole = compare(training, [part], methods, bootstrap=20)
    for method in whole.methods:
        one, other = here[method.name], there[method.name]
        for name in ("cllr", "act_dcf"):
            assert other.figures.values[name] == pytest.approx(method.figures.values[name], rel=1e-9)
        for name, (low, high) in other.figures.values["bounds"].items():
            assert low - 1e-9 <= method.figures.values[name] <= high + 1e-9
        for name in ("eer", "min_dcf", "min_cllr", "cllr"):
            assert other.figures.values[name] == pytest.approx(one.figures.values[name], rel=1e-12)
        for metric, drawn in one.to_raw.items():
            assert other.to_raw[metric].interval.low == pytest.approx(drawn.interval.low)
        tables = [one.scores[0].in_memory(), other.scores[0].in_memory()]
        assert np.array_equal(tables[0].scores, tables[1].scores)
    assert here.cohorts == there.cohorts == whole.cohorts
