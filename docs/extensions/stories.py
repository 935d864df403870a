"""In which order the examples are told."""

from __future__ import annotations

STORIES = (
    "plot_text.py",
    "plot_genes.py",
    "plot_mixed_table.py",
    "plot_choosing_k.py",
    "plot_trust.py",
    "plot_own_family.py",
    "plot_novelty.py",
    "plot_streaming.py",
    "plot_dask.py",
    "on_spark.py",
    "plot_serving.py",
    "plot_onnx.py",
    "plot_single_cells.py",
)


class Order:
    """Sorts file names: those above first, as listed, then all others by name."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, name: str) -> tuple[int, str]:
        return STORIES.index(name) if name in STORIES else len(STORIES), name
