"""Licences of data: what each source is under, and whether that allows commercial use.

They are written `SOURCE: SPDX-ID; SOURCE: SPDX-ID`, where the right side may also be an SPDX
expression with AND and OR. What is said in other words is kept as it is, and counts as not free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NOT_STATED = "not stated"

FREE = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "Zlib"),
        *("CC-BY-3.0", "CC-BY-4.0", "CC0-1.0", "CDLA-Permissive-1.0", "CDLA-Permissive-2.0"),
        *("ODC-By-1.0", "PDDL-1.0", "Unlicense"),
        "WordNet",  # Princeton's, which SPDX does not list
    }
)
"""They allow commercial use and ask nothing of what is made with the data but to name it. Those
that ask to share alike are not among them: weights under them could not go with causerie."""


@dataclass(frozen=True)
class Licence:
    """What one source of data is under."""

    source: str
    """Empty where one licence is said to be that of everything."""
    terms: str

    @property
    def free(self) -> bool:
        """Whether commercial use is allowed; AND binds before OR, and nothing is nested."""
        return any(
            all(one.strip() in FREE for one in choice.split(" AND "))
            for choice in self.terms.split(" OR ")
        )

    def __str__(self) -> str:
        return f"{self.source}: {self.terms}" if self.source else self.terms


def parse_licences(text: str) -> tuple[Licence, ...]:
    """The licences that a text names; one that says nothing is "not stated"."""
    found = []
    for said in filter(None, (part.strip() for part in text.split(";"))):
        source, _, terms = (part.strip() for part in said.rpartition(":"))
        found.append(Licence(source, terms))
    return tuple(found) or (Licence("", NOT_STATED),)


def joint_licence(texts: Iterable[str]) -> str:
    """One text for several: all that they name, each once."""
    return "; ".join(dict.fromkeys(str(one) for text in texts for one in parse_licences(text)))
