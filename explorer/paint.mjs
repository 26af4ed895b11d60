// Colours of numbers. Weights: a scale with monotonic lightness, readable with colour blindness and in greyscale.
// Signed numbers: blue and orange, which remain distinct with every kind of colour vision.

// Points of the scale, dark to light, in sRGB.
const WEIGHT = [[0, 32, 77], [28, 60, 110], [74, 90, 111], [110, 118, 117], [149, 147, 119], [193, 180, 107],
  [232, 213, 84], [255, 234, 70]];
const BELOW = [33, 102, 172], ABOVE = [197, 90, 17];
// Heads and tokens: eight colours that remain distinct with colour blindness, dark enough for white text.
export const GROUPS = ['#00599c', '#a34700', '#007a55', '#96307f', '#6b5900', '#8a2c2c', '#3f5f9f', '#4d4d4d'];

function mix(a, b, part) {
  return a.map((value, n) => Math.round(value + (b[n] - value) * part));
}

/** [red, green, blue] of a weight from 0 to 1. */
export function weightColor(weight) {
  const place = Math.min(1, Math.max(0, weight)) * (WEIGHT.length - 1);
  const below = Math.min(WEIGHT.length - 2, Math.floor(place));
  return mix(WEIGHT[below], WEIGHT[below + 1], place - below);
}

/** [red, green, blue] of a number; magnitudes of `largest` and above have the darkest colour. */
export function numberColor(number, largest) {
  const part = largest > 0 ? Math.min(1, Math.abs(number) / largest) : 0;
  return mix([247, 247, 247], number < 0 ? BELOW : ABOVE, part);
}

// Relative luminance, as WCAG defines it.
function luminance(color) {
  const [red, green, blue] = color.map((value) => {
    const part = value / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Black or white, whichever has more contrast on `color`. */
export function inkOn(color) {
  return luminance(color) > 0.179 ? '#000' : '#fff';
}

export function css(color) {
  return `rgb(${color.join(',')})`;
}

/** Paints values into an ImageData, one pixel each; `logarithmic` makes small weights visible. */
export function paintWeights(image, values, logarithmic = false) {
  const pixels = image.data;
  for (let n = 0; n < values.length; ++n) {
    const color = TABLE[step(values[n], logarithmic)];
    pixels[4 * n] = color[0];
    pixels[4 * n + 1] = color[1];
    pixels[4 * n + 2] = color[2];
    pixels[4 * n + 3] = 255;
  }
}

const TABLE = Array.from({length: 256}, (_, n) => weightColor(n / 255));

function step(value, logarithmic) {
  if (!(value > 0)) return 0;
  // Logarithmic: covers four decades below 1.
  const part = logarithmic ? 1 + Math.log10(Math.max(value, 1e-4)) / 4 : value;
  return Math.min(255, Math.round(part * 255));
}
