"""Counts in sentences: numbers agree with their nouns."""


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 segment`, `2 segments`; `plural` where an s is not all: `counted(2, "segment is", "segments are")`."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
