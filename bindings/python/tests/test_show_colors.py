"""The colours of rapt.show: even steps, with any colour vision, on light and dark pages."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from show_support import SVG, cells, decode_png, images, rgb

import rapt


def oklab(colors):
    linear = np.asarray(colors, float) / 255
    linear = np.where(linear <= 0.04045, linear / 12.92, ((linear + 0.055) / 1.055) ** 2.4)
    cone = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                     [0.0883024619, 0.2817188376, 0.6299787005]])
    mixed = np.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                      [0.0259040371, 0.7827717662, -0.8086757660]])
    return linear, lambda light: np.cbrt(np.clip(light, 0, None) @ cone.T) @ mixed.T


# How protanopes, deuteranopes and tritanopes see linear RGB (Machado, Oliveira and Fernandes, 2009).
EYES = {
    "all": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                        [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                        [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                        [0.004733, 0.691367, 0.303900]]),
}


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_are_even_steps_to_all_eyes(eyes, theme):
    ramp = np.linspace(0, 1, 17)[None]
    fills = [rgb(fill) for *_, fill, _ in cells(rapt.show(np.maximum(ramp, 1e-9), largest=1.0, theme=theme).svg())]
    linear, seen = oklab(fills)
    colors = seen(linear @ EYES[eyes].T)
    light = colors[:, 0] if theme == "dark" else -colors[:, 0]
    steps = np.linalg.norm(np.diff(colors, axis=0), axis=1)
    assert (np.diff(light) > 0.02).all()  # so the order survives a grey printer too
    if eyes == "all":
        assert steps.max() < 1.25 * steps.min()
    not_finite = rgb(cells(rapt.show([[np.nan]], theme=theme).svg())[0][4])
    linear, seen = oklab([not_finite])
    assert np.linalg.norm(seen(linear @ EYES[eyes].T) - colors, axis=1).min() > 0.2


def test_numbers_can_be_read_on_their_cells():
    def brightness(fill):  # WCAG's
        linear, _ = oklab([rgb(fill)])
        return float((linear @ [0.2126, 0.7152, 0.0722])[0])

    for theme in ("light", "dark"):
        svg = rapt.show(np.linspace(0.01, 1, 16)[None], largest=1.0, theme=theme).svg()
        root = ElementTree.fromstring(svg.encode())
        group = next(root.iter(f"{SVG}g"))
        for rect, text in zip(group.iter(f"{SVG}rect"), group.iter(f"{SVG}text"), strict=True):
            low, high = sorted(brightness(element.get("fill")) for element in (rect, text))
            assert (high + 0.05) / (low + 0.05) > 3.5


def test_a_logarithmic_scale_gives_each_decade_the_same_room():
    weights = np.array([[1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001] + [0.0] * 60] * 70)
    _, levels, _ = decode_png(images(rapt.show(weights, scale="log").svg())[0])
    assert levels[0, :6].tolist() == [255, 192, 129, 65, 2, 2]


def test_the_scale_ends_at_one_unless_all_weights_are_small():
    def last_tick(picture):
        root = ElementTree.fromstring(picture.svg().encode())
        small = [t for t in root.findall(f"{SVG}text") if t.get("font-size") == "10"]  # those in cells are in groups
        return [t.text for t in small if t.text[0].isdigit()][-1]

    assert last_tick(rapt.show([[0.6, 0.4]])) == "1"
    assert last_tick(rapt.show([[0.2, 0.25]])) == "0.25"
    assert last_tick(rapt.show([[0.2, 1.25]])) == "1.25"  # dropout in training
    assert last_tick(rapt.show([[0.0, np.nan]])) == "1"
    assert last_tick(rapt.show([[0.2, 0.25]], largest=0.5)) == "0.5"
