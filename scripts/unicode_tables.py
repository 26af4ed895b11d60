#!/usr/bin/env python3
"""Writes src/models/tokenizer/unicode_tables.cc: what the tokenizers of src/models need to know about each code point.

    unicode_tables.py FILE            writes the file
    unicode_tables.py --check FILE    fails if the file is not what would be written

The source is Python's unicodedata, version 14.0 (Python 3.11). Hugging Face's tokenizers do not have one version of
Unicode but one for each of their dependencies, between 7 and 17. DIFFERENCES and the other constants say where its
release 0.23 differs from unicodedata 14.0. bindings/python/interop/test_tokenizers.py compares every code point.
"""

import pathlib
import sys
import unicodedata

VERSION = "14.0.0"

# The bits of a code point's classes, as in src/models/tokenizer/unicode.h.
LETTER, NUMBER, SPACE, PUNCTUATION, NONSPACING, OTHER, MARK, WORD = (1 << bit for bit in range(8))

# Assigned after Unicode 14, known to the regular expressions of tokenizers.
NEW_LETTERS = (
    "1C89-1C8A A7CB-A7CD A7DA-A7DC 105C0-105F3 10D4A-10D65 10D6F-10D85 10EC2-10EC4 1123F-11240 11380-11389 1138B 1138E "
    "11390-113B5 113B7 113D1 113D3 11BC0-11BE0 11F02 11F04-11F10 11F12-11F33 1342F 13441-13446 13460-143FA 16100-1611D "
    "16D40-16D6C 18CFF 1B132 1B155 1DF25-1DF2A 1E030-1E06D 1E4D0-1E4EB 1E5D0-1E5ED 1E5F0 2B739 2EBF0-2EE5D 31350-323AF"
)
NEW_NUMBERS = (
    "10D40-10D49 116D0-116E3 11BF0-11BF9 11F50-11F59 16130-16139 16D70-16D79 1CCF0-1CCF9 1D2C0-1D2D3 1E4F0-1E4F9 "
    "1E5F1-1E5FA"
)
# Where tokenizers differ from unicodedata, for each class: code points that only tokenizers, and that only unicodedata
# put into it.
DIFFERENCES = {
    LETTER: (NEW_LETTERS, ""),
    NUMBER: (NEW_NUMBERS, ""),
    PUNCTUATION: (
        "166D 111C9",
        "61D 9FD A76 C77 C84 1B7D-1B7E 2E43-2E4F 2E52-2E5D 10EAD 10F55-10F59 10F86-10F89 1144B-1144F 1145A-1145B 1145D "
        "11660-1166C 116B9 1183B 11944-11946 119E2 11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11C41-11C45 11C70-11C71 "
        "11EF7-11EF8 11FFF 12FF1-12FF2 16E97-16E9A 16FE2 1E95E-1E95F",
    ),
    NONSPACING: (
        "1734",
        "7FD 898-89F 8CA-8E1 9FE AFA-AFF B55 C04 C3C D00 D3B-D3C D81 EBA 180F 1885-1886 1ABF-1ACE 1DF6-1DFB A82C A8C5 "
        "A8FF A9BD 10D24-10D27 10EAB-10EAC 10F46-10F50 10F82-10F85 11070 11073-11074 110C2 111C9 111CF 1123E 1133B "
        "11438-1143F 11442-11444 11446 1145E 1182F-11837 11839-1183A 1193B-1193C 1193E 11943 119D4-119D7 119DA-119DB "
        "119E0 11A01-11A0A 11A33-11A38 11A3B-11A3E 11A47 11A51-11A56 11A59-11A5B 11A8A-11A96 11A98-11A99 11C30-11C36 "
        "11C38-11C3D 11C3F 11C92-11CA7 11CAA-11CB0 11CB2-11CB3 11CB5-11CB6 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 "
        "11D47 11D90-11D91 11D95 11D97 11EF3-11EF4 16F4F 16FE4 1CF00-1CF2D 1CF30-1CF46 1E000-1E006 1E008-1E018 "
        "1E01B-1E021 1E023-1E024 1E026-1E02A 1E130-1E136 1E2AE 1E2EC-1E2EF 1E944-1E94A",
    ),
    OTHER: ("", "890-891 8E2 110CD 13430-13438"),
    MARK: (
        "1CF2-1CF3",
        "7FD 898-89F 8CA-8D3 9FE AFA-AFF B55 C04 C3C D00 D3B-D3C D81 EBA 1715 180F 1ABF-1ACE 1CF7 1DF6-1DFA A82C A8FF "
        "10D24-10D27 10EAB-10EAC 10F46-10F50 10F82-10F85 11070 11073-11074 110C2 11145-11146 111C9 111CE-111CF 1133B "
        "1145E 1182C-1183A 11930-11935 11937-11938 1193B-1193E 11940 11942-11943 119D1-119D7 119DA-119E0 119E4 "
        "11A01-11A0A 11A33-11A39 11A3B-11A3E 11A47 11A51-11A5B 11A8A-11A99 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 "
        "11D47 11D8A-11D8E 11D90-11D91 11D93-11D97 11EF3-11EF6 16F4F 16F7F-16F87 16FE4 16FF0-16FF1 1CF00-1CF2D "
        "1CF30-1CF46 1E130-1E136 1E2AE 1E2EC-1E2EF",
    ),
    WORD: (
        "897 CF3 ECE 24B6-24E9 10D69-10D6D 10EFC-10EFF 11241 113B8-113C0 113C2 113C5 113C7-113CA 113CC-113D0 113D2 "
        "113E1-113E2 11F00-11F01 11F03 11F34-11F3A 11F3E-11F42 11F5A 13440 13447-13455 1611E-1612F 1E08F 1E4EC-1E4EF "
        "1E5EE-1E5EF 1F130-1F149 1F150-1F169 1F170-1F189 10D40-10D49 116D0-116E3 11BF0-11BF9 11F50-11F59 16130-16139 "
        "16D70-16D79 1CCF0-1CCF9 1E4F0-1E4F9 1E5F1-1E5FA " + NEW_LETTERS,
        "",
    ),
}
# Marks whose combining class tokenizers do not know, and so take as 0.
NO_COMBINING_CLASS = (
    "7FD 898-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ACE 1DF6-1DFA A82C 10D24-10D27 10EAB-10EAC 10F46-10F50 "
    "10F82-10F85 11070 1133B 1145E 11839-1183A 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 "
    "16FF0-16FF1 1E130-1E136 1E2AE 1E2EC-1E2EF"
)
# Decompositions that tokenizers do not know.
NO_DECOMPOSITION = (
    "32FF A7F2-A7F4 AB69 10781-10785 10787-107B0 107B2-107BA 11938 1F16C 1FBF0-1FBF9"
)
# Lower case that only tokenizers know: the first and the last capital, and the lower case of the first.
NEW_LOWER = [
    (0x1C89, 0x1C89, 0x1C8A), (0xA7CB, 0xA7CB, 0x264), (0xA7CC, 0xA7CC, 0xA7CD), (0xA7CE, 0xA7CE, 0xA7CF),
    (0xA7D2, 0xA7D2, 0xA7D3), (0xA7D4, 0xA7D4, 0xA7D5), (0xA7DA, 0xA7DA, 0xA7DB), (0xA7DC, 0xA7DC, 0x19B),
    (0x10D50, 0x10D65, 0x10D70), (0x16EA0, 0x16EB8, 0x16EBB),
]  # fmt: skip

SPACES = "9-D 20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"
ASCII_PUNCTUATION = "21-2F 3A-40 5B-60 7B-7E"
LAST = 0x10FFFF
CODE_POINTS = [point for point in range(LAST + 1) if not 0xD800 <= point < 0xE000]

# The digits of numbers in the tables: printable ASCII, without the two characters that a string must escape.
DIGITS = [chr(code) for code in range(0x23, 0x7F) if chr(code) != "\\"]
HALF = 45


def points(ranges):
    """The code points of "7FD 898-89F"."""
    for part in ranges.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def number(value):
    """A number of 0 or more: leading digits to base 46, from the digit 45 on, and a last digit to base 45."""
    leading, last = divmod(value, HALF)
    digits = DIGITS[last]
    while leading:
        leading, digit = divmod(leading, HALF + 1)
        digits = DIGITS[HALF + digit] + digits
    return digits


def signed(value):
    return number(2 * value if value >= 0 else -2 * value - 1)


def classes():
    """The classes of each code point, as bits."""
    found = dict.fromkeys(range(LAST + 1), 0)
    for point in CODE_POINTS:
        category = unicodedata.category(chr(point))
        bits = 0
        if category[0] == "L":
            bits |= LETTER | WORD
        elif category[0] == "N":
            bits |= NUMBER | (WORD if category in ("Nd", "Nl") else 0)
        elif category[0] == "P":
            bits |= PUNCTUATION | (WORD if category == "Pc" else 0)
        elif category[0] == "M":
            bits |= MARK | WORD | (NONSPACING if category == "Mn" else 0)
        elif category in ("Cc", "Cf", "Co"):
            bits |= OTHER
        found[point] = bits
    for ranges, bit in ((SPACES, SPACE), (ASCII_PUNCTUATION, PUNCTUATION), ("200C-200D", WORD)):
        for point in points(ranges):
            found[point] |= bit
    for bit, (theirs, not_theirs) in DIFFERENCES.items():
        for point in points(theirs):
            found[point] |= bit
        for point in points(not_theirs):
            found[point] &= ~bit
    return found


def runs(values):
    """Pairs of a length and a value, for consecutive code points from 0 on."""
    text, start = [], 0
    for point in range(1, LAST + 2):
        if point > LAST or values[point] != values[start]:
            text.append(number(point - start) + number(values[start]))
            start = point
    return text


def combining():
    found = dict.fromkeys(range(LAST + 1), 0)
    for point in CODE_POINTS:
        found[point] = unicodedata.combining(chr(point))
    for point in points(NO_COMBINING_CLASS):
        found[point] = 0
    return found


def lower():
    """Runs of capitals: the distance from the last run, their number, their step, the distance to the lower case."""
    found = {}
    for point in CODE_POINTS:
        small = chr(point).lower()
        if len(small) == 1 and ord(small) != point:
            found[point] = ord(small)
    for first, last, small in NEW_LOWER:
        for point in range(first, last + 1):
            found[point] = small + point - first
    grouped = []  # [first, last, step, distance]
    for point in sorted(found):
        distance = found[point] - point
        if grouped and grouped[-1][3] == distance:
            first, last, step, _ = grouped[-1]
            if point - last in (1, 2) and (first == last or point - last == step):
                grouped[-1] = [first, point, point - last, distance]
                continue
        grouped.append([point, point, 1, distance])
    text, previous = [], 0
    for first, last, step, distance in grouped:
        text.append(number(first - previous) + number((last - first) // step + 1) + number(step) + signed(distance))
        previous = first
    return text


def decompositions(compatible):
    """What each code point decomposes into in one step: the distance from the last one, twice the number of parts (and
    1 more if the parts compose again), and each part's distance from the same part of the last one."""
    unknown = set(points(NO_DECOMPOSITION))
    text, previous, parts_before = [], 0, [0] * 32
    for point in CODE_POINTS:
        decomposition = unicodedata.decomposition(chr(point))
        if not decomposition or decomposition.startswith("<") != compatible or point in unknown:
            continue
        parts = [int(part, 16) for part in decomposition.split() if not part.startswith("<")]
        composes = len(parts) == 2 and not compatible and unicodedata.normalize("NFC", chr(point)) == chr(point)
        entry = number(point - previous) + number(2 * len(parts) + composes)
        for place, part in enumerate(parts):
            entry += signed(part - parts_before[place])
            parts_before[place] = part
        text.append(entry)
        previous = point
    return text


def constant(name, entries):
    lines, line = [], ""
    for entry in entries:
        if len(line) + len(entry) > 112:
            lines.append(line)
            line = ""
        line += entry
    lines.append(line)
    body = "\n".join(f'    "{line}"' for line in lines)
    return f"const char* const {name} =\n{body};\n"


def tables():
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"unicode_tables: this Python has Unicode {unicodedata.unidata_version}; the tables need {VERSION}")
    parts = [
        constant("kClassRuns", runs(classes())),
        constant("kCombiningRuns", runs(combining())),
        constant("kLowerRuns", lower()),
        constant("kCanonicalDecompositions", decompositions(compatible=False)),
        constant("kCompatibleDecompositions", decompositions(compatible=True)),
    ]
    return f"""// Written by scripts/unicode_tables.py from Unicode {VERSION}: do not edit. unicode.cc reads these numbers.
#include "models/tokenizer/unicode_tables.h"

// clang-format off
namespace rapt::models {{

{chr(10).join(parts)}
}}  // namespace rapt::models
"""


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        same = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8") == tables()
        print("the same" if same else f"{sys.argv[2]} is not what scripts/unicode_tables.py writes")
        return 0 if same else 1
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    pathlib.Path(sys.argv[1]).write_text(tables(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
