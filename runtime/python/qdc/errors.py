"""What goes wrong: exceptions, and the compiler's diagnostics as values.

Every exception of the package is an `Error`. A `CompileError` carries the diagnostics, one by one, with their places
in the text.
"""
from __future__ import annotations

from typing import List, Optional, Sequence


class Error(Exception):
    """The base of all exceptions that this package raises."""


class LibraryError(Error, OSError):
    """A shared library of qdc is not found, or is not one that this package knows."""


class ArgumentError(Error, ValueError):
    """A value that a call does not take: a wrong type, shape, number of arguments or state."""


class DeviceError(Error):
    """A device that does not exist, or fails."""


class LaunchError(Error):
    """A kernel that could not be run to its end."""


class Diagnostic:
    """One message of the compiler.

    `severity` is "error", "warning", "remark" or "note"; `line` and `column` count from 1 and are None where the
    message has no place; `source` is the line of the text that it points to; `notes` are further places.
    """

    __slots__ = ("severity", "message", "file", "line", "column", "source", "notes")

    def __init__(self, severity: str, message: str, file: Optional[str] = None, line: Optional[int] = None,
                 column: Optional[int] = None, source: Optional[str] = None, notes: Sequence[Diagnostic] = ()):
        self.severity, self.message = severity, message
        self.file, self.line, self.column, self.source = file, line, column, source
        self.notes: List[Diagnostic] = list(notes)

    def _head(self) -> str:
        place = "".join("%s:" % part for part in (self.file, self.line, self.column) if part is not None)
        place += " " if place else ""
        text = "%s%s: %s" % (place, self.severity, self.message)
        if self.source is not None:
            text += "\n" + self.source
            if self.column:
                # Tabs stay tabs, so that the mark stands under what it points to.
                before = self.source[:self.column - 1].ljust(self.column - 1)
                text += "\n" + "".join("\t" if c == "\t" else " " for c in before) + "^"
        return text

    def __str__(self) -> str:
        return "\n".join([self._head()] + [str(note) for note in self.notes])

    def __repr__(self) -> str:
        return "<%s at %s:%s: %s>" % (self.severity, self.line, self.column, self.message)


class CompileError(Error):
    """Text that does not compile. `diagnostics` has what the compiler said, first errors first as it said them."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()):
        super().__init__(message)
        self.diagnostics: List[Diagnostic] = list(diagnostics)

    def _first(self) -> Optional[Diagnostic]:
        errors = [d for d in self.diagnostics if d.severity == "error"]
        return next(iter(errors or self.diagnostics), None)

    @property
    def line(self) -> Optional[int]:
        """The line of the first error."""
        first = self._first()
        return first.line if first else None

    @property
    def column(self) -> Optional[int]:
        """The column of the first error."""
        first = self._first()
        return first.column if first else None

    @property
    def source(self) -> Optional[str]:
        """The line of the text at the first error."""
        first = self._first()
        return first.source if first else None


def parse_diagnostics(text: str) -> List[Diagnostic]:
    """Reads what the compiler prints: `file:line:column: severity: message`, the line, and a mark below it. Any text
    is taken; lines that fit nothing belong to the message above them."""
    import re
    head = re.compile(r"(?:(.*?):(\d+):(\d+): )?(error|warning|remark|note): (.*)$", re.S)
    found: List[Diagnostic] = []
    below: List[str] = []

    def finish() -> None:
        if not found:
            return
        last = found[-1].notes[-1] if found[-1].notes else found[-1]
        while below and not below[-1].strip():
            below.pop()
        if len(below) >= 2 and below[-1].strip() == "^":
            last.source = below[-2]
            del below[-2:]
        if below:
            last.message += "\n" + "\n".join(below)
        below.clear()

    for line in text.split("\n"):
        match = head.match(line)
        if not match:
            below.append(line)
            continue
        finish()
        below.clear()
        file, number, column, severity, message = match.groups()
        diagnostic = Diagnostic(severity, message, file, int(number) if number else None,
                                int(column) if column else None)
        if severity == "note" and found:
            found[-1].notes.append(diagnostic)
        else:
            found.append(diagnostic)
    if not found and text.strip():
        return [Diagnostic("error", text.strip())]
    finish()
    return found
