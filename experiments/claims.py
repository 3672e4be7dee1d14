"""What an experiment is expected to show, and whether it did."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Claim:
    """One sentence that is true of the results or is not, and the numbers that say so."""

    text: str
    held: bool
    evidence: str


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """What an experiment came to: a summary for programs, a text for people, and claims."""

    summary: dict
    text: str
    claims: tuple[Claim, ...]


def claims_markdown(claims: Sequence[Claim]) -> str:
    """The claims for a page.

    >>> print(claims_markdown([Claim("Water is wet.", True, "it was")]))
    | claim | | evidence |
    |---|---|---|
    | Water is wet. | held | it was |
    """
    rows = [f"| {claim.text} | {'held' if claim.held else 'not held'} | {claim.evidence} |" for claim in claims]
    return "\n".join(["| claim | | evidence |", "|---|---|---|", *rows])
