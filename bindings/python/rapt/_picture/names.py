"""Tokens as labels: makes every character visible, and computes the width."""

from __future__ import annotations

import unicodedata

_SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍", "\x7f": "␡", "\xa0": "␣"}
_DOTTED_CIRCLE, _JOINER = "\u25cc", "\u200d"
LONGEST = 12  # columns of a label


def visible(token) -> str:
    """A token in printable form: spaces and control characters as symbols, other invisible characters as escapes."""
    if isinstance(token, bytes):
        token = token.decode("utf-8", errors="backslashreplace")
    text = str(token)
    if not text:
        return "∅"
    if len(text) > 1:  # spaces inside are visible as they are; those at the ends are not
        inner = text.strip(" ")
        begin = len(text) - len(text.lstrip(" "))
        text = "␣" * begin + inner + "␣" * (len(text) - begin - len(inner))
    shown = "".join(_sign(character, text[n - 1 : n]) for n, character in enumerate(text))
    return _DOTTED_CIRCLE + shown if unicodedata.combining(shown[0]) else shown


def _sign(character: str, before: str) -> str:
    if character == " " or (character.isprintable() and not 0xFFFE <= ord(character) & 0xFFFF <= 0xFFFF):
        return _SIGNS[" "] if character == " " and not before else character
    if character in _SIGNS:
        return _SIGNS[character]
    if ord(character) < 0x20:
        return chr(0x2400 + ord(character))  # the pictures of control characters
    if character == _JOINER and before and unicodedata.category(before) in ("So", "Sk", "Mn"):
        return character  # joins several emoji into one
    return character.encode("ascii", errors="backslashreplace").decode("ascii")


def columns(text: str) -> int:
    """The width in terminal columns: two for a CJK character, none for a combining mark."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character == _JOINER or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, most: int = LONGEST) -> str:
    """Shortens to at most this many columns, with "…" where text was cut."""
    if columns(text) <= most:
        return text
    kept, room = [], most - 1
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def width(text: str) -> float:
    """The approximate width of a line in a common sans serif font, relative to the font size."""
    return sum(_width(character) for character in text)


def _width(character: str) -> float:
    if _columns(character) == 0:
        return 0.0
    if _columns(character) == 2:
        return 1.05
    if character in "ijl.,:;'|!I ·":
        return 0.31
    if character in "mwMW@%…—→←↵⇥␣":
        return 0.9
    if character in "ftr()[]{}/\\\"-":
        return 0.4
    return 0.7 if character.isupper() else 0.58


def quoted(names: list[str] | None, index: int) -> str:
    """"4 “cat”", or "4"."""
    return f"{index} “{names[index]}”" if names else f"{index}"


def one_line(text) -> str:
    """A title: spaces stay as they are, other invisible characters are made visible."""
    return "" if text is None else " ".join(visible(word) for word in str(text).split())
