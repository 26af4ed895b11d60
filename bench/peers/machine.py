"""The machine that a benchmark ran on: its common name, and the name of its page."""

import pathlib
import re

# (vendor, family, first model, last model): the name of the microarchitecture. Virtual machines often hide the
# product's name, and the microarchitecture determines the speed.
DESIGNS = (
    ("AuthenticAMD", 23, 0x30, 0x3F, "AMD Zen 2"),
    ("AuthenticAMD", 25, 0x00, 0x0F, "AMD Zen 3"),
    ("AuthenticAMD", 25, 0x10, 0x1F, "AMD Zen 4"),
    ("AuthenticAMD", 25, 0xA0, 0xAF, "AMD Zen 4c"),
    ("AuthenticAMD", 26, 0x00, 0x1F, "AMD Zen 5"),
    ("GenuineIntel", 6, 85, 85, "Intel Cascade Lake"),
    ("GenuineIntel", 6, 106, 108, "Intel Ice Lake"),
    ("GenuineIntel", 6, 143, 143, "Intel Sapphire Rapids"),
    ("GenuineIntel", 6, 207, 207, "Intel Emerald Rapids"),
    ("GenuineIntel", 6, 173, 173, "Intel Granite Rapids"),
)


def name(cpu, info="/proc/cpuinfo"):
    """"AMD Zen 4" if the microarchitecture is known, else the processor's own name, `cpu`."""
    try:
        fields = dict(re.findall(r"^(\w[\w ]*?)\s*: (.*)$", pathlib.Path(info).read_text(encoding="utf-8"), re.M))
        vendor, family, model = fields["vendor_id"], int(fields["cpu family"]), int(fields["model"])
    except (OSError, KeyError, ValueError):
        return cpu
    return next((design for of, number, first, last, design in DESIGNS
                 if (of, number) == (vendor, family) and first <= model <= last), cpu)


def slug(machine):
    """A file name: "amd-zen-4"."""
    return re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
