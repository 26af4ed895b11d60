// Saves the large map to a file: PNG, SVG or CSV.
import {weightColor, css} from '../paint.mjs';
import {boxOf, cut, drawPlot, NAMED, short, ticks} from './plot.mjs';

export const VECTOR = 128 * 128;  // up to this many cells become SVG shapes; larger maps are embedded as an image

/** A PNG of the visible part, at twice the screen resolution. */
export function pngOf(scene) {
  const canvas = document.createElement('canvas');
  canvas.width = scene.width * 2;
  canvas.height = scene.height * 2;
  const context = canvas.getContext('2d');
  context.scale(2, 2);
  drawPlot(context, {...scene, cursor: undefined});
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
}

const ENTITIES = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'};
const escaped = (text) => text.replace(/[&<>"]/g, (letter) => ENTITIES[letter]);
const shade = (value, top, logarithmic) => {
  if (!(value > 0) || !(top > 0)) return css(weightColor(0));
  const part = value / top;
  return css(weightColor(logarithmic ? 1 + Math.log10(Math.max(part, 1e-4)) / 4 : part));
};

/** The cells of a map, [{row, column, value}], as rectangles, or the whole map as an image. */
function cells(map, box, view, {top, logarithmic}) {
  const [across, down] = [box.width / view.keys * map.cell, box.height / view.queries * map.cell];
  const x = (column) => box.left + (map.keys[0] - view.left) / map.cell * across + column * across;
  const y = (row) => box.top + (map.queries[0] - view.top) / map.cell * down + row * down;
  if (map.rows * map.columns > VECTOR) {
    return `<image x="${x(0)}" y="${y(0)}" width="${map.columns * across}" height="${map.rows * down}"`
      + ` preserveAspectRatio="none" style="image-rendering:pixelated" href="${map.image.toDataURL('image/png')}"/>`;
  }
  const parts = [];
  for (let row = 0; row < map.rows; ++row) {
    for (let column = 0; column < map.columns; ++column) {
      const value = map.values[row * map.columns + column];
      parts.push(`<rect x="${x(column).toFixed(2)}" y="${y(row).toFixed(2)}" width="${(across + 0.05).toFixed(2)}"`
        + ` height="${(down + 0.05).toFixed(2)}" fill="${shade(value, top, logarithmic)}"/>`);
    }
  }
  return parts.join('\n');
}

function axis(names, begin, end, size, most, place) {
  const per = size / (end - begin), labelled = names && per >= NAMED;
  return ticks(begin, end, labelled ? end - begin : size / most).map((each) => {
    const at = (each + 0.5 - begin) * per;
    if (at < 0 || at > size) return '';
    return place(at, escaped(labelled && names[each] !== undefined ? cut(names[each]) : String(each)), labelled);
  }).join('\n');
}

const MIDDLE = 'text-anchor="end" dominant-baseline="middle"';

/** An SVG of a map that covers the visible part. */
export function svgOf(scene, map, title) {
  const {width, height, view, names, words, top, more, logarithmic} = scene;
  const box = boxOf(width, height, Boolean(names.keys));
  const under = box.top + box.height, named = names.keys && box.width / view.keys >= NAMED;
  const steps = Array.from({length: 9}, (_, n) => `<stop offset="${n / 8}" stop-color="${css(weightColor(n / 8))}"/>`);
  const left = logarithmic ? `≤ ${short(top * 1e-4)}` : '0';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`
    + ` font-family="sans-serif" font-size="12">
<title>${escaped(title)}</title>
<defs><linearGradient id="scale">${steps.join('')}</linearGradient>
<clipPath id="box"><rect x="${box.left}" y="${box.top}" width="${box.width}" height="${box.height}"/></clipPath></defs>
<rect width="${width}" height="${height}" fill="#fff"/>
<g clip-path="url(#box)" shape-rendering="crispEdges">
${cells(map, box, view, scene)}
</g>
<rect x="${box.left}" y="${box.top}" width="${box.width}" height="${box.height}" fill="none" stroke="#888"/>
<g ${MIDDLE}>
${axis(names.queries, view.top, view.top + view.queries, box.height, 34, (at, text) =>
    `<text x="${box.left - 6}" y="${box.top + at}">${text}</text>`)}
</g>
<g>
${axis(names.keys, view.left, view.left + view.keys, box.width, 56, (at, text, upright) => (upright
    ? `<text transform="translate(${box.left + at} ${under + 6}) rotate(-90)" ${MIDDLE}>${text}</text>`
    : `<text x="${box.left + at}" y="${under + 18}" text-anchor="middle">${text}</text>`))}
</g>
<text x="${box.left + box.width}" y="${under + (named ? 76 : 34)}" text-anchor="end" fill="#555">${
  escaped(words.keys)}</text>
<text transform="translate(9 ${box.top}) rotate(-90)" ${MIDDLE} fill="#555">${escaped(words.queries)}</text>
<rect x="${box.left}" y="${height - 32}" width="200" height="12" fill="url(#scale)"/>
<text x="${box.left}" y="${height - 6}">${left}</text>
<text x="${box.left + 200}" y="${height - 6}" text-anchor="end">${more ? '≥ ' : ''}${short(top)}</text>
<text x="${box.left + 208}" y="${height - 22}" fill="#555">${escaped(words.weight)}</text>
</svg>
`;
}
