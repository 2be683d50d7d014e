"""Statistics: how well scores agree with people, and whether a difference is real.

Everywhere `scores` is a metrics x items array (NaN where unscored), a result is one `Estimate`
per metric, labels name the dialogue, context or system of each item, and every function that
draws random numbers takes a seed.
"""

from causerie.stats.accuracy import (
    PairwiseAccuracy,
    group_accuracies,
    pairwise_accuracy,
    soft_pairwise_accuracy,
)
from causerie.stats.agreement import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    leave_one_out_ratings,
    mean_reliability,
    split_half,
)
from causerie.stats.classification import (
    auc,
    auc_of_clusters,
    balanced_accuracy,
    balanced_accuracy_of_clusters,
    estimates_of,
    win_share,
)
from causerie.stats.clusters import ClusterMoments, difference
from causerie.stats.comparison import Comparison, compare_paired, compare_unpaired
from causerie.stats.correlation import (
    CORRELATIONS,
    group_values,
    kendall,
    mean_of_groups,
    partial,
    pearson,
    pearson_r,
    point_biserial,
    spearman,
    system_level,
)
from causerie.stats.estimate import Estimate, FloatArray, IntArray, means, unit_of
from causerie.stats.ranking import Ranking, rank_of_true, ranking_estimates, wins
from causerie.stats.resampling import (
    ClusteredRatio,
    ClusterStatistic,
    accuracy_of_clusters,
    correlation_of_clusters,
    kendall_of_clusters,
    mean_of_clusters,
    with_intervals,
)
from causerie.stats.significance import (
    PairTests,
    holm,
    permutation_tests,
    permutations_for,
    rank_clusters,
)
from causerie.stats.votes import (
    VOTES,
    Votes,
    cont2cat,
    cont2cat_floor,
    cont2cat_of_clusters,
    cyclic_triples,
    ignore_equal,
    ignore_equal_points,
    points_by_vote,
    vote_codes,
    voting_points,
)

__all__ = [
    "CORRELATIONS",
    "VOTES",
    "ClusterMoments",
    "ClusterStatistic",
    "ClusteredRatio",
    "Comparison",
    "Estimate",
    "FloatArray",
    "IntArray",
    "PairTests",
    "PairwiseAccuracy",
    "Ranking",
    "Votes",
    "accuracy_of_clusters",
    "auc",
    "auc_of_clusters",
    "balanced_accuracy",
    "balanced_accuracy_of_clusters",
    "cohen_kappa",
    "compare_paired",
    "compare_unpaired",
    "cont2cat",
    "cont2cat_floor",
    "cont2cat_of_clusters",
    "correlation_of_clusters",
    "cyclic_triples",
    "difference",
    "estimates_of",
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
    "mean_reliability",
    "means",
    "pairwise_accuracy",
    "partial",
    "pearson",
    "pearson_r",
    "permutation_tests",
    "permutations_for",
    "point_biserial",
    "points_by_vote",
    "rank_clusters",
    "rank_of_true",
    "ranking_estimates",
    "soft_pairwise_accuracy",
    "spearman",
    "split_half",
    "system_level",
    "unit_of",
    "vote_codes",
    "voting_points",
    "win_share",
    "wins",
    "with_intervals",
]
