"""Runs a check of the project on a made-up tree, where it must find the marked breaches and nothing else."""

import pathlib
import tempfile


def self_test(tree, mark, breaches, suffix="", also=(), cleaned=str):
    """The exit status: 0 if `breaches(root)` finds the marked lines of `tree`, and those in `also`, and no others.

    `tree` is {name: [line, …]}; each breach found, and each entry of `also`, begins with NAME:LINE.
    """
    expected = set(also)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, lines in tree.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(map(cleaned, lines)) + "\n", encoding="utf-8")
            if name.endswith(suffix):
                expected |= {f"{name}:{number}" for number, line in enumerate(lines, start=1) if mark in line}
        found = {":".join(breach.split(":")[:2]) for breach in breaches(root)}
    for place in sorted(expected - found):
        print(f"not noticed: {place}")
    for place in sorted(found - expected):
        print(f"wrongly reported: {place}")
    print(f"self-test: {len(expected & found)} of {len(expected)} breaches noticed")
    return 0 if found == expected else 1
