"""What `quality` sees of a reply: the papers' metrics, their parts, and what can be counted.

Every feature is declared with a sentence. Two encoders read every turn by itself, as density,
causalscore and grade do, so their vectors are made once; `slips` reads context and reply
together. The language model of the larger tiers reads the reply after four turns and alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from causerie.dialogue import Exchange
from causerie.engines.cache import Cache
from causerie.engines.language import STOCK
from causerie.quality.config import Tier
from causerie.text.lexical import FEATURES as LEXICAL
from causerie.text.lexical import FUNCTION_WORDS, lexical_features, plain_words
from causerie.training.faulty import MEANINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder
    from causerie.models import Pooling

    Floats = NDArray[np.float64]

TURNS = 10
"""Of the context, whose vectors are compared with the reply's."""
COMMONEST = 10
"""Replies of the bank that are nearest to one."""
SHARPNESS = 20.0
"""Of the cosines in a softmax over the bank."""
REMEMBERED = 8192
"""Replies whose features are kept: `quality` and `faults` ask for the same ones."""
READ_TURNS = 4
"""Of the context, which the language model reads before the reply."""

METRICS: Final[Mapping[str, str]] = {
    "density": "negative Mahalanobis distance to human responses (DEnsity)",
    "density.euclidean": "negative Euclidean distance to the mean human response",
    "density.classifier": "the response selection model's own score",
    "cause.last": "probability that the reply depends on the last turn (C_uncond)",
    "cause.before": "probability that it depends on the turn before that",
    "cause.mean": "mean probability over all turns",
    "cause.max": "largest probability over all turns",
    "cause.count": "turns on which it depends",
    "causalscore": "equation 1 of CausalScore",
    "cause.any": "probability of at least one cause, by strengths",
    "grade": "coherence by utterances and topics (GRADE)",
    "topics.context": "topics of the context",
    "topics.reply": "topics of the reply",
    "topics.near": "mean weight of each topic of the reply with its nearest of the context",
    "topics.connected": "share of its topics that the commonsense graph connects with the context",
}
COSINES: Final[Mapping[str, str]] = {
    "last": "cosine of the reply with the last turn",
    "own": "cosine with the turn before the last",
    "third": "cosine with the turn before that",
    "max": "largest cosine with any turn",
    "mean": "mean cosine with all turns",
    "own_max": "largest cosine with a turn of the same side",
    "flow": "cosine of the last two turns with each other",
    "bank.z": "how far the cosine with the last turn is above that of other people's replies",
    "bank.share": "share of other people's replies that are less alike to the last turn",
    "bank.soft": "log-probability of the reply among other people's, by cosines",
    "usual": "mean cosine with other people's replies",
    "commonest": "mean cosine with the nearest of them",
}
RARITY: Final[Mapping[str, str]] = {
    "idf.mean": "mean rarity of its content words",
    "idf.max": "rarity of its rarest word",
    "idf.sum": "rarity of all its content words together, limited",
    "idf.unknown": "share of its words that the word list does not have",
    "idf.shared": "rarity of the rarest word that it shares with the last turn",
}
LANGUAGE: Final[Mapping[str, str]] = {
    "lm.mean": "mean log-probability of the reply's tokens after its context",
    "lm.least": "log-probability of the least expected token",
    "lm.first": "log-probability of the first token",
    "lm.last": "log-probability of the token that ends the reply",
    "lm.spread": "standard deviation of the log-probabilities",
    "lm.sum": "log-probability of the whole reply",
    "lm.entropy": "mean entropy of what might have been said instead",
    "lm.entropy.max": "largest entropy",
    "lm.entropy.first": "entropy before the first token",
    "lm.alone": "mean log-probability of the reply without any context",
    "lm.alone.least": "log-probability of its least expected token then",
    "lm.gain": "how much more likely the context makes the reply, per token",
    "lm.tokens": "tokens of the reply",
    "lm.typical": "how much more likely its tokens are than what was to be expected",
}
SLIP: Final = "log-odds, by a reader, that the reply "
WHICH: Final[Mapping[str, str]] = {"stock": "default encoder", "tuned": "density's encoder"}
MOST_RARITY = 60.0


def descriptions(tier: Tier) -> dict[str, str]:
    """Every feature of a tier in its order, each with a sentence."""
    found = dict(METRICS)
    for which, name in WHICH.items():
        found |= {f"{which}.{key}": f"{text} ({name})" for key, text in COSINES.items()}
    found |= {f"slip.{key}": f"{SLIP}{text}" for key, text in MEANINGS.items()}
    found |= {f"text.{key}": text for key, text in LEXICAL.items()} | dict(RARITY)
    return found | dict(LANGUAGE) if tier == "standard" else found


@dataclass(frozen=True, eq=False)
class Bank:
    """Vectors of other people's replies, which cosines are compared with."""

    stock: NDArray[np.float32]
    tuned: NDArray[np.float32]


class Parts:
    """The metrics that quality stands on, with their networks."""

    def __init__(self, engines: Engines) -> None:
        from causerie.metrics.causalscore import CausalScore
        from causerie.metrics.density import Density
        from causerie.metrics.grade import Grade
        from causerie.metrics.slips import Slips

        self.engines = engines
        self.causalscore = CausalScore()
        _, self.density = Density().restored(engines)
        _, self.grade = Grade().restored(engines)
        _, self.slips = Slips().restored(engines)
        self.digests = {
            metric.name: metric.info.sha256[:12]
            for metric in (Density(), self.causalscore, Grade(), Slips())
        }
        self._known: Cache[tuple[str, ...], Floats] = Cache(REMEMBERED)
        self._frequencies = self.grade.topics.graph.frequencies

    def forget(self) -> None:
        """Drop the features that are kept."""
        self._known.clear()

    def bank(self, replies: Sequence[str]) -> Bank:
        """The vectors of these replies."""
        stock, tuned = (_units(*one, replies) for one in self._encoders())
        return Bank(stock, tuned)

    def _encoders(self) -> list[tuple[Encoder, Pooling | None]]:
        extractor = self.density.extractor
        return [(self.grade.encoder, None), (extractor.encoder, extractor.pooling)]

    def measure(self, exchanges: Sequence[Exchange], bank: Bank, tier: Tier) -> Floats:
        """One row of features per exchange; every exchange has a context."""
        found = np.zeros((len(exchanges), len(descriptions(tier))))
        keys = [_key(exchange, tier) for exchange in exchanges]
        known = [self._known.get(key) for key in keys]
        new = [i for i, row in enumerate(known) if row is None]
        if new:
            found[new] = self._measured([exchanges[i] for i in new], bank, tier)
        for i, row in enumerate(known):
            if row is not None:
                found[i] = row
        for i in new:
            self._known.put(keys[i], found[i])
        return found

    def _measured(self, exchanges: Sequence[Exchange], bank: Bank, tier: Tier) -> Floats:
        blocks = [
            self._metrics(exchanges),
            *(
                _cosines(exchanges, *encoder, others)
                for encoder, others in zip(self._encoders(), (bank.stock, bank.tuned), strict=True)
            ),
            self.slips.logits(exchanges),
            np.array([self._counts(exchange) for exchange in exchanges]),
        ]
        if tier == "standard":
            blocks.append(_language(exchanges, self.engines))
        return np.concatenate([np.asarray(one, dtype=np.float64) for one in blocks], axis=1)

    def _metrics(self, exchanges: Sequence[Exchange]) -> Floats:
        from causerie.metrics.causalscore.formula import equation_1, noisy_or
        from causerie.metrics.density.gaussian import distances

        extractor = self.density.extractor
        by = distances(self.density.gaussian, extractor, extractor.features(exchanges))
        graphs = self.causalscore.graphs(exchanges, self.engines)
        pairs = self.grade.pairs(exchanges)
        rows = []
        judged = self.grade.judge(pairs)
        for i, (causes, pair, one) in enumerate(zip(graphs, pairs, judged, strict=True)):
            p, weights, hops = causes.unconditional, pair.graph.weights, pair.graph.hops
            some = bool(weights.size)
            rows.append(
                [
                    *(by[name][i] for name in ("mahalanobis", "euclidean", "classifier")),
                    *(p[-1], p[-2] if len(p) > 1 else np.nan, np.mean(p), max(p)),
                    *(len(causes.dependents), equation_1(causes), noisy_or(causes)),
                    *(one.score, len(pair.graph.context), len(pair.graph.response)),
                    weights.max(0).mean() if some else 0.0,
                    (hops >= 0).max(0).mean() if some else 0.0,
                ]
            )
        return np.array(rows, dtype=np.float64)

    def _counts(self, exchange: Exchange) -> list[float]:
        texts = [turn.text for turn in exchange.context]
        counted = lexical_features(texts, exchange.response.text)
        return [*counted.values(), *self._rarity(texts, exchange.response.text)]

    def _rarity(self, context: Sequence[str], reply: str) -> list[float]:
        idf, known = self._frequencies.idf, self._frequencies.idf("")
        said = [word for word in plain_words(reply) if word not in FUNCTION_WORDS]
        rare = [idf(word) for word in said]
        shared = [idf(word) for word in {*said}.intersection(plain_words(context[-1]))]
        total = sum(rare)
        return [
            total / len(rare) if rare else 0.0,
            max(rare, default=0.0),
            min(total, MOST_RARITY),
            sum(value >= known for value in rare) / max(1, len(plain_words(reply))),
            max(shared, default=0.0),
        ]


def _key(exchange: Exchange, tier: Tier) -> tuple[str, ...]:
    """Equal for replies with equal features."""
    said = [
        part for turn in exchange.context for part in (turn.speaker, turn.role or "", turn.text)
    ]
    return (
        tier,
        exchange.response.speaker,
        exchange.response.role or "",
        exchange.response.text,
        *said,
    )


def _units(encoder: Encoder, pooling: Pooling | None, texts: Sequence[str]) -> Any:
    vectors = encoder.encode([((text,),) for text in texts], pooling)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def _cosines(
    exchanges: Sequence[Exchange],
    encoder: Encoder,
    pooling: Pooling | None,
    others: NDArray[np.float32],
) -> Floats:
    """The numbers of `COSINES`, by one encoder."""
    contexts = [[turn.text for turn in exchange.last(TURNS)] for exchange in exchanges]
    replies = [exchange.response.text for exchange in exchanges]
    texts = dict.fromkeys([*replies, *(text for context in contexts for text in context)])
    places = {text: place for place, text in enumerate(texts)}
    vectors = _units(encoder, pooling, list(texts))
    rows = []
    for context, reply in zip(contexts, replies, strict=True):
        r, turns = vectors[places[reply]], vectors[[places[text] for text in context]]
        found = (turns * r).sum(1)[::-1]  # the last turn first
        bank = (others * turns[-1]).sum(1)
        near = np.sort((others * r).sum(1))
        rows.append(
            [
                found[0],
                found[1] if len(found) > 1 else np.nan,
                found[2] if len(found) > 2 else np.nan,
                found.max(),
                found.mean(),
                found[1::2].max() if len(found) > 1 else np.nan,
                float(turns[-1] @ turns[-2]) if len(found) > 1 else np.nan,
                (found[0] - bank.mean()) / max(float(bank.std()), 1e-6),
                (bank < found[0]).mean(),
                found[0] - np.log(np.exp(SHARPNESS * bank).mean()) / SHARPNESS,
                near.mean(),
                near[-COMMONEST:].mean(),
            ]
        )
    return np.array(rows, dtype=np.float64)


def _language(exchanges: Sequence[Exchange], engines: Engines) -> Floats:
    """The numbers of `LANGUAGE`; not numbers where the language model sees none of the reply."""
    from causerie.engines.reading import read_replies

    engine = engines.named_likelihood(STOCK)
    after = read_replies(engine, exchanges, READ_TURNS)
    alone = read_replies(engine, exchanges, 0)
    rows = []
    for read, by_itself in zip(after, alone, strict=True):
        p, h, q = read.log_probs, read.entropies, by_itself.log_probs
        if not (len(p) and len(q)):
            rows.append([np.nan] * len(LANGUAGE))
            continue
        rows.append(
            [
                *(p.mean(), p.min(), p[0], p[-1], p.std(), p.sum()),
                *(h.mean(), h.max(), h[0], q.mean(), q.min()),
                *(p.mean() - q.mean(), len(p), (p + h).mean()),
            ]
        )
    return np.array(rows, dtype=np.float64)
