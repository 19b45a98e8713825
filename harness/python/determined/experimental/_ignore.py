"""What .detignore names, in the way of .gitignore: bytes, wildcards that stop at "/", the last pattern that matches decides."""

import os
import re
from typing import List, NamedTuple, Optional, Pattern, Tuple

_CLASSES = {
    b"alnum": b"a-zA-Z0-9", b"alpha": b"a-zA-Z", b"blank": b" \\t", b"cntrl": b"\\x00-\\x1f\\x7f", b"digit": b"0-9",
    b"graph": b"!-~", b"lower": b"a-z", b"print": b" -~", b"punct": b"!-/:-@\\[-`{-~", b"space": b"\\s", b"upper": b"A-Z",
    b"xdigit": b"0-9A-Fa-f",
}  # fmt: skip
_ALWAYS = b".git/\n__pycache__/\n.detignore\n"
#: A bracket's parts: a named class, a range, one character; each with its backslash.
_PART = re.compile(rb"\[:(?P<name>\w*):\]|(?P<low>\\.|[^\\])-(?P<high>\\.|[^\\\]])|(?P<one>\\.|[^\\])", re.DOTALL)


class _Line(NamedTuple):
    segments: List[Optional[Pattern[bytes]]]  # None: "**"
    keeps: bool
    only_directories: bool


def _bracket(pattern: bytes, at: int) -> Tuple[bytes, int]:
    """What stands between "[" and "]" as a regular expression, and where it ends. ValueError: it does not end."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    out, first = b"", True
    while first or pattern[at : at + 1] != b"]":
        part = _PART.match(pattern, at)
        if part is None:
            raise ValueError("[ without ]")
        at, first = part.end(), False
        if part["name"] is not None:
            out += b"[" + _CLASSES[part["name"]] + b"]|"
            continue
        low, high = part["low"] or part["one"], part["high"] or part["one"]
        out += b"[" + re.escape(low[-1:]) + b"-" + re.escape(high[-1:]) + b"]|"
    any_of = b"(?:" + out[:-1] + b")" if out else b"(?!)"
    return (b"(?!" + any_of + b")." if negated else any_of), at + 1


def _expression(segment: bytes) -> Pattern[bytes]:
    """Of a name between two "/". What is no pattern, such as a bracket that stays open, matches nothing."""
    out, at = b"", 0
    try:
        while at < len(segment):
            c, at = segment[at : at + 1], at + 1
            if c == b"*":
                out += b".*"
            elif c == b"?":
                out += b"."
            elif c == b"[":
                piece, at = _bracket(segment, at)
                out += piece
            elif c == b"\\":
                if at == len(segment):
                    raise ValueError("\\ at the end")
                out, at = out + re.escape(segment[at : at + 1]), at + 1
            else:
                out += re.escape(c)
        return re.compile(out, re.DOTALL)
    except (KeyError, ValueError, re.error):  # a class or a range that is none
        return re.compile(b"(?!)")


def _trimmed(line: bytes) -> bytes:
    """Without the spaces at its end, but for one after a backslash."""
    kept = at = 0
    while at < len(line):
        escaped = line[at : at + 1] == b"\\"
        at += 1 + escaped
        if escaped or line[at - 1 : at] != b" ":
            kept = at
    return line[:kept]


def _read(line: bytes) -> _Line:
    keeps = line.startswith(b"!")
    pattern = line[keeps:]
    only_directories = pattern.endswith(b"/")
    pattern = pattern[: len(pattern) - only_directories]
    segments = (pattern[1:] if pattern.startswith(b"/") else pattern).split(b"/")
    if b"/" not in pattern:
        segments.insert(0, b"**")
    return _Line([None if s == b"**" else _expression(s) for s in segments], keeps, only_directories)


def _matches(segments: List[Optional[Pattern[bytes]]], path: List[bytes]) -> bool:
    """Segment by segment; "**" stands for any number of directories, and at the end for all in one."""
    if not segments or not path:
        return not segments and not path
    if segments[0] is None:
        return len(segments) == 1 or any(_matches(segments[1:], path[i:]) for i in range(len(path)))
    return segments[0].fullmatch(path[0]) is not None and _matches(segments[1:], path[1:])


class Ignore:
    def __init__(self, text: bytes) -> None:
        text = text[3:] if text.startswith(b"\xef\xbb\xbf") else text
        lines = [line[:-1] if line.endswith(b"\r") else line for line in text.split(b"\n")]
        lines = [_trimmed(line) for line in lines if not line.startswith(b"#")] + _ALWAYS.splitlines()
        self._lines = [_read(line) for line in lines if line]

    def names(self, path: str, is_directory: bool) -> bool:
        """Whether it is to be left out; what is in a directory that is named, nobody asks for."""
        parts = os.fsencode(path).split(b"/")
        for line in reversed(self._lines):
            if (is_directory or not line.only_directories) and _matches(line.segments, parts):
                return not line.keeps
        return False
