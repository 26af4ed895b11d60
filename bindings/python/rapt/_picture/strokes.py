"""A small font of strokes, so that a PNG needs no font library.

A glyph is a few strokes of a round pen. A stroke is a list of points, two characters each: x, then y, as hexadecimal
digits. The baseline is at y = 3, lowercase letters end at a (7 above it), capitals at d (10 above it). A point after
"~" bends the stroke towards itself, as in TrueType: two such points in a row have a point of the stroke halfway between
them. A "z" at the end closes the stroke. "0303" is a dot.

It has ASCII, some symbols, and letters that Unicode decomposes into one of these and diacritics ("é", "Ġ"); `can_draw`
tells which.
"""

from __future__ import annotations

import math
import unicodedata

CAPITAL = 10.0  # the height of a capital, in units of the grid
PEN = 1.1  # the width of a stroke
_SPACING = 2.7  # between glyphs
_BASELINE = 3
_SMALL = 7.0  # the height of a lowercase letter
_SPACE = 2.0  # the width of " "

Point = tuple[float, float]
Stroke = list[Point]

_GLYPHS = """
! 0d06 0303
" 0d0a 3d3a
# 2d13 6d53 0a7a 0676
$ 6b~6d~0d~08~68~63~0305 3f31
% ~09~39~3d~0dz 8d13 ~63~93~97~67z
& 832b~2d~5d~5a~08~03~6377
' 0d0a
( 2e~0c~0422
) 0e~2c~2402
* 3d38 0c69 6c09
+ 3a34 0767
, 1401
- 0747
. 0303
/ 5e02
0 ~03~63~6d~0dz
1 1b3d33 1353
2 0b~0d~6d~690363
3 0b~0d~5d~5828~68~63~0305
4 4d0666 4d43
5 5d1d08~19~6a~63~0305
6 5d~0c06 ~09~69~63~03z
7 0d6d23
8 ~18~58~5d~1dz ~03~63~68~08z
9 ~0d~6d~67~07z 6a~6413
: 0909 0404
; 1919 1401
< 6b0764
= 0959 0555
> 0b6704
? 0b~0d~6d~6836 3333
@ 7a76~74~a4~ae~0e~0181 ~36~76~7a~3az
A 034d83 1676
B 0d3d~6d~683808 38~78~733303 030d
C 7b~7d~0d~03~7375
D 030d2d~7d~732303
E 6d0d0363 0858
F 6d0d03 0858
G 7b~7d~0d~03~737848
H 030d 737d 0878
I 030d
J 4d46~43~0305
K 030d 7d07 2973
L 0d0363
M 030d468d83
N 030d737d
O ~03~83~8d~0dz
P 030d3d~6d~673707
Q ~03~83~8d~0dz 5682
R 030d3d~6d~673707 3773
S 6b~6d~0d~08~68~63~0305
T 0d6d 3d33
U 0d07~03~73777d
V 0d438d
W 0d235c83ad
X 0d73 7d03
Y 0d488d 4843
Z 0d7d0373
[ 2e0e0222
\\ 0e52
] 0e2e2202
^ 0a2d4a
_ 0262
` 0d2b
a 09~0a~5a5853 5727~07~0323~5355
b 0d03 ~0a~5a~53~03z
c 59~5a~0a~03~5354
d 5d53 ~0a~5a~53~03z
e 0757~5a~0a~03~5354
f 3d~1d1b13 0a3a
g 5a52~50~0001 ~0a~5a~53~03z
h 0d03 07~0a~5a5753
i 0a03 0d0d
j 2a22~2000 2d2d
k 0d03 5a05 2753
l 0d05~0323
m 0a03 07~0a~4a4743 47~4a~8a8783
n 0a03 07~0a~5a5753
o ~03~53~5a~0az
p 0a00 ~0a~5a~53~03z
q 5a50 ~0a~5a~53~03z
r 0a03 07~0a3a
s 49~4a~0a~07~46~43~0304
t 1c15~1333 0a3a
u 0a06~03~5356 5a53
v 0a336a
w 0a2349638a
x 0a53 5a03
y 0a33 6a20
z 0a5a0353
{ 3e~1e1b~1808~1815~1232
| 0e02
} 0e~2e2b~2838~2825~2202
~ 07~1a~4558
· 0707
… 0303 3333 6363
× 0a55 5a05
≤ 6c0966 0464
– 0747
— 0787
→ 0787 5a8754
← 0787 3a0734
↵ 7c7707 3a0734
⇥ 0767 3a6734 8a84
␣ 05036365
▁ 0363
∅ ~04~64~6b~0bz 6c03
“ 1d0b 4d3b
” 1d0b 4d3b
‘ 1d0b
’ 1d0b
ß 030b~0d~5d~5828~68~6323
ø ~03~53~5a~0az 5b02
Ø ~03~83~8d~0dz 8e02
æ 09~0a~4a48 4727~07~0323~4345 4787~8a~4a~43~8384
ł 0d05~0323 0739
ı 0a03
"""

# Diacritics are placed above the x-height, or above a capital; x = 2 is the middle of the letter.
_MARKS = """
\u0300 1d3b
\u0301 3d1b
\u0302 0b2d4b
\u0303 0b~1e~3a4d
\u0304 0c4c
\u0306 0d~0b~4b4d
\u0307 2c2c
\u0308 0c0c 4c4c
\u030a ~1b~3b~3e~1ez
\u030b 1d0b 4d3b
\u030c 0d2b4d
"""
_BELOW = {"\u0327": [[(2.0, 0.0), (2.6, -1.2), (1.0, -2.4)]], "\u0328": [[(2.6, 0.0), (1.6, -1.4), (3.2, -2.4)]]}


def _coordinate(character: str) -> int:
    return int(character, 16)


def _bend(start: Point, control: Point, end: Point) -> Stroke:
    """A quadratic curve, without its start."""
    steps = max(3, round(math.dist(start, control) + math.dist(control, end)))
    points: Stroke = []
    for step in range(1, steps + 1):
        t = step / steps
        x, y = ((1 - t) ** 2 * a + 2 * t * (1 - t) * c + t * t * b for a, c, b in zip(start, control, end))
        points.append((x, y))
    return points


def _middle(a: Point, b: Point) -> Point:
    return ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)


def _stroke(code: str) -> Stroke:
    points, bends, at = [], [], 0
    closed = code.endswith("z")
    code = code.rstrip("z")
    while at < len(code):
        bends.append(code[at] == "~")
        at += bends[-1]
        points.append((float(_coordinate(code[at])), float(_coordinate(code[at + 1]) - _BASELINE)))
        at += 2
    if closed:  # starts, and ends, halfway between its last and its first point
        start = _middle(points[-1], points[0])
        points, bends = [start, *points, start], [False, *bends, False]
    line = [points[0]]
    for n in range(1, len(points)):
        if bends[n]:
            line += _bend(line[-1], points[n], _middle(points[n], points[n + 1]) if bends[n + 1] else points[n + 1])
        elif not bends[n - 1]:
            line.append(points[n])
    return line


_glyphs: dict[str, list[Stroke]] = {}  # read when they are first needed
_marks: dict[str, list[Stroke]] = {}


def _table() -> tuple[dict[str, list[Stroke]], dict[str, list[Stroke]]]:
    if not _marks:
        for to, text in ((_glyphs, _GLYPHS), (_marks, _MARKS)):
            for name, *codes in (line.split(" ") for line in text.strip().split("\n")):
                to[name] = [_stroke(code) for code in codes]
        _marks.update(_BELOW)
    return _glyphs, _marks


def can_draw(text: str) -> bool:
    glyphs, marks = _table()
    return all(c == " " or c in glyphs or c in marks for c in unicodedata.normalize("NFD", text))


def _right(strokes: list[Stroke]) -> float:
    return max(x for stroke in strokes for x, _ in stroke)


def strokes_of(text: str) -> tuple[list[Stroke], float]:
    """The strokes of a line of text, with y upwards from the baseline, and its width. Characters that cannot be drawn
    become "?"."""
    glyphs, marks = _table()
    line: list[Stroke] = []
    x, last, middle, top = 0.0, "", 0.0, 0.0
    for character in unicodedata.normalize("NFD", text):
        if character in marks:
            lift = max(0.0, top - _SMALL) + 0.6 if character not in _BELOW else 0.0
            if last in "ij":  # the diacritic replaces the dot
                line.pop()
            line += [[(px + middle - 2.0, py + lift) for px, py in stroke] for stroke in marks[character]]
            last = character
            continue
        last = character
        if character == " ":
            x += _SPACE + _SPACING
            continue
        strokes = glyphs.get(character, glyphs["?"])
        line += [[(px + x, py) for px, py in stroke] for stroke in strokes]
        width = _right(strokes)
        middle, top = x + width / 2, max(y for stroke in strokes for _, y in stroke)
        if character in "ij":
            top = _SMALL
        x += width + _SPACING
    return line, max(0.0, x - _SPACING)
