"""Numbers as people read them: tokens, seconds, bytes, money."""

from __future__ import annotations


def format_count(number: int) -> str:
    """Return a count in at most four characters: 950, 1.2k, 24k, 1.5M."""
    if number < 1_000:
        return str(number)
    for limit, unit in ((999_500, "k"), (999_500_000, "M"), (float("inf"), "G")):
        if number < limit:
            scaled = number / {"k": 1e3, "M": 1e6, "G": 1e9}[unit]
            return f"{scaled:.0f}{unit}" if scaled >= 9.95 else f"{scaled:.1f}".removesuffix(".0") + unit
    return str(number)


def whole_percent(part: int, whole: int) -> int:
    """Return a share in whole percent, rounded up: what is more than nothing is 1, and what is over the whole 101."""
    return -(-100 * part // whole)


def format_change(before: int, after: int, *, rough: bool, short: bool = True, arrow: str = "→") -> str:
    """Return a context's size before and after something: 182k → ~24k, or 182,341 → ~24,102.

    What comes after was counted by nobody yet. `rough` says that what was before was not either.
    """
    first, second = (format_count(before), format_count(after)) if short else (f"{before:,}", f"{after:,}")
    return f"{'~' if rough else ''}{first} {arrow} ~{second}"


def format_seconds(seconds: float) -> str:
    """Return a duration: 0.3s, 12s, 1m 15s, 2h 5m."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3_600:
        return f"{whole // 60}m {whole % 60}s" if whole % 60 else f"{whole // 60}m"
    return f"{whole // 3_600}h {whole % 3_600 // 60}m"


def format_bytes(size: int) -> str:
    """Return a size: 512 B, 1.2 KB, 24 MB."""
    if size < 1_000:
        return f"{size} B"
    count = format_count(size)
    return f"{count[:-1]} {count[-1].upper()}B"


def format_cost(dollars: float) -> str:
    """Return an amount of US dollars, with as many digits as it needs to be more than nothing."""
    if dollars >= 0.095 or dollars == 0:
        return f"${dollars:.2f}"
    return f"${dollars:.3f}" if dollars >= 0.0005 else "<$0.001"


def format_spending(tokens: int, cost: float | None) -> str:
    """Return what calls cost: US dollars, or where no price is known the tokens that they took."""
    return format_cost(cost) if cost is not None else f"{format_count(tokens)} tokens used"


def format_prices(dollars_in: float | None, dollars_out: float | None) -> str:
    """Return what a million tokens cost, empty where that is not known: $4 / $20 per million tokens."""
    if dollars_in is None or dollars_out is None:
        return ""
    return f"${dollars_in:g} / ${dollars_out:g} per million tokens"


ORIGINS = {
    "provider": "the provider's list",
    "catalogue": "catalogue",
    "settings": "settings",
    "learned": "learned from a refusal",
    "name": "by name",
    "nearest": "nearest version",
}


def describe_origin(source: str, assumed_from: str = "") -> str:
    """Return where a number of a model's facts comes from: "by name: claude-opus-5-5"; empty where nobody says."""
    words = ORIGINS.get(source, "")
    return f"{words}: {assumed_from}" if assumed_from and source in ("name", "nearest") else words


def plural(number: int, noun: str) -> str:
    """Return "1 line", "12 lines"."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("ry"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}es" if noun.endswith(("ch", "s", "x")) else f"{number:,} {noun}s"


def count_lines(text: str) -> int:
    """Return how many lines a text has, a last empty one not counted."""
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)


RUNG_WORDS = {
    "hide": "old results hidden",
    "remote": "by the provider",
    "same_prefix": "summarised in place",
    "serialised": "summarised from a transcript",
    "truncate": "large results shortened",
    "images": "images left out",
    "prepared": "summarised ahead of time",
    "digest": "condensed without a model",
    "branch": "notes on a part that was left",
}

REASON_WORDS = {
    "threshold": "the context was nearly full",
    "overflow": "the context was over full",
    "manual": "manual",
    "model_switch": "for the other model",
    "idle": "ahead of time",
    "agent": "asked for by the agent",
    "branch": "for a part that was left",
}
"""By the reason of a compaction (`protocol/operation.py`), when it is over."""
RUNNING_REASON_WORDS = {
    **REASON_WORDS,
    "threshold": "the context is nearly full",
    "overflow": "the request was too long",
}
"""The same while it runs."""


def describe_rung(rung: str, extension: str = "") -> str:
    """Return what made a compaction, in words; a strategy of somebody else keeps its name."""
    if rung == "extension":
        return f"summary by the extension {extension}".rstrip()
    return RUNG_WORDS.get(rung.replace(" ", "_"), rung)
