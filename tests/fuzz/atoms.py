"""Plant a word in every message, and find it again in whatever memory makes of it.

``m:2a:17`` is what message 17 of series 2a says, ``m:2a:17-20`` what four say; ``e:…`` is what
a person wrote over a line, ``n:…`` what one noted.
"""

import re
from collections import Counter
from typing import NamedTuple

ATOM = re.compile(r"\b([men]):(\w+):(\d+)(?:-(\d+))?")


class Atom(NamedTuple):
    """Name one thing said: by a message (m), an edit (e) or a note (n)."""

    kind: str
    series: str
    number: int

    def __str__(self):
        return f"{self.kind}:{self.series}:{self.number}"


def read(text):
    """Return how often a text says each atom."""
    found = Counter()
    for kind, series, first, last in ATOM.findall(text):
        for number in range(int(first), int(last or first) + 1):
            found[Atom(kind, series, number)] += 1
    return found


def read_all(texts):
    """Return how often texts say each atom."""
    found = Counter()
    for text in texts:
        found.update(read(text))
    return found


def write(atoms):
    """Return atoms as a text, neighbours as ranges."""
    parts = []
    for atom in sorted(atoms):
        if parts and parts[-1][0][:2] == atom[:2] and parts[-1][1] == atom.number - 1:
            parts[-1][1] = atom.number
        else:
            parts.append([atom, atom.number])
    return " ".join(str(a) if a.number == last else f"{a}-{last}" for a, last in parts)


def only(kind, atoms):
    """Return the atoms of one kind."""
    return Counter({atom: count for atom, count in atoms.items() if atom.kind == kind})
