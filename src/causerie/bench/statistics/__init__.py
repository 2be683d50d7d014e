"""Meta-evaluation: how well metrics agree with people, and whether a difference is real.

Everywhere `scores` is metrics x items (NaN for unscored), a result is one `Estimate` per
metric, labels say which dialogue, context or system an item belongs to, and whatever draws
random numbers takes a seed.
"""

from causerie.bench.statistics.agreement import fleiss_kappa, krippendorff_alpha
from causerie.bench.statistics.bootstrap import with_intervals
from causerie.bench.statistics.ceiling import leave_one_out_ratings, split_half
from causerie.bench.statistics.comparison import Comparison, compare_paired, compare_unpaired
from causerie.bench.statistics.correlation import (
    CORRELATIONS,
    kendall,
    partial,
    pearson,
    point_biserial,
    spearman,
)
from causerie.bench.statistics.estimate import Estimate
from causerie.bench.statistics.groups import group_values, mean_of_groups, system_level
from causerie.bench.statistics.multiple import holm, permutations_for, rank_clusters
from causerie.bench.statistics.pairs import (
    PairwiseAccuracy,
    group_accuracies,
    pairwise_accuracy,
)
from causerie.bench.statistics.resampling import (
    ClusterStatistic,
    accuracy_of_clusters,
    correlation_of_clusters,
    kendall_of_clusters,
    mean_of_clusters,
)
from causerie.bench.statistics.significance import PairTests, permutation_tests
from causerie.bench.statistics.soft_accuracy import soft_pairwise_accuracy
from causerie.bench.statistics.votes import (
    cont2cat,
    cont2cat_floor,
    ignore_equal,
    ignore_equal_points,
    vote_codes,
    voting_points,
)

__all__ = [
    "CORRELATIONS",
    "ClusterStatistic",
    "Comparison",
    "Estimate",
    "PairTests",
    "PairwiseAccuracy",
    "accuracy_of_clusters",
    "compare_paired",
    "compare_unpaired",
    "cont2cat",
    "cont2cat_floor",
    "correlation_of_clusters",
    "fleiss_kappa",
    "group_accuracies",
    "group_values",
    "holm",
    "ignore_equal",
    "ignore_equal_points",
    "kendall",
    "kendall_of_clusters",
    "krippendorff_alpha",
    "leave_one_out_ratings",
    "mean_of_clusters",
    "mean_of_groups",
    "pairwise_accuracy",
    "partial",
    "pearson",
    "permutation_tests",
    "permutations_for",
    "point_biserial",
    "rank_clusters",
    "soft_pairwise_accuracy",
    "spearman",
    "split_half",
    "system_level",
    "vote_codes",
    "voting_points",
    "with_intervals",
]
