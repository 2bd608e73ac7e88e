"""What a kernel's text is made of: lines and regions, names, words, integers and quoted texts."""
from __future__ import annotations

import re
from typing import Any, List, Sequence

from .errors import ArgumentError


def literal(value: Any, what: str) -> int:
    """A Python integer that the text carries as it is."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError("%s is an integer known beforehand, got %s" % (what, value.__class__.__name__))
    return value.__index__()


def word(value: Any, what: str) -> str:
    """A word of QIR."""
    if not isinstance(value, str) or not value.replace("_", "").isalnum() or not value.isascii():
        raise ArgumentError("%s is a word, got %r" % (what, value))
    return value


def symbol(name: Any) -> str:
    """A name for a kernel or an argument."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ArgumentError("a name is of letters, digits and _, got %r" % (name,))
    return name


def quote(text: Any) -> str:
    """A text as MLIR writes it."""
    if not isinstance(text, str):
        raise ArgumentError("expected a text, got %s" % text.__class__.__name__)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ArgumentError("a text that is not valid Unicode") from None
    return '"%s"' % "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else "\\%02X" % b for b in data)


class Lines(List[Any]):
    """The ops of a region: lines, and ops with regions. `open` while ops are added, here or further inside."""

    open = False


class Region:
    """An op with regions: the lines before, between and behind them."""

    def __init__(self, parts: List[Any]):
        self.parts = parts  # lines (str) and regions (Lines), in turn

    def write(self, out: List[str], indent: str) -> None:
        for part in self.parts:
            if isinstance(part, str):
                out.append(indent + part)
                continue
            write(part, out, indent + "  ")


def write(lines: Sequence[Any], out: List[str], indent: str) -> None:
    """Appends the text of lines and of regions among them."""
    for line in lines:
        if isinstance(line, str):
            out.append(indent + line)
        else:
            line.write(out, indent)
