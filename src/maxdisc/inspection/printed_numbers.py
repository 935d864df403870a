"""Formatting of numbers."""

from __future__ import annotations

#: Less of a feature than elsewhere; nothing to count.
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


def percent(share: float) -> str:
    """Format a share in per cent, with an extra digit near 0 and 100, which rounding never reaches."""
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    for digits in (1, 2, 3, 4):
        words = f"{100 * share:.{digits}f}"
        if 0 < float(words) < 100 and (digits > 1 or 0.005 <= share <= 0.995):
            return f"{words} %"
    return "over 99.99 %" if share > 0.5 else "under 0.01 %"


def signed(odds: float) -> str:
    """Log-odds with their sign; what rounds to nothing has none."""
    words = f"{odds:+.2f}"
    return words[1:] if words in ("+0.00", "-0.00") else words
