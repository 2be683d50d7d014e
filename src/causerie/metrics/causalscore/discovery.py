"""A baseline without learning: a test of conditional independence on sentence embeddings.

The coordinates of the vectors of utterance, response and given utterance are taken as samples
of three numbers, which a test of a causal-discovery library can handle. It shows what the
trained classifiers add. Needs `pip install "causerie[discovery]"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from causerie.errors import CauserieError
from causerie.metrics.causalscore.questions import Question

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder, Floats

TESTS = ("fisherz", "kci", "rcit")
"""Partial correlation by regression; a test with kernels, and one with random features, which are
about forty and ten times slower."""
SIGNIFICANT = 0.95
"""Dependent above it, as usual."""


class DiscoveryTest:
    """Answers with one minus the p-value of independence."""

    def __init__(self, encoder: Encoder, test: str = "fisherz") -> None:
        if test not in TESTS:
            raise CauserieError(f"the tests are {', '.join(TESTS)}, not {test!r}")
        try:
            from causallearn.utils.cit import CIT
        except ImportError as error:
            raise CauserieError(
                f"the test {test} is causal-learn's: pip install 'causerie[discovery]'"
            ) from error
        self._encoder, self._name = encoder, test
        self._test: Any = CIT

    def probabilities(self, questions: Sequence[Question]) -> Floats:
        texts = list(dict.fromkeys(text for question in questions for text in question.texts))
        vectors = self._encoder.encode([((text,),) for text in texts])
        place = {text: index for index, text in enumerate(texts)}
        return np.array(
            [
                1 - self._p_value(vectors[[place[text] for text in question.texts]])
                for question in questions
            ],
            dtype=np.float32,
        )

    def _p_value(self, vectors: Floats) -> float:
        """Of the first and the last being independent given what is between them."""
        data = vectors.T.astype(np.float64)
        given = list(range(1, data.shape[1] - 1))
        try:
            return float(self._test(data, self._name)(0, data.shape[1] - 1, given))
        except (ValueError, np.linalg.LinAlgError):
            return 1.0  # the given utterance says the same: nothing is left to depend on
