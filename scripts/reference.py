#!/usr/bin/env python3
"""Generates the API reference from the headers' comments and the Python package: HTML pages with an index.

    reference.py ROOT FOLDER     writes FOLDER/index.html and what it links to

Everything is read as text, so nothing needs to be built. The same tree gives the same bytes.
"""

import pathlib
import re
import sys

import reference_headers
import reference_pages
import reference_stubs

C_HEADER = "rapt.h"


def version_of(root):
    return re.search(r"project\(rapt VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def first_sentence(lines):
    text = " ".join(lines[: lines.index("") if "" in lines else None])
    return re.split(r"(?<=[.])\s", text + " ")[0]


def read_everything(root):
    headers = [
        reference_headers.read_header(path.name, path.read_text(encoding="utf-8"))
        for path in sorted((root / "include" / "rapt").glob("*.h"))
    ]
    headers.sort(key=lambda header: (header.name == C_HEADER, header.name))
    package = root / "bindings" / "python" / "rapt"
    functions, classes = reference_stubs.read_package(package) if package.is_dir() else ([], [])
    return headers, functions, classes


def pages_of(root):
    """{file: text} of the whole reference."""
    headers, functions, classes = read_everything(root)
    links, rows, names = reference_pages.Links(), [], {"C++": {}, "C": {}, "Python": {}}
    for header in headers:
        page = header.name.replace(".h", ".html")
        rows.append((f"rapt/{header.name}", page, first_sentence(header.intro)))
        for section in header.sections:
            for group in section.groups:
                for name in group.names:
                    links.add(name, page)
                    names["C" if header.name == C_HEADER else "C++"][name] = f"{page}#{name}"
    bodies = {page: reference_pages.header_body(header, links, page) for header, (_, page, _) in zip(headers, rows)}

    if functions or classes:
        own = reference_pages.Links()  # on Python pages, a name refers to Python's, if there is one
        for each in [*functions, *classes]:
            own.add(each.name, "python.html")
            names["Python"][each.name] = f"python.html#{each.name}"
        rows.append(("import rapt", "python.html", "The Python package."))
        bodies["python.html"] = reference_pages.python_body(functions, classes, own)
    bodies["index.html"] = reference_pages.index_body(rows, names, links)

    def navigation(here):
        kinds = (
            ("C++", lambda page: page not in ("rapt.html", "python.html")),
            ("C", "rapt.html".__eq__),
            ("Python", "python.html".__eq__),
        )
        out = []
        for kind, belongs in kinds:
            entries = [(title, page) for title, page, _ in rows if belongs(page)]
            if entries:
                out.append(f"<p>{kind}</p>")
            out += [
                f'<a{" class=here" if page == here else ""} href="{page}">{title.removeprefix("rapt/")}</a>'
                for title, page in entries
            ]
        return "\n".join(out)

    version = version_of(root)
    titles = {page: title for title, page, _ in rows}
    pages = {
        page: reference_pages.PAGE.format(
            title=titles.get(page, "rapt: the reference"), version=version, navigation=navigation(page), body=body
        )
        for page, body in bodies.items()
    }
    return {**pages, "style.css": reference_pages.STYLE.lstrip()}


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    pages = pages_of(root)
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.html"):
        if stale.name not in pages:
            stale.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{folder / 'index.html'}: {len(pages) - 1} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
