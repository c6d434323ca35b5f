"""Checks regular expressions against the syntax of Go's regexp, with its words for what is wrong.

Only the syntax is read; nothing is matched.
"""

import re
import unicodedata
from typing import Final

_LARGEST_REPEAT: Final = 1000
_DEEPEST: Final = 1000
_CLASSES: Final = frozenset(
    {
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
        "space", "upper", "word", "xdigit",
    }
)  # fmt: skip
_PERL: Final = frozenset("dDsSwW")
_SIMPLE: Final = frozenset("afnrtvzAbBCQ")
_SCRIPTS: Final = frozenset(
    {
        "Any", "Arabic", "Armenian", "Bengali", "Bopomofo", "Braille", "Cherokee", "Common",
        "Coptic", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek", "Gujarati",
        "Gurmukhi", "Han", "Hangul", "Hebrew", "Hiragana", "Inherited", "Kannada", "Katakana",
        "Khmer", "Lao", "Latin", "Malayalam", "Mongolian", "Myanmar", "Ogham", "Oriya", "Runic",
        "Sinhala", "Syriac", "Tamil", "Telugu", "Thaana", "Thai", "Tibetan", "Yi",
    }
)  # fmt: skip
_REPEAT: Final = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")


class GoRegexpError(ValueError):
    """An expression that Go does not take; the message is Go's."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{part}`")


class _Reader:
    """One walk over an expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.opened: list[int] = []
        self.names: set[str] = set()
        self.operand = False
        """Whether there is something a repetition could repeat."""
        self.repeated = -1
        """Where the repetition before began, -1 if there is none directly before."""

    def read(self) -> None:
        """Walk to the end.

        Raises:
            GoRegexpError: it is not an expression.
        """
        while self.at < len(self.text):
            self._step(self.text[self.at])
        if self.opened:
            raise GoRegexpError("missing closing )", self.text)

    def _step(self, char: str) -> None:
        if char in "*+?":
            self._operator()
            return
        if char == "{":
            match = _REPEAT.match(self.text, self.at)
            if match is not None:
                self._count(match)
                return
        self.repeated = -1
        if char == "(":
            self._group()
        elif char == ")":
            self._close()
        elif char == "|":
            self.operand = False
            self.at += 1
        elif char == "[":
            self._bracket()
            self.operand = True
        elif char == "\\":
            self._escape()
        else:
            self.operand = True
            self.at += 1

    def _operator(self) -> None:
        start = self.at
        self.at += 1
        self._lazy()
        self._repeat(start)

    def _count(self, match: re.Match[str]) -> None:
        start = self.at
        low = int(match[1][:6])
        high = low if match[2] is None else int(match[3][:6]) if match[3] else -1
        if low > _LARGEST_REPEAT or high > _LARGEST_REPEAT or 0 <= high < low:
            raise GoRegexpError("invalid repeat count", match[0])
        self.at = match.end()
        self._lazy()
        self._repeat(start)

    def _lazy(self) -> None:
        if self.text[self.at : self.at + 1] == "?":
            self.at += 1

    def _repeat(self, start: int) -> None:
        part = self.text[start : self.at]
        if self.repeated >= 0:
            whole = self.text[self.repeated : self.at]
            raise GoRegexpError("invalid nested repetition operator", whole)
        if not self.operand:
            raise GoRegexpError("missing argument to repetition operator", part)
        self.repeated = start

    def _group(self) -> None:
        if self.text.startswith("(?", self.at):
            self._special_group()
            return
        self.opened.append(self.at)
        self.at += 1
        self.operand = False

    def _special_group(self) -> None:
        rest = self.text[self.at :]
        named = rest.startswith(("(?P<", "(?<"))
        if named and not rest.startswith(("(?<=", "(?<!")):
            self._named_group(rest)
            return
        match = re.match(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])", rest)
        if match is None or (not match[1] and not match[2] and match[3] == ")"):
            raise GoRegexpError(*self._bad_flags(rest))
        if match[3] == ":":
            self.opened.append(self.at)
        self.at += match.end()
        self.operand = False

    def _bad_flags(self, rest: str) -> tuple[str, str]:
        """Say how far the flags of a group could be read."""
        position, negative, after = 2, False, False
        while position < len(rest):
            char = rest[position]
            position += 1
            if char in "imsU":
                after = True
            elif char == "-" and not negative:
                negative, after = True, False
            elif char in ":)" and (after or not negative):
                break
            else:
                break
        return "invalid or unsupported Perl syntax", rest[:position]

    def _named_group(self, rest: str) -> None:
        end = rest.find(">")
        start = 4 if rest.startswith("(?P<") else 3
        if end < 0:
            raise GoRegexpError("invalid named capture", self.text[self.at :])
        capture, name = rest[: end + 1], rest[start:end]
        if _NAME.fullmatch(name) is None:
            raise GoRegexpError("invalid named capture", capture)
        if name in self.names:
            raise GoRegexpError("duplicate capture group name", name)
        self.names.add(name)
        self.opened.append(self.at)
        self.at += end + 1
        self.operand = False

    def _close(self) -> None:
        if not self.opened:
            raise GoRegexpError("unexpected )", self.text)
        self.opened.pop()
        self.at += 1
        self.operand = True

    def _escape(self) -> None:
        rest = self.text[self.at :]
        if len(rest) == 1:
            raise GoRegexpError("trailing backslash at end of expression", "")
        char = rest[1]
        self.operand = True
        if char == "Q":
            end = rest.find("\\E")
            literal = rest[2:] if end < 0 else rest[2:end]
            self.operand = bool(literal) or self.operand
            self.at += len(rest) if end < 0 else end + 2
        elif char in _PERL or char in "ABbzC":
            if char == "C":
                raise GoRegexpError("invalid escape sequence", "\\C")
            self.at += 2
        elif char in "pP":
            self._unicode()
        else:
            self._character()

    def _unicode(self) -> None:
        rest = self.text[self.at :]
        if len(rest) < 3:
            raise GoRegexpError("invalid character class range", rest)
        if rest[2] == "{":
            end = rest.find("}")
            if end < 0:
                raise GoRegexpError("invalid character class range", rest)
            name, length = rest[3:end], end + 1
        else:
            name, length = rest[2], 3
        if not _is_class(name.removeprefix("^")):
            raise GoRegexpError("invalid character class range", rest[:length])
        self.at += length

    def _character(self) -> int:
        """Read an escaped character; gives its code."""
        rest = self.text[self.at :]
        if len(rest) < 2:
            raise GoRegexpError("trailing backslash at end of expression", "")
        char = rest[1]
        simple = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
        if char in simple or (char.isascii() and not char.isalnum()):
            self.at += 2
            return simple.get(char, ord(char))
        octal = re.match(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})", rest)
        if octal is not None:
            self.at += octal.end()
            return int(octal[1], 8)
        hexadecimal = re.match(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))", rest)
        if hexadecimal is not None:
            code = int((hexadecimal[1] or hexadecimal[2])[:8], 16)
            if code <= 0x10FFFF:
                self.at += hexadecimal.end()
                return code
        raise GoRegexpError("invalid escape sequence", self._bad_escape(rest))

    def _bad_escape(self, rest: str) -> str:
        if rest[1] != "x":
            return rest[:2]
        braced = re.match(r"\\x\{[0-9A-Fa-f]*[^0-9A-Fa-f]?", rest)
        if braced is not None:
            return braced[0]
        return rest[:4] if len(rest) >= 4 and rest[2] in "0123456789abcdefABCDEF" else rest[:3]

    def _bracket(self) -> None:
        start = self.at
        self.at += 1
        if self.text[self.at : self.at + 1] == "^":
            self.at += 1
        first = True
        while self.at < len(self.text) and (first or self.text[self.at] != "]"):
            if self._class_part():
                first = False
                continue
            first = False
            begun = self.at
            low = self._class_character(start)
            if self.text[self.at : self.at + 1] == "-" and self.text[
                self.at + 1 : self.at + 2
            ] not in ("", "]"):
                self.at += 1
                high = self._class_character(start)
                if high < low:
                    raise GoRegexpError("invalid character class range", self.text[begun : self.at])
        if self.at >= len(self.text):
            raise GoRegexpError("missing closing ]", self.text[start:])
        self.at += 1

    def _class_part(self) -> bool:
        """Read a named set inside brackets; says whether there was one."""
        rest = self.text[self.at :]
        if rest.startswith("[:"):
            end = rest.find(":]", 2)
            if end < 0:
                return False
            if rest[2:end].removeprefix("^") not in _CLASSES:
                raise GoRegexpError("invalid character class range", rest[: end + 2])
            self.at += end + 2
            return True
        if rest[:1] == "\\" and rest[1:2] in _PERL and rest[1:2]:
            self.at += 2
            return True
        if rest[:2] in ("\\p", "\\P"):
            self._unicode()
            return True
        return False

    def _class_character(self, start: int) -> int:
        if self.at >= len(self.text):
            raise GoRegexpError("missing closing ]", self.text[start:])
        if self.text[self.at] == "\\":
            return self._character()
        self.at += 1
        return ord(self.text[self.at - 1])


def _is_class(name: str) -> bool:
    if name in _SCRIPTS:
        return True
    known = {unicodedata.category(chr(code)) for code in range(0, 0x3000, 1)}
    return name in known or name in {one[0] for one in known} or name in ("Cs", "Co")


def check_regexp(text: str) -> None:
    """Check an expression.

    Raises:
        GoRegexpError: Go does not take it.
    """
    _Reader(text).read()
