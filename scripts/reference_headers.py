"""Reads a header of include/rapt: its declarations, each with the comment above it, in their groups.

The headers are written in one style, which this script relies on: a comment belongs to the declaration that follows,
and declarations without an empty line between them form a group. Parts that a caller cannot use are left out: function
bodies, private members, and the namespace detail.
"""

import dataclasses
import re

RULE = re.compile(r"^// -{20,} (.*)$")
KEYWORDS = set(
    "if for while switch return sizeof operator requires decltype static_assert defined noexcept alignas void".split()
)


@dataclasses.dataclass
class Group:
    comment: list  # lines, without the slashes
    code: str
    names: list  # the names it declares; the first one is for a heading


@dataclasses.dataclass
class Section:
    title: str
    groups: list


@dataclasses.dataclass
class Header:
    name: str  # "attention.h"
    intro: list
    sections: list


def bare(line):
    """A line without its comment and its strings, for counting braces."""
    return re.sub(r'//.*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', "", line)


def uncommented(line):
    return re.sub(r"^\s*// ?", "", line)


def body_lines(lines):
    """The text between the braces of namespace rapt; without a namespace, everything except lines for C++ only."""
    inside, left_out, found = not any(line.startswith("namespace rapt {") for line in lines), False, []
    for line in lines:
        if line.startswith(("namespace detail {", "#if defined(__cplusplus)")):
            left_out = True
        if line.startswith(("namespace rapt {", "namespace rapt::")):
            inside = True
        elif line.startswith("}  // namespace rapt"):
            inside = False
        elif inside and not left_out and not line.startswith(("#", "extern template")):
            found.append(line)
        if line.startswith(("}  // namespace detail", "#endif")):
            left_out = False
    return found


def closing(text, at):
    """The index of the bracket that closes the one at `at`."""
    pairs, depth = {"(": ")", "{": "}"}, 0
    opens, closes = text[at], pairs[text[at]]
    for place in range(at, len(text)):
        depth += {opens: 1, closes: -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError(f"never closed: {text[at : at + 60]}")


def masked(text):
    """The text at the same length, with comments and strings blanked, so that brackets can be counted."""
    return re.sub(r'//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda found: " " * len(found[0]), text)


def signature_end(head):
    """The end of a function's declaration in `head`, the text before a brace; None if it is not a function."""
    plain = re.sub(r"<[^<>]*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>[^<>]*)*>", lambda found: "_" * len(found[0]), head)
    start = 0
    wanted = re.search(r"\brequires\s*\(", plain)
    if wanted:
        start = closing(plain, wanted.end() - 1) + 1
    opens = plain.find("(", start)
    if opens < 0 or "=" in plain[start:opens].replace("operator==", ""):
        return None
    end = closing(plain, opens) + 1
    if plain[end : end + 1] == "(":  # operator()( … )
        end = closing(plain, end) + 1
    return end + re.match(r"(?:\s*(?:const|noexcept|&&|&)(?!\w))*", plain[end:]).end()


def without_bodies(code):
    """Turns functions that are defined in the header into declarations."""
    hidden, result, kept, begin, at, depth = masked(code), "", 0, 0, 0, 0
    while at < len(code):
        letter = hidden[at]
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "{":
            head = hidden[begin:at]
            end = None if depth else signature_end(head)
            if end is not None:  # a function's body
                result += code[kept : begin + end] + ";"
                at = closing(hidden, at)
                begin = kept = at + 1
            elif depth or not re.match(r"\s*(?:template\b.*)?\s*(?:typedef |enum |struct |class )", head, re.S):
                at = closing(hidden, at)  # a value in braces
            else:
                begin = at + 1
        elif depth == 0 and (letter in ";}" or re.match(r"public:", hidden[at:])):
            begin = at + (len("public:") if letter == "p" else 1)
        at += 1
    return result + code[kept:]


def without_private(code):
    """A class as its users see it."""
    hidden = masked(code)
    found = re.search(r"^ private:\n", hidden, re.M)
    if not found:
        return code
    opens = hidden.index("{")
    end = closing(hidden, opens)
    return code[: found.start()].rstrip() + "\n" + code[end:]


def aligned(code):
    """Aligns the trailing comments of adjacent lines."""
    lines, run = code.split("\n"), []
    for number, line in enumerate([*lines, ""]):
        found = re.match(r"(\s*[^\s/].*?)\s*(// .*)$", line)
        if found:
            run.append((number, found[1], found[2]))
            continue
        width = max((len(before) for _, before, _ in run), default=0)
        for place, before, comment in run:
            lines[place] = f"{before:<{width}}  {comment}"
        run = []
    return "\n".join(lines)


def shown(code):
    """A declaration for the page: without bodies, private members and remarks for tools."""
    code = re.sub(r"[ \t]*// NOLINT[^\n]*", "", re.sub(r"^[ \t]*// NOLINT[^\n]*\n", "", code, flags=re.M))
    code = re.sub(r"\[\[gnu::[^\]]*\]\] ", "", code)
    code = re.sub(r"= \[\] \{.*?\}\(\);", "= …;", code, flags=re.S)  # a value computed by a function
    code = without_bodies(without_private(code))
    code = re.sub(r"^[ \t]*friend class [^\n]*\n", "", code, flags=re.M)
    code = re.sub(r"^inline (?!constexpr)", "", code, flags=re.M)
    return aligned(re.sub(r"\n{2,}", "\n\n", re.sub(r"[ \t]+$", "", code, flags=re.M)).strip("\n"))


def declared(code):
    """The names that a part of a header declares at its outermost level."""
    plain = masked(without_bodies(code))
    flat = ""
    depth = 0
    for letter in plain:  # text in braces is not at that level
        depth -= letter == "}"
        flat += letter if depth == 0 else (" " if letter != "\n" else "\n")
        depth += letter == "{"
    names = re.findall(r"\b(?:struct|class|enum class|enum)\s+(\w+)\s*(?:[:;{]|$)", flat)
    names += re.findall(r"\busing\s+(\w+)\s*=", flat)
    names += re.findall(r"^typedef\b[^;]*?\(\*(\w+)\)", flat, re.M)
    names += re.findall(r"\}\s*(\w+);|^typedef struct \w+ (\w+);", flat, re.M)  # typedef struct { … } name;
    names = [name if isinstance(name, str) else name[0] or name[1] for name in names]
    for values in re.findall(r"^enum \{([^}]*)\}", plain, re.M):
        names += re.findall(r"(\w+) =", values)
    flat = re.sub(r"<[^<>]*(?:<[^<>]*>[^<>]*)*>", "", flat)
    names += [name for name in re.findall(r"(?<![\w:.(*])(\w+)\s*\((?!\*)", flat) if name not in KEYWORDS]
    names += re.findall(r"\bconstexpr\b[^;({=]*?(\w+)\s*=", flat)
    return list(dict.fromkeys(names))


def complete(code):
    """Whether a declaration has ended: at a semicolon, or at the brace of a function."""
    plain = "\n".join(bare(line) for line in code.splitlines()).rstrip()
    return plain.count("{") == plain.count("}") and plain.count("(") == plain.count(")") and plain.endswith((";", "}"))


def read_header(name, text):
    lines = text.splitlines()
    intro = []
    while len(intro) < len(lines) and lines[len(intro)].startswith("//"):
        intro.append(uncommented(lines[len(intro)]))
    sections, comment, code = [Section("", [])], [], ""

    seen = set()

    def finish():
        nonlocal comment, code
        group = Group(comment, shown(code), declared(code))
        comment, code = [], ""
        # Skips forward declarations, repeated declarations and static assertions.
        lines = set(group.code.splitlines())
        announces = all(re.match(r"(class|struct) \w+;|static_assert", line) for line in lines)
        if group.code and not announces and not lines <= seen:
            sections[-1].groups.append(group)
        seen.update(lines)

    for line in body_lines(lines[len(intro) :]):
        rule = RULE.match(line)
        if rule:
            finish()
            sections.append(Section(rule[1], []))
        elif code and not complete(code):
            code += line + "\n"
        elif not line.strip():
            finish()
        elif line.startswith("//") and not line.startswith("// NOLINT"):
            if code:
                finish()
            comment.append(uncommented(line))
        else:
            code += line + "\n"
    finish()
    return Header(name, intro, [section for section in sections if section.groups])
