"""Features of a reply and its context that can be counted without a network.

They cover repetition inside the reply, echoes of earlier turns, questions, and long words.
`FEATURES` describes each one; together they often predict more than a network does. Texts
are compared as words, so casing, punctuation and detached clitics ("do n't") do not matter.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from causerie.text import words

TURNS = 12
"""Number of context turns in which echoes are searched."""
LONGEST = 200
"""Maximum number of words read from a text: comparing two costs the product of their lengths."""
_CLITIC = re.compile(r"\s+(n['’]t|['’](?:s|m|re|ve|ll|d|t))\b", re.IGNORECASE)
_APART = re.compile(r"(?<=\w)\s+['’]\s+(?=(?:s|m|re|ve|ll|d|t)\b)", re.IGNORECASE)
_BEFORE = re.compile(r"\s+([.,!?;:%)\]])")

FEATURES: Mapping[str, str] = {
    "log_words": "log(1 + number of words in the reply)",
    "letters_a_word": "mean word length in letters",
    "distinct": "distinct words as a share of all its words",
    "bigrams_again": "share of its word bigrams that repeat an earlier one",
    "trigrams_again": "share of its word trigrams that repeat an earlier one",
    "stutter": "share of its words that repeat the preceding word",
    "most_repeated": "number of occurrences of its most frequent content word",
    "long_words": "share of its words with more than six letters",
    "function_words": "share of its words that are function words",
    "question": "whether it has a question mark",
    "ends_asking": "whether it ends with a question",
    "sentences": "number of sentence ends, at most eight",
    "closed": "whether it ends with a full stop, exclamation mark or question mark",
    "exclaims": "whether it has an exclamation mark",
    "first_person": "share of its words that refer to the speaker",
    "second_person": "share of its words that address the listener",
    "negations": "share of its words that negate",
    "begins_yes": "whether it begins with yes, no, well or the like",
    "begins_asking": "whether it begins with a question word",
    "does_not_know": "whether it says that the speaker does not know or is not sure",
    "asked": "whether the last turn has a question mark",
    "asked_what": "whether the last turn asks a question with a question word",
    "asked_whether": "whether the last turn asks a question without a question word",
    "log_last_words": "log(1 + number of words in the last turn)",
    "log_turns": "log(1 + number of turns before it)",
    "overlap_last": "share of its content words that occur in the last turn",
    "overlap_own": "share of its content words that occur in the turn before the last",
    "overlap_all": "share of its content words that occur in any earlier turn",
    "run_last": "longest word sequence shared with the last turn, as a share of the reply",
    "run_own": "longest sequence shared with the turn before the last, as a share of the reply",
    "run_any": "longest sequence shared with any earlier turn, as a share of the reply",
    "covers_last": "longest sequence shared with the last turn, as a share of that turn",
    "covers_any": "longest sequence shared with any earlier turn, as a share of that turn",
    "letters": "share of its characters that are letters or spaces",
    "vowelless": "share of its words of three or more letters that have no vowel",
}
"""What each feature measures."""

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
    """Undo tokenization: "do n't" and "i 'm ." become "don't" and "i'm."."""
    text = _APART.sub("'", text)
    return " ".join(_BEFORE.sub(r"\1", _CLITIC.sub(r"\1", text)).split())


def plain_words(text: str) -> list[str]:
    """Return the first `LONGEST` words of a text, in the form in which texts are compared."""
    return words(joined_clitics(text))[:LONGEST]


def longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest word sequence that occurs in both texts."""
    best, before = 0, [0] * (len(other) + 1)
    for word in one:
        now = [0] * (len(other) + 1)
        for place, theirs in enumerate(other, start=1):
            if word == theirs:
                now[place] = before[place - 1] + 1
        best, before = max(best, *now), now
    return best


def lexical_features(context: Sequence[str], reply: str) -> dict[str, float]:
    """Return the values of all `FEATURES`, in that order."""
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
    """Return the share of the n-grams that repeat an earlier one."""
    grams = [tuple(said[i : i + length]) for i in range(len(said) - length + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
