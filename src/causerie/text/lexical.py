"""What can be counted in a reply and the turns before it, without any network.

Repetition inside the reply, echoes of earlier turns, questions, rare and long words: trivial
numbers, each in one sentence of `FEATURES`, and together more than many a network knows.
Texts are compared as words, so casing, punctuation and detached clitics ("do n't") do not count.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from causerie.text import words

TURNS = 12
"""Of the context, among which an echo is sought."""
LONGEST = 200
"""Words of a text that are looked at: comparing texts takes the product of their lengths."""
_CLITIC = re.compile(r"\s+(n['’]t|['’](?:s|m|re|ve|ll|d|t))\b", re.IGNORECASE)
_APART = re.compile(r"(?<=\w)\s+['’]\s+(?=(?:s|m|re|ve|ll|d|t)\b)", re.IGNORECASE)
_BEFORE = re.compile(r"\s+([.,!?;:%)\]])")

FEATURES: Mapping[str, str] = {
    "log_words": "logarithm of one more than the words of the reply",
    "letters_a_word": "mean length of its words",
    "distinct": "share of its words that are different ones",
    "bigrams_again": "share of its word pairs that it has said before",
    "trigrams_again": "share of its word triples that it has said before",
    "stutter": "share of its words that repeat the word right before",
    "most_repeated": "how often it says its most frequent content word",
    "long_words": "share of its words that have more than six letters",
    "function_words": "share of its words that carry grammar and not content",
    "question": "whether it asks something",
    "ends_asking": "whether it ends with a question",
    "sentences": "ends of sentences in it, at most eight",
    "closed": "whether it ends with a full stop, an exclamation or a question mark",
    "exclaims": "whether it has an exclamation mark",
    "first_person": "share of its words that speak of the speaker",
    "second_person": "share of its words that address the listener",
    "negations": "share of its words that negate",
    "begins_yes": "whether it begins with yes, no, well and the like",
    "begins_asking": "whether it begins with a question word",
    "does_not_know": "whether it says that the speaker does not know or is not sure",
    "asked": "whether the last turn asks something",
    "asked_what": "whether the last turn asks with a question word",
    "asked_whether": "whether the last turn asks for a yes or a no",
    "log_last_words": "logarithm of one more than the words of the last turn",
    "log_turns": "logarithm of one more than the turns before it",
    "overlap_last": "share of its content words that the last turn has",
    "overlap_own": "share of its content words that the turn before the last has",
    "overlap_all": "share of its content words that any turn before has",
    "run_last": "longest run of words shared with the last turn, as a share of the reply",
    "run_own": "longest run shared with the turn before the last, as a share of the reply",
    "run_any": "longest run shared with any turn before, as a share of the reply",
    "covers_last": "longest run shared with the last turn, as a share of that turn",
    "covers_any": "longest run shared with any turn before, as a share of that turn",
    "letters": "share of its characters that are letters or spaces",
    "vowelless": "share of its words of three letters and more that have no vowel",
}
"""What each number is."""

_ASKING = frozenset(["what", "why", "how", "where", "when", "who", "which", "whose", "whom"])
_REPLYING = frozenset(
    words("""
    yes yeah yep sure no nope nah ok okay right true well oh
""")
)
_NEGATING = frozenset(
    [
        "not",
        "no",
        "never",
        "nothing",
        "nobody",
        "none",
        "don't",
        "didn't",
        "isn't",
        "can't",
        "won't",
        "doesn't",
        "wasn't",
        "aren't",
        "haven't",
        "hasn't",
        "couldn't",
        "wouldn't",
        "shouldn't",
        "weren't",
        "cannot",
    ]
)
_SELF = frozenset(
    ["i", "me", "my", "mine", "i'm", "i've", "i'd", "i'll", "we", "our", "us", "ours", "myself"]
)
_LISTENER = frozenset(["you", "your", "yours", "you're", "you've", "you'll", "you'd", "yourself"])
FUNCTION_WORDS = frozenset(
    [
        "the",
        "a",
        "an",
        "and",
        "or",
        "but",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "with",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "am",
        "do",
        "does",
        "did",
        "have",
        "has",
        "had",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "i",
        "you",
        "he",
        "she",
        "we",
        "they",
        "my",
        "me",
        "your",
        "his",
        "her",
        "our",
        "their",
        "him",
        "them",
        "us",
        "not",
        "no",
        "so",
        "as",
        "if",
        "then",
        "there",
        "here",
        "what",
        "when",
        "where",
        "who",
        "how",
        "which",
        "why",
        "will",
        "would",
        "can",
        "could",
        "should",
        "just",
        "very",
        "too",
        "also",
        "from",
        "by",
        "about",
        "into",
        "than",
        "some",
        "any",
        "all",
        "more",
        "most",
        "up",
        "out",
        "get",
        "got",
        "go",
        "like",
        "know",
    ]
)


def joined_clitics(text: str) -> str:
    """The text as people write it: "do n't" and "i 'm ." become "don't" and "i'm."."""
    text = _APART.sub("'", text)
    return " ".join(_BEFORE.sub(r"\1", _CLITIC.sub(r"\1", text)).split())


def plain_words(text: str) -> list[str]:
    """The first words of a text, in the form in which texts are compared."""
    return words(joined_clitics(text))[:LONGEST]


def longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words in a row two texts share at most."""
    best, before = 0, [0] * (len(other) + 1)
    for word in one:
        now = [0] * (len(other) + 1)
        for place, theirs in enumerate(other, start=1):
            if word == theirs:
                now[place] = before[place - 1] + 1
        best, before = max(best, *now), now
    return best


def lexical_features(context: Sequence[str], reply: str) -> dict[str, float]:
    """The numbers of `FEATURES`, in that order."""
    said = [plain_words(text) for text in context[-TURNS:]]
    here = plain_words(reply)
    last_text = context[-1] if context else ""
    last, own = said[-1] if said else [], said[-2] if len(said) > 1 else []
    content = [word for word in here if word not in FUNCTION_WORDS]
    runs = [longest_run(here, turn) for turn in said]
    asked = "?" in last_text
    asked_what = asked and not _ASKING.isdisjoint(last)
    stripped = reply.rstrip().rstrip("\"')")
    longer = [word for word in here if len(word) > 2 and word.isalpha()]

    def share(count: float) -> float:
        return count / len(here) if here else 0.0

    def overlap(other: Sequence[str]) -> float:
        distinct = set(content)
        return len(distinct.intersection(other)) / len(distinct) if distinct else 0.0

    return {
        "log_words": math.log1p(len(here)),
        "letters_a_word": share(sum(map(len, here))),
        "distinct": share(len(set(here))) if here else 1.0,
        "bigrams_again": _again(here, 2),
        "trigrams_again": _again(here, 3),
        "stutter": share(sum(a == b for a, b in pairwise(here))),
        "most_repeated": float(max(Counter(content).values(), default=0)),
        "long_words": share(sum(len(word) > 6 for word in here)),
        "function_words": 1.0 - share(len(content)),
        "question": float("?" in reply),
        "ends_asking": float(stripped.endswith("?")),
        "sentences": float(min(8, len(re.findall(r"[.!?]+", reply)))),
        "closed": float(stripped.endswith((".", "!", "?"))),
        "exclaims": float("!" in reply),
        "first_person": share(sum(word in _SELF for word in here)),
        "second_person": share(sum(word in _LISTENER for word in here)),
        "negations": share(sum(word in _NEGATING for word in here)),
        "begins_yes": float(bool(here) and here[0] in _REPLYING),
        "begins_asking": float(bool(here) and here[0] in _ASKING),
        "does_not_know": float(
            any(p in " ".join(here) for p in ("don't know", "do not know", "not sure", "no idea"))
        ),
        "asked": float(asked),
        "asked_what": float(asked_what),
        "asked_whether": float(asked and not asked_what),
        "log_last_words": math.log1p(len(last)),
        "log_turns": math.log1p(len(context)),
        "overlap_last": overlap(last),
        "overlap_own": overlap(own),
        "overlap_all": overlap([word for turn in said for word in turn]),
        "run_last": share(runs[-1] if runs else 0),
        "run_own": share(runs[-2] if len(runs) > 1 else 0),
        "run_any": share(max(runs, default=0)),
        "covers_last": runs[-1] / len(last) if len(last) > 2 else 0.0,
        "covers_any": max(
            (run / len(turn) for run, turn in zip(runs, said, strict=True) if len(turn) > 2),
            default=0.0,
        ),
        "letters": sum(c.isalpha() or c.isspace() for c in reply) / max(1, len(reply)),
        "vowelless": sum(not set("aeiouy") & set(word) for word in longer) / max(1, len(longer)),
    }


def _again(said: Sequence[str], length: int) -> float:
    """Share of the n-grams that have occurred before."""
    grams = [tuple(said[i : i + length]) for i in range(len(said) - length + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
