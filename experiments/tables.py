"""All tables, by name."""

from __future__ import annotations

import experiments.gene_methods
import experiments.text_methods  # noqa: F401  # modules of methods fill the registry
from experiments.paper import GENE_TABLE, TEXT_TASKS
from experiments.paths import swept
from experiments.running import Table, classified
from experiments.selection import resampled, selected

#: Of the outer folds of the first repeat; nothing was designed on these folds.
FIRST_SEED = 1000

TEXT, GENES = tuple(TEXT_TASKS), tuple(GENE_TABLE)

TABLES = {
    table.name: table
    for table in (
        Table("posts", "posts", "text", TEXT, 2, classified),
        Table("bodies", "bodies", "text", TEXT, 2, classified),
        Table("genes", "genes", "genes", GENES, 10, classified),
        Table("paths", "posts", "paths", TEXT, 2, swept, 1, n_quick_repeats=1),
        Table("selection", "posts", "rankings", TEXT, 2, selected, 1, n_quick_repeats=1),
        Table("stability", "posts", "rankings", TEXT, 1, resampled, 1, n_quick_repeats=1),
        Table("gene_selection", "genes", "gene_rankings", GENES, 5, selected, 1, n_quick_repeats=1),
        Table("gene_stability", "genes", "gene_rankings", GENES, 1, resampled, 1, n_quick_repeats=1),
    )
}
