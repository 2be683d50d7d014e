"""Obscene words, masked wherever people read what others said: in logs, reports and pages."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_OBSCENE = re.compile(
    # wherever it stands in a word
    r"f+u+c+k|sh[i1]+t(?!ak)|b[i1]+a?tch|[a4]ssh[o0]le|arsehole|motherf|dickhead|cocksuck"
    r"|blowjob|d[i1]ldo|wh[o0]re|faggot|n[i1]gg(?:er|a)"
    # as a whole word
    r"|^(?:(?:bad|dumb|fat|hard|jack|lame|smart)?ass(?:es|hat|wipe)?|arses?|bastards?|bollocks"
    r"|boob(?:s|ies)?|clit|cocks?|cums?|cumming|cunt(?:s|y)?|dicks?|dykes?|fags?|fuk(?:er|in|ing)?"
    r"|horny|jizz|masturbat\w*|phuck\w*|pricks?|puss(?:y|ies)|retard(?:s|ed)?|sluts?|slutty"
    r"|stfu|tit(?:s|ties)|twats?|wank(?:s|er|ers|ing)?|wtf)$",
    re.IGNORECASE,
)


def mask(text: str) -> str:
    """The text with every obscene word as its first letter and asterisks."""
    return _WORD.sub(lambda found: _masked(found[0]), text)


def _masked(word: str) -> str:
    return word[0] + "*" * (len(word) - 1) if _OBSCENE.search(word) else word
