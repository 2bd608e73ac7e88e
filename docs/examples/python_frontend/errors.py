"""Errors that point at a line of the Python source."""
import linecache

import qdc


class FrontendError(qdc.CompileError):
    """Python that the frontend does not take. `line`, `column` and `source` say where it stands."""


def fail(file, node, message):
    """Raises the error for a node of the syntax tree."""
    line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
    source = linecache.getline(file, line).rstrip("\n") if line else None
    diagnostic = qdc.Diagnostic("error", message, file, line, None if column is None else column + 1, source or None)
    raise FrontendError(str(diagnostic), [diagnostic])


def with_sources(error):
    """The compiler's error with lines of the Python source, where it names places in it."""
    for diagnostic in error.diagnostics:
        for place in [diagnostic] + diagnostic.notes:
            if not place.source and place.file and place.line:
                place.source = linecache.getline(place.file, place.line).rstrip("\n") or None
    return qdc.CompileError("\n".join(map(str, error.diagnostics)), error.diagnostics)
