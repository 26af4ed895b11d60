"""The pages of the reference: declarations with their comments, as HTML that needs only its style sheet."""

import html
import re

STYLE = """
:root { --ink: #1d2328; --quiet: #667078; --paper: #ffffff; --code: #f5f6f7; --line: #e2e5e8; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #d9dee3; --quiet: #8d979f; --paper: #14181b; --code: #1c2226; --line: #2c3338; --link: #6db3f2; }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper); font: 16px/1.55 system-ui, sans-serif; display: flex; }
nav { flex: 0 0 16rem; padding: 2rem 1rem 2rem 2rem; border-right: 1px solid var(--line); min-height: 100vh;
      font-size: 14px; }
nav p { margin: 1.2rem 0 0.3rem; color: var(--quiet); }
nav a { display: block; padding: 0.1rem 0; }
nav a.here { color: var(--ink); font-weight: 600; }
main { flex: 1; min-width: 0; max-width: 70rem; padding: 1.5rem 3rem 6rem; }
h1 { font-size: 1.7rem; margin: 0.5rem 0 1rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 0.5rem; border-bottom: 1px solid var(--line); padding-bottom: 0.3rem; }
h3 { font: 600 1rem/1.5 ui-monospace, monospace; margin: 2.2rem 0 0.4rem; }
h3 a { color: inherit; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
p { margin: 0.5rem 0; max-width: 46rem; }
code { font: 0.9em ui-monospace, monospace; background: var(--code); padding: 0 0.2em; border-radius: 3px; }
pre { font: 12.5px/1.5 ui-monospace, monospace; background: var(--code); border: 1px solid var(--line);
      border-radius: 5px; padding: 0.7rem 1rem; overflow-x: auto; margin: 0.6rem 0; }
pre code { background: none; padding: 0; font: inherit; }
pre i { color: var(--quiet); font-style: normal; }
table { border-collapse: collapse; width: 100%; }
td { padding: 0.25rem 1rem 0.25rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
td:first-child { white-space: nowrap; font: 14px ui-monospace, monospace; }
dl { margin: 0.4rem 0; display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; max-width: 52rem; }
dt { font: 14px/1.6 ui-monospace, monospace; }
dd { margin: 0; }
.all { columns: 3 14rem; font: 13px/1.7 ui-monospace, monospace; }
.all a { display: block; break-inside: avoid; overflow: hidden; text-overflow: ellipsis; }
@media (max-width: 60rem) {
  body { display: block; }
  nav { min-height: 0; border: 0; padding: 1rem; }
  main { padding: 1rem; }
}
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="style.css">
<body>
<nav>
<a href="index.html">rapt {version}</a>
{navigation}
</nav>
<main>
{body}
</main>
</body>
</html>
"""


class Links:
    """The page of each name. The last part of a name after :: or . is also an entry, if it is unique."""

    def __init__(self):
        self.places = {}

    def add(self, name, page):
        self.places.setdefault(name, f"{page}#{name}")

    def linked(self, text):
        """Code as HTML, with a link on every name that has an entry."""

        def link(found):
            place = self.places.get(found[0])
            return f'<a href="{place}">{found[0]}</a>' if place else found[0]

        return re.sub(r"(?<![\w&#])[A-Za-z_]\w*(?!\w)", link, html.escape(text, quote=False))


def code_html(code, links, comment="//"):
    """A declaration: names are links, comments are dimmed."""
    lines = []
    for line in code.splitlines():
        at = line.find(comment + " ")
        before, after = (line, "") if at < 0 else (line[:at], line[at:])
        quiet = f"<i>{html.escape(after, quote=False)}</i>" if after else ""
        lines.append(links.linked(before) + quiet)
    return "<pre><code>" + "\n".join(lines) + "</code></pre>"


def inline_html(text, links):
    """A sentence: `code` between backticks, and names of headers and declarations that are links."""
    parts = re.split(r"`([^`]*)`", text)
    out = ""
    for number, part in enumerate(parts):
        if number % 2:
            out += f"<code>{links.linked(part)}</code>"
            continue
        escaped = html.escape(part, quote=False)
        escaped = re.sub(r"\brapt/(\w+)\.h\b", r'<a href="\1.html">rapt/\1.h</a>', escaped)
        # Only names that cannot be English words: with an inner capital, an underscore or ::.
        escaped = re.sub(
            r"(?<![\w/>#.])(?:[A-Za-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w*)(?![\w./])",
            lambda found: links.linked(found[0]),
            escaped,
        )
        out += escaped
    return out


def arguments_html(block, links):
    """Parses lines of the form `name: description`, with indented continuation lines; None if they have another
    form."""
    indent = min(len(line) - len(line.lstrip()) for line in block if line.strip())
    entries = []
    for line in block:
        found = re.match(r"(\*{0,2}\w[\w, ]*): (.*)", line[indent:])
        if found:
            entries.append([found[1], found[2]])
        elif entries and line.startswith(" " * (indent + 1)):
            entries[-1][1] += " " + line.strip()
        elif line.strip():
            return None
    listed = "".join(f"<dt>{html.escape(name)}</dt><dd>{inline_html(text, links)}</dd>" for name, text in entries)
    return f"<dl>{listed}</dl>"


def prose_html(lines, links, comment="//"):
    """A comment: paragraphs, and indented code; in Python, indented text may be a list of arguments."""
    out, paragraph, block = [], [], []

    def flush():
        if paragraph:
            out.append(f"<p>{inline_html(' '.join(paragraph), links)}</p>")
            paragraph.clear()
        while block and not block[-1].strip():
            block.pop()
        python = block and comment == "#"
        words = f"<p>{inline_html(' '.join(line.strip() for line in block), links)}</p>"
        special = arguments_html(block, links) if python else None
        if python and out and out[-1] == "<p>Returns:</p>":
            special = words
        if special:
            out.append(special)
            block.clear()
        elif block:
            indent = min(len(line) - len(line.lstrip()) for line in block if line.strip())
            out.append(code_html("\n".join(line[indent:] for line in block), links, comment))
            block.clear()

    for line in lines:
        if line.startswith("  "):
            if paragraph:
                flush()
            block.append(line)
        elif not line.strip():
            if block:
                block.append("")
            else:
                flush()
        else:
            if block:
                flush()
            paragraph.append(line.strip())
    flush()
    return "\n".join(out)


def heading(names):
    """The names that a group declares, each with an anchor."""
    return "<h3>" + ", ".join(f'<a id="{name}" href="#{name}">{name}</a>' for name in names) + "</h3>"


def header_body(header, links, page):
    title = f"rapt/{header.name}"
    out = [f"<h1>{title}</h1>", prose_html(header.intro, links)]
    out.append(f'<pre><code>#include "{title}"</code></pre>')
    placed = set()
    for section in header.sections:
        if section.title:
            out.append(f"<h2>{html.escape(section.title)}</h2>")
        for group in section.groups:
            new = [name for name in group.names if name not in placed]
            placed.update(new)
            if new:
                shown = new if len(new) <= 4 else new[:1]
                out.append(heading(shown) + "".join(f'<a id="{name}"></a>' for name in new[len(shown) :]))
            out.append(prose_html(group.comment, links))
            out.append(code_html(group.code, links))
    return "\n".join(part for part in out if part)


def python_body(functions, classes, links):
    out = ["<h1>Python: rapt</h1>", code_html("import rapt", links, "#")]
    if functions:
        out.append("<h2>Functions</h2>")
    for function in functions:
        out += [
            heading([function.name]),
            code_html(function.signature, links, "#"),
            prose_html(function.doc.splitlines(), links, "#"),
        ]
    if classes:
        out.append("<h2>Classes</h2>")
    for each in classes:
        out += [heading([each.name]), prose_html(each.doc.splitlines(), links, "#")]
        if each.fields:
            out.append(code_html("\n".join(each.fields), links, "#"))
        for method in each.methods:
            out.append(code_html(method.signature, links, "#"))
            out.append(prose_html(method.doc.splitlines(), links, "#"))
    return "\n".join(part for part in out if part)


def index_body(rows, names, links):
    """The pages with the first sentence of each, and all names."""
    out = [
        "<h1>rapt: the reference</h1>",
        "<p>Made of the comments in the headers and of the Python package, by "
        "<code>make reference</code>. New here? Read the guide, in <code>docs/guide</code>.</p>",
        "<table>",
    ]
    for title, page, sentence in rows:
        name = f'<a href="{page}">{html.escape(title)}</a>'
        out.append(f"<tr><td>{name}</td><td>{inline_html(sentence, links)}</td></tr>")
    out.append("</table>")
    for kind, places in names.items():
        if places:
            out += [f"<h2>All names: {kind}</h2>", '<div class="all">']
            ordered = sorted(places, key=lambda name: (name.lower(), name))
            out += [f'<a href="{places[name]}">{name}</a>' for name in ordered]
            out.append("</div>")
    return "\n".join(out)
