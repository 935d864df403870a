"""AnnData: scanpy's own functions read our markers; models match genes by name; cells stay on disk."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from maxdisc import MaxDiscClassifier, load, save

if not os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
    pytest.importorskip("anndata", reason="needs anndata: python -m pip install '.[anndata]'")
    pytest.importorskip("scanpy", reason="needs scanpy, to read what is written for it")

import anndata
import pandas as pd

with warnings.catch_warnings():
    # What its imports warn of is not ours.
    warnings.simplefilter("ignore")
    import matplotlib
    import scanpy as sc

from maxdisc.adapters.anndata import annotate, fit, rank_genes
from maxdisc.adapters.anndata.expression import expression_of
from maxdisc.cli import main
from maxdisc.significance.markers import ClassSums, find_markers
from maxdisc.testing import batches_of

matplotlib.use("Agg")
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:scanpy"),
    pytest.mark.filterwarnings("ignore::FutureWarning:anndata"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]

KINDS = ["NK", "B", "T", "Mono"]
KEY = "rank_genes_groups"
FIELDS = ("names", "scores", "logfoldchanges", "pvals", "pvals_adj")
QUICK = {"smoothing": 1.0, "n_features": 20, "cv": "hash"}


def cells(n=160, d=40, seed=0, dense=False, kinds=KINDS, shift=0):
    """Logs of counts; genes 5 i to 5 i + 4 are those of kind i."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(kinds)
    own = np.arange(d) // 5 == (codes + shift)[:, None]
    X = np.log1p(rng.poisson(np.where(own, 4.0, 0.5))).astype(np.float32)
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical.from_codes(codes, kinds),
            "batch": pd.Categorical(np.where(np.arange(n) % 5, "one", "two")),
            "depth": rng.random(n),
        },
        index=[f"cell{i}" for i in range(n)],
    )
    var = pd.DataFrame(index=[f"gene{j}" for j in range(d)])
    adata = anndata.AnnData(X if dense else sp.csr_matrix(X), obs, var)
    adata.uns["log1p"] = {"base": None}
    adata.uns["cell_type_colors"] = ["#111111", "#222222", "#333333", "#444444"]
    return adata


@pytest.fixture
def small():
    """Chunks of a few cells."""
    with batches_of(800):
        yield


@pytest.fixture(scope="module")
def pbmc():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sc.datasets.pbmc68k_reduced()


def tables(adata, key=KEY):
    frame = sc.get.rank_genes_groups_df(adata, group=None, key=key)
    # With shares of cells beside them, groups are text.
    return frame.astype({"group": str}).set_index(["group", "names"]).sort_index()


# ---------------------------------------------------------------------- markers


def test_log_fold_changes_are_those_of_scanpys_t_test(pbmc):
    ours, theirs = pbmc.copy(), pbmc.copy()
    rank_genes(ours, "bulk_labels")
    sc.tl.rank_genes_groups(theirs, "bulk_labels", method="t-test")
    a, b = tables(ours), tables(theirs)
    assert (a.index == b.index).all()
    np.testing.assert_allclose(a["logfoldchanges"], b["logfoldchanges"], atol=1e-5)


@pytest.mark.parametrize("base", [None, 2.0, 10.0])
def test_log_fold_changes_have_the_base_of_the_logs(base):
    adata = cells()
    if base is not None:
        adata.X = adata.X / np.float32(np.log(base))
    adata.uns["log1p"] = {"base": base}
    theirs = adata.copy()
    rank_genes(adata, "cell_type", pts=True)
    sc.tl.rank_genes_groups(theirs, "cell_type", method="t-test", pts=True)
    a, b = tables(adata), tables(theirs)
    np.testing.assert_allclose(a["logfoldchanges"], b["logfoldchanges"], atol=1e-5)
    for share in ("pct_nz_group", "pct_nz_reference"):
        np.testing.assert_allclose(a[share], b[share], atol=1e-12)


def test_records_are_made_as_scanpy_makes_them():
    ours, theirs = cells(), cells()
    rank_genes(ours, "cell_type", n_genes=7)
    sc.tl.rank_genes_groups(theirs, "cell_type", method="t-test", n_genes=7)
    a, b = ours.uns[KEY], theirs.uns[KEY]
    for field in FIELDS:
        assert type(a[field]) is type(b[field])
        assert a[field].dtype == b[field].dtype
        assert a[field].shape == b[field].shape
    assert set(b["params"]) <= set(a["params"])
    assert all(a["params"][name] == b["params"][name] for name in b["params"] if name != "method")


def test_scores_fall_and_what_a_group_has_more_of_comes_first():
    adata = cells()
    rank_genes(adata, "cell_type")
    result = adata.uns[KEY]
    for i, kind in enumerate(KINDS):
        scores, changes = result["scores"][kind], result["logfoldchanges"][kind]
        assert (np.diff(scores) <= 0).all()
        assert set(result["names"][kind][:5]) == {f"gene{j}" for j in range(5 * i, 5 * i + 5)}
        assert (changes[scores > 0] > 0).all()
        assert (changes[scores < 0] < 0).all()
        assert (result["pvals_adj"][kind][:5] < 1e-6).all()
        assert (result["pvals"][kind][5:20] > 1e-6).any()


def test_scores_are_effects_and_not_numbers_of_cells():
    few, many = cells(160), cells(160)
    many = anndata.concat([many] * 8, index_unique="-")
    for adata in (few, many):
        rank_genes(adata, "cell_type", smoothing=0.0)
    a, b = tables(few), tables(many)
    np.testing.assert_allclose(a["scores"], b["scores"], rtol=1e-4, atol=1e-6)
    assert b["pvals"].min() < 1e-10 * a["pvals"].min()


def draw_all(adata):
    options = {"show": False, "n_genes": 3}
    sc.pl.rank_genes_groups(adata, **options)
    sc.pl.rank_genes_groups_violin(adata, groups=["CD19+ B"], n_genes=2, show=False, strip=False)
    for draw in (
        sc.pl.rank_genes_groups_dotplot,
        sc.pl.rank_genes_groups_matrixplot,
        sc.pl.rank_genes_groups_stacked_violin,
        sc.pl.rank_genes_groups_heatmap,
        sc.pl.rank_genes_groups_tracksplot,
    ):
        draw(adata, dendrogram=False, **options)
    sc.pl.rank_genes_groups_dotplot(
        adata, values_to_plot="logfoldchanges", min_logfoldchange=1, dendrogram=False, **options
    )


def test_what_scanpy_reads_and_draws(pbmc, tmp_path):
    adata = pbmc.copy()
    rank_genes(adata, "bulk_labels", pts=True)
    frame = sc.get.rank_genes_groups_df(adata, group="CD19+ B", log2fc_min=1.0, pval_cutoff=0.01)
    assert {"CD79A", "MS4A1"} <= set(frame["names"][:5])
    sc.tl.filter_rank_genes_groups(adata, min_fold_change=2.0)
    kept = adata.uns["rank_genes_groups_filtered"]["names"]["CD19+ B"]
    assert "CD79A" in set(kept)
    with warnings.catch_warnings():
        # What scanpy's plots say of matplotlib and pandas is between them.
        warnings.simplefilter("ignore")
        draw_all(adata)
    matplotlib.pyplot.close("all")
    del adata.uns["rank_genes_groups_filtered"]  # it has NaN among names, which files do not take
    adata.write_h5ad(tmp_path / "out.h5ad")
    back = anndata.read_h5ad(tmp_path / "out.h5ad")
    pd.testing.assert_frame_equal(tables(back), tables(adata))


@pytest.mark.parametrize("kind", ["csr", "dense", "csc"])
@pytest.mark.parametrize("where", ["X", "layer", "raw"])
@pytest.mark.usefixtures("small")
def test_backed_is_in_memory_bit_for_bit(tmp_path, kind, where):
    adata = cells(dense=kind == "dense")
    adata.X = sp.csc_matrix(adata.X) if kind == "csc" else adata.X
    given = {"layer": "logs"} if where == "layer" else {"use_raw": where == "raw"}
    adata.raw = adata
    adata.layers["logs"] = adata.X.copy()
    if where != "X":
        adata.X = adata.X * 0
    assert len(list(expression_of(adata, **given).chunks())) > 3
    rank_genes(adata, "cell_type", **given)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    model = fit(adata, "cell_type", MaxDiscClassifier(**QUICK), **given)
    annotate(adata, model, **given)
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    expected = backed.uns.pop(KEY)
    rank_genes(backed, "cell_type", **given)
    for field in FIELDS:
        assert (backed.uns[KEY][field] == expected[field]).all()
    again = fit(backed, "cell_type", MaxDiscClassifier(**QUICK), **given)
    np.testing.assert_array_equal(again.decision_.weights, model.decision_.weights)
    np.testing.assert_array_equal(again.decision_.baseline, model.decision_.baseline)
    annotate(backed, model, **given)
    pd.testing.assert_frame_equal(backed.obs, adata.obs)
    assert backed.isbacked
    backed.file.close()


def test_a_part_of_a_file_is_that_part(tmp_path):
    adata = cells()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    view = backed[10:90]
    model = fit(view, "cell_type", MaxDiscClassifier(**QUICK))
    part = fit(adata[10:90].copy(), "cell_type", MaxDiscClassifier(**QUICK))
    np.testing.assert_array_equal(model.decision_.weights, part.decision_.weights)
    for write in (lambda: rank_genes(view, "cell_type"), lambda: annotate(view, model)):
        with pytest.raises(ValueError, match=r"use its to_memory\(\) first"):
            write()
    with pytest.raises(ValueError, match="leave out copy=True"):
        rank_genes(backed, "cell_type", copy=True)
    backed.file.close()


@pytest.mark.usefixtures("small")
def test_a_matrix_on_disk_is_never_read_as_a_whole(tmp_path):
    cells().write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    expected, seen = expression_of(backed), []
    for some, X in expected.chunks():
        assert sp.issparse(X)
        seen.append(X.shape[0])
        assert X.shape[0] == some.stop - some.start
    assert sum(seen) == 160
    assert max(seen) < 80
    backed.file.close()


def test_sparse_is_dense():
    sparse, dense = cells(), cells(dense=True)
    for adata in (sparse, dense):
        rank_genes(adata, "cell_type")
    a, b = tables(sparse), tables(dense)
    for field in FIELDS[1:]:
        np.testing.assert_allclose(a[field], b[field], rtol=1e-5, atol=1e-12)


def test_cells_without_a_label_take_no_part():
    adata = cells()
    adata.obs.loc[adata.obs_names[::7], "cell_type"] = None
    labelled = adata[adata.obs["cell_type"].notna()].copy()
    for some in (adata, labelled):
        rank_genes(some, "cell_type")
    assert adata.uns[KEY]["params"]["n_unlabelled"] == 23
    a, b = tables(adata), tables(labelled)
    np.testing.assert_allclose(a["scores"], b["scores"], rtol=1e-6)
    model = fit(adata, "cell_type", MaxDiscClassifier(**QUICK))
    np.testing.assert_allclose(
        model.decision_.weights, fit(labelled, "cell_type", MaxDiscClassifier(**QUICK)).decision_.weights
    )


def test_nothing_else_is_touched():
    adata = cells()
    before = adata.copy()
    rank_genes(adata, "cell_type", key_added="markers")
    annotate(adata, fit(adata, "cell_type", MaxDiscClassifier(**QUICK)))
    assert list(adata.obs["cell_type"].cat.categories) == KINDS
    pd.testing.assert_frame_equal(adata.obs[before.obs.columns], before.obs)
    assert adata.uns["cell_type_colors"] == before.uns["cell_type_colors"]
    assert (adata.X != before.X).nnz == 0
    copied = rank_genes(before, "cell_type", copy=True)
    assert KEY in copied.uns
    assert KEY not in before.uns


def test_groups_masks_and_text_columns():
    adata = cells()
    adata.var["some"] = np.arange(40) < 10
    rank_genes(adata, "cell_type", groups=["T", "NK"], mask_var="some", n_genes=3)
    names = adata.uns[KEY]["names"]
    assert names.dtype.names == ("NK", "T")
    assert len(names) == 3
    assert {int(name[4:]) for name in names["NK"]} <= set(range(10))
    whole = find_markers(ClassSums.of(adata.X, adata.obs["cell_type"].cat.codes.to_numpy(), 4))
    best = adata.uns[KEY]["scores"]["NK"][0]
    assert best == pytest.approx(whole.scores[0, :10].max(), rel=1e-6)
    adata.obs["cell_type"] = adata.obs["cell_type"].astype(str)
    rank_genes(adata, "cell_type")
    assert adata.uns[KEY]["names"].dtype.names == ("B", "Mono", "NK", "T")


def test_counts_and_scaled_values_are_told_apart():
    adata = cells()
    adata.layers["counts"] = sp.csr_matrix(np.rint(np.expm1(adata.X.toarray())))
    adata.layers["scaled"] = (adata.X.toarray() - 1.0) / 2.0
    rank_genes(adata, "cell_type", layer="counts")
    counts = adata.layers["counts"].toarray()
    is_b = (adata.obs["cell_type"] == "B").to_numpy()
    expected = np.log2((counts[is_b].mean(0) + 1e-9) / (counts[~is_b].mean(0) + 1e-9))
    found = tables(adata).loc["B"].loc[adata.var_names, "logfoldchanges"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    rank_genes(adata, "cell_type", layer="scaled")
    assert adata.uns[KEY]["params"]["family"] == "gaussian_shared"
    assert tables(adata)["logfoldchanges"].isna().all()
    assert set(adata.uns[KEY]["names"]["B"][:5]) == {f"gene{j}" for j in range(5, 10)}


@pytest.mark.parametrize(
    ("change", "given", "message"),
    [
        (None, {"groupby": "cell_tpye"}, "obs has no column 'cell_tpye': did you mean 'cell_type'?"),
        (None, {"groupby": "depth"}, "column 'depth' of obs holds float64, not groups"),
        (None, {"layer": "count"}, "there is no layer 'count' (there are none)."),
        (None, {"use_raw": True}, "use_raw=True, but this AnnData has no raw"),
        (None, {"use_raw": True, "layer": "x"}, "give layer=... or use_raw=True, not both"),
        (None, {"groups": ["Tcell"]}, "'cell_type' has no group 'Tcell'"),
        (None, {"groups": "T"}, "groups must be 'all' or a list of groups, got 'T'"),
        (None, {"n_genes": 0}, "n_genes must be at least 1, got 0"),
        (None, {"family": "normal"}, "family must be 'auto' or one of"),
        (None, {"mask_var": [True]}, "mask_var must be 40 truth values"),
        (None, {"mask_var": "some"}, "var has no column 'some'"),
        ("lonely", {}, "group 'NK' of column 'cell_type' has 1 cell(s)"),
        ("one group", {}, "all cells with a label are 'B'"),
        ("no label", {}, "no cell has a label in column 'cell_type'"),
        ("twice", {}, "names of genes must be unique, and 1 are not, such as 'gene1'"),
        ("infinite", {}, "there is an infinite value among the cells"),
        ("words", {}, "an AnnData is needed, got DataFrame"),
    ],
)
def test_mistakes_of_a_ranking_are_told_in_one_line(change, given, message):
    adata = cells()
    kinds = adata.obs["cell_type"]
    if change == "lonely":
        adata = adata[(kinds != "NK") | (adata.obs_names == "cell0")].copy()
    elif change == "one group":
        adata = adata[kinds == "B"].copy()
    elif change == "no label":
        adata.obs["cell_type"] = pd.Categorical([None] * 160, KINDS)
    elif change == "twice":
        adata.var_names = ["gene1" if name == "gene0" else name for name in adata.var_names]
    elif change == "infinite":
        adata.X.data[3] = np.inf
    elif change == "words":
        adata = pd.DataFrame({"cell_type": ["B"]})
    arguments = {"groupby": "cell_type"} | given
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        rank_genes(adata, **arguments)
    assert "\n" not in str(caught.value)
    if change != "words":
        assert KEY not in adata.uns


# ---------------------------------------------------------------------- models


def test_the_model_of_cells_is_that_of_their_matrix():
    adata = cells()
    here = fit(adata, "cell_type", MaxDiscClassifier(**QUICK))
    there = MaxDiscClassifier(**QUICK).fit(adata.X, adata.obs["cell_type"].astype(str).to_numpy())
    np.testing.assert_allclose(here.decision_.weights, there.decision_.weights, rtol=1e-9)
    assert here.feature_names_in_.tolist() == adata.var_names.tolist()
    assert here.classes_.tolist() == sorted(KINDS)


@pytest.mark.parametrize("dense", [False, True])
def test_genes_are_matched_by_name_and_missing_ones_are_no_evidence(dense, tmp_path):
    adata, query = cells(dense=dense), cells(seed=1, dense=dense)
    model = fit(adata, "cell_type", MaxDiscClassifier(**QUICK))
    save(model, tmp_path / "cells.maxdisc")
    straight, turned = query.copy(), query[:, ::-1].copy()
    annotate(straight, model)
    annotate(turned, tmp_path / "cells.maxdisc")
    np.testing.assert_allclose(
        turned.obs["maxdisc_probability"], straight.obs["maxdisc_probability"], rtol=1e-6
    )
    assert (turned.obs["maxdisc"] == straight.obs["maxdisc"]).all()
    assert (straight.obs["maxdisc"].astype(str) == straight.obs["cell_type"].astype(str)).mean() > 0.9
    assert turned.uns["maxdisc"]["model"] == "cells.maxdisc"
    renamed = query.copy()
    renamed.var_names = ["other" if name in ("gene0", "gene6") else name for name in renamed.var_names]
    renamed.var_names = [
        f"{name}{i}" if name == "other" else name for i, name in enumerate(renamed.var_names)
    ]
    with pytest.warns(UserWarning, match="2 of the 20 features that the model uses are missing"):
        annotate(renamed, model)
    holes = query.X.copy() if dense else query.X.toarray()
    holes[:, [0, 6]] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        expected = model.predict_proba(holes).max(axis=1)
    np.testing.assert_allclose(renamed.obs["maxdisc_probability"], expected, rtol=1e-6)
    assert renamed.uns["maxdisc"]["n_kept_missing"] == 2
    assert set(renamed.uns["maxdisc"]["kept_missing"]) == {"gene0", "gene6"}
    renamed.write_h5ad(tmp_path / "out.h5ad")


def test_a_kind_of_cell_that_was_never_seen_is_unknown_more_often():
    model = fit(cells(800), "cell_type", MaxDiscClassifier(cv="hash"))
    known, strange = cells(400, seed=1), cells(400, seed=2, shift=3, kinds=["new1", "new2", "new3"])
    strange = strange[strange.obs["cell_type"] != "new1"].copy()
    for adata in (known, strange):
        annotate(adata, model, unknown=0.05, key_added="guess")
    shares = [(adata.obs["guess"] == "unknown").mean() for adata in (known, strange)]
    assert shares[0] < 0.1
    assert shares[1] > 0.5
    p = known.obs["guess_novelty"]
    assert ((p <= 0.05) == (known.obs["guess"] == "unknown")).all()
    annotate(known, model, unknown=None)
    assert list(known.obs["maxdisc"].cat.categories) == sorted(KINDS)
    assert "maxdisc_novelty" not in known.obs


def test_mistakes_of_an_annotation_are_told_in_one_line(tmp_path):
    adata = cells()
    model = fit(adata, "cell_type", MaxDiscClassifier(**QUICK))
    nameless = MaxDiscClassifier(**QUICK).fit(adata.X, adata.obs["cell_type"].astype(str).to_numpy())
    other = adata.copy()
    other.var_names = [f"ENSG{j}" for j in range(40)]
    raw = fit(adata, "cell_type", MaxDiscClassifier(**QUICK, evidence="raw"))
    (tmp_path / "no.maxdisc").write_bytes(b"nothing")
    for given, message in [
        ((other, model), "none of the 20 features that the model uses"),
        ((adata, nameless), "does not know its genes by name"),
        ((adata, raw), "novelty compares rows with held-out ones"),
        ((adata, tmp_path / "no.maxdisc"), "no.maxdisc"),
        ((adata, "model"), "No such file"),
        ((adata, object()), "a MaxDiscClassifier, or a pipeline that ends in one, is needed"),
    ]:
        with pytest.raises((ValueError, OSError), match=re.escape(message)):
            annotate(*given)
    with pytest.raises(ValueError, match="'B' is a class of the model"):
        annotate(adata, model, unknown_label="B")
    with pytest.raises(ValueError, match="between 0 and 1"):
        annotate(adata, model, unknown=1.5)
    with pytest.warns(UserWarning, match="no cell can be unknown"):
        annotate(adata, model, unknown=1e-4)
    with pytest.raises(ValueError, match="only one class, 'B'"):
        fit(adata[adata.obs["cell_type"] == "B"].copy(), "cell_type")
    with pytest.raises(ValueError, match="takes cv='hash' or a number of folds"):
        fit(adata, "cell_type", MaxDiscClassifier(cv="holdout"))


# ---------------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    train, test = cells(240), cells(100, seed=1)
    train.write_h5ad(folder / "train.h5ad")
    test[:, ::-1].copy().write_h5ad(folder / "test.h5ad")
    test[:, 3:].copy().write_h5ad(folder / "fewer.h5ad")
    cells(240, dense=True).write_h5ad(folder / "dense.h5ad")
    both = cells(240)
    both.raw = both
    both.layers["logs"] = both.X.copy()
    both.X = both.X.toarray() - 1.0
    both.write_h5ad(folder / "both.h5ad")
    assert (
        main(
            ["fit", str(folder / "train.h5ad"), "--label", "cell_type", "-q", "-o", str(folder / "a.maxdisc")]
        )
        == 0
    )
    return folder


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    return code, *capsys.readouterr()


def test_a_round_in_processes_of_their_own(folder):
    def process(*arguments):
        command = [sys.executable, "-m", "maxdisc", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)

    fitted = process("fit", "train.h5ad", "--label", "cell_type", "-o", "model.maxdisc")
    assert fitted.returncode == 0, fitted.stderr
    predicted = process("predict", "model.maxdisc", "test.h5ad", "-o", "out.csv", "--unknown", "0.01")
    assert predicted.returncode == 0, predicted.stderr
    assert "Traceback" not in fitted.stderr + predicted.stderr
    rows = list(csv.DictReader((folder / "out.csv").read_text().splitlines()))
    truth = anndata.read_h5ad(folder / "test.h5ad").obs
    assert [row["obs_names"] for row in rows] == truth.index.tolist()
    labels = np.array([row["label"] for row in rows])
    assert (labels == truth["cell_type"].astype(str)).mean() > 0.9
    # The same labels as in memory.
    adata = anndata.read_h5ad(folder / "test.h5ad")
    annotate(adata, folder / "model.maxdisc")
    assert (labels == adata.obs["maxdisc"].astype(str)).all()


def test_commands_know_genes_by_name(folder, capsys):
    model = folder / "a.maxdisc"
    assert load(model).feature_names_in_.tolist() == [f"gene{j}" for j in range(40)]
    code, out, err = run(capsys, "evaluate", model, folder / "test.h5ad", "--json")
    assert (code, err) == (0, "")
    assert '"rows": 100' in out
    code, out, err = run(capsys, "evaluate", model, folder / "fewer.h5ad")
    assert code == 0
    assert "3 of the " in err
    assert "are missing, and are no evidence: gene0, gene1, gene2" in err
    code, out, _ = run(capsys, "rank", model, "-n", "5")
    assert code == 0
    assert "gene" in out
    code, out, _ = run(capsys, "explain", model, "--data", folder / "test.h5ad", "--row", "7", "-n", "3")
    assert code == 0
    assert "gene" in out
    code, _, err = run(capsys, "report", model, "--data", folder / "test.h5ad", "-o", folder / "report.html")
    assert code == 0, err
    assert "gene1" in (folder / "report.html").read_text()
    code, out, _ = run(capsys, "predict", model, folder / "test.h5ad", "--keep", "batch,obs_names")
    assert out.splitlines()[0].startswith("batch,obs_names,label")


def test_streamed_it_is_the_model_of_the_adapter(folder, capsys):
    out = folder / "streamed.maxdisc"
    with batches_of(100):
        code, *said = run(
            capsys, "fit", folder / "train.h5ad", "--label", "cell_type", "--stream", "-q", "-o", out
        )
    assert code == 0, said
    there = fit(anndata.read_h5ad(folder / "train.h5ad", backed="r"), "cell_type")
    here = load(out)
    np.testing.assert_allclose(here.decision_.weights, there.decision_.weights, rtol=1e-9)
    assert here.feature_names_in_.tolist() == there.feature_names_in_.tolist()


@pytest.mark.parametrize(
    ("layer", "family"), [(None, "poisson"), ("raw", "poisson"), ("logs", "poisson"), ("X", "gaussian")]
)
def test_layers_are_chosen_and_remembered(folder, capsys, layer, family):
    out = folder / f"{layer}.maxdisc"
    given = [] if layer is None else ["--layer", layer]
    code, _, err = run(capsys, "fit", folder / "both.h5ad", "--label", "cell_type", *given, "-o", out)
    assert code == 0, err
    assert ("values of raw; for those of X say --layer X" in err) == (layer is None)
    assert load(out).families_[0][0].name == family
    code, _, err = run(capsys, "predict", out, folder / "test.h5ad", "-o", folder / f"{layer}.csv", "-f")
    if layer in (None, "X"):
        assert code == 0, err
    else:
        assert code == 2
        assert f"has no layer '{layer}' (it has X)" in err


def test_dense_files_and_files_without_a_telling_name(folder, capsys):
    (folder / "dense").write_bytes((folder / "dense.h5ad").read_bytes())
    code, _, err = run(
        capsys, "fit", folder / "dense", "--label", "cell_type", "-o", folder / "d.maxdisc", "-f"
    )
    assert code == 0, err
    assert load(folder / "d.maxdisc").families_[0][0].name == "gaussian"
    code, out, _ = run(capsys, "predict", folder / "d.maxdisc", folder / "dense.h5ad")
    assert code == 0
    assert len(out.splitlines()) == 241


@pytest.mark.parametrize(
    ("file", "given", "message"),
    [
        ("train.h5ad", ["--label", "cell_typ"], "has no column 'cell_typ': did you mean 'cell_type'?"),
        ("train.h5ad", ["--layer", "log"], "has no layer 'log' (it has X)"),
        ("both.h5ad", ["--layer", "lgos"], "has no layer 'lgos': did you mean 'logs'?"),
        ("train.h5ad", ["--features", "gene1"], "--features picks columns of tables"),
        ("broken.h5ad", [], "is not a whole h5ad file"),
        ("text.h5ad", [], "is not an h5ad file"),
        ("foreign.h5ad", [], "is an HDF5 file, but not an h5ad file"),
        ("twice.h5ad", [], "has more than one gene 'gene1'"),
        ("damaged.h5ad", [], "is not a whole h5ad file"),
        ("short.h5ad", [], "is damaged: X is"),
        ("train.csv", ["--layer", "raw"], "--layer is of h5ad files"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(folder, capsys, file, given, message):
    import h5py

    path = folder / file
    whole = (folder / "train.h5ad").read_bytes()
    if file == "broken.h5ad":
        path.write_bytes(whole[: len(whole) // 2])
    elif file == "text.h5ad":
        path.write_bytes(b"\0\1\2\xff\xfe" * 9)
    elif file == "train.csv":
        path.write_text("cell_type,gene1\nB,3\nT,4\n")
    elif file == "foreign.h5ad":
        with h5py.File(path, "w") as out:
            out["image"] = np.zeros((3, 3))
    elif file == "twice.h5ad":
        adata = cells()
        adata.var_names = ["gene1", *adata.var_names[1:]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adata.write_h5ad(path)
    elif file in ("damaged.h5ad", "short.h5ad"):
        path.write_bytes(whole)
        with h5py.File(path, "r+") as out:
            if file == "damaged.h5ad":
                out["X/indices"][5] = 10_000
            else:
                out["X"].attrs["shape"] = np.array([240, 39])
    asked = [] if "--label" in given else ["--label", "cell_type"]
    target = folder / "never.maxdisc"
    code, out, err = run(capsys, "fit", path, *asked, *given, "-o", target)
    assert code == 2, err
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not target.exists()


def test_files_with_other_genes_are_not_mixed(folder, capsys):
    out = folder / "mixed.maxdisc"
    code, _, err = run(
        capsys, "fit", folder / "train.h5ad", folder / "fewer.h5ad", "--label", "cell_type", "-o", out
    )
    assert code == 2
    assert "fewer.h5ad has other genes than" in err
    code, _, err = run(capsys, "predict", folder / "a.maxdisc", folder / "train.csv", "-o", folder / "x.csv")
    assert code == 2
