// Draws the large map: cells, axes, a legend. Each call draws everything from the available data; the same code draws
// to the screen and to files.
import {css, weightColor} from '../paint.mjs';

const LEGEND = 46;
export const NAMED = 11;  // minimum pixels per token for its name to be drawn

// The colour scale as packed 32-bit pixels: a large map has a million cells, and each costs one table lookup. (Like
// paintWeights, which writes four bytes per cell.)
const PIXELS = Uint32Array.from({length: 256}, (_, n) => {
  const [red, green, blue] = weightColor(n / 255);
  return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
});

function paint(pixels, values, top, logarithmic) {
  const linear = 255 / top, decades = 255 / 4 / Math.LN10, most = Math.log(top);
  for (let n = 0; n < values.length; ++n) {
    const value = values[n];
    let step = 0;
    // Logarithmic: covers four decades below the maximum.
    if (value > 0) step = logarithmic ? 255 + (Math.log(value) - most) * decades : value * linear;
    pixels[n] = PIXELS[step >= 255 ? 255 : step > 0 ? (step + 0.5) | 0 : 0];
  }
}

/** Cells as an image, one pixel each; `top` is the weight drawn brightest. */
export function imageOf(map, top, logarithmic) {
  const canvas = document.createElement('canvas');
  canvas.width = map.columns;
  canvas.height = map.rows;
  const context = canvas.getContext('2d');
  const image = context.createImageData(map.columns, map.rows);
  paint(new Uint32Array(image.data.buffer), map.values, top > 0 ? top : 1, logarithmic);
  context.putImageData(image, 0, 0);
  return canvas;
}

/** {top, more}: the weight drawn brightest, and whether there are larger ones. A single row must not darken all others
    (the first row of a causal map has one weight of 1): if the maximum is an outlier, `top` is the 75th percentile of
    the row maxima. */
export function brightest({values, rows, columns}) {
  const most = new Float32Array(rows);
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      const value = values[row * columns + column];
      if (value > most[row]) most[row] = value;  // NaN is ignored
    }
  }
  most.sort();
  const usual = most[Math.floor((rows - 1) * 0.75)], largest = most[rows - 1];
  return usual > 0 && largest > 2 * usual ? {top: usual, more: true} : {top: largest, more: false};
}

/** A weight in few characters. */
export function short(value) {
  if (value === 0) return '0';
  if (value >= 0.0095) return String(Number(value.toPrecision(2)));
  return Number(value.toPrecision(2)).toExponential();
}

/** Positions of ticks between two positions: multiples of 1, 2 or 5 times a power of ten. */
export function ticks(begin, end, most) {
  const least = (end - begin) / Math.max(1, most);
  let step = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  for (const times of [1, 2, 5, 10]) {
    if (step * times >= least) {
      step *= times;
      break;
    }
  }
  step = Math.max(1, Math.round(step));
  const places = [];
  for (let place = Math.ceil(begin / step) * step; place < end; place += step) places.push(place);
  return places;
}

/** The plot area in a canvas of this size. */
export function boxOf(width, height, named) {
  const left = named ? 86 : 62, bottom = named ? 78 : 36;
  return {left, top: 8, width: Math.max(40, width - left - 10), height: Math.max(40, height - 8 - bottom - LEGEND)};
}

export const cut = (text, most = 9) => ([...text].length > most ? `${[...text].slice(0, most - 1).join('')}…` : text);

// Draws only the visible part of a layer into the box: scaling up the whole layer would be slow.
function drawLayer(context, {cell, queries, keys, image}, view, box) {
  const [across, down] = [box.width / view.keys * cell, box.height / view.queries * cell];
  const left = Math.max(0, Math.floor((view.left - keys[0]) / cell));
  const top = Math.max(0, Math.floor((view.top - queries[0]) / cell));
  const right = Math.min(image.width, Math.ceil((view.left + view.keys - keys[0]) / cell));
  const bottom = Math.min(image.height, Math.ceil((view.top + view.queries - queries[0]) / cell));
  if (right <= left || bottom <= top) return;
  context.drawImage(image, left, top, right - left, bottom - top,
    box.left + ((keys[0] - view.left) / cell + left) * across, box.top + ((queries[0] - view.top) / cell + top) * down,
    (right - left) * across, (bottom - top) * down);
}

function drawAxis(context, {names, begin, end, size, horizontal, ink}) {
  const per = size / (end - begin);
  const labelled = names && per >= NAMED;
  const places = labelled ? ticks(begin, end, end - begin) : ticks(begin, end, size / (horizontal ? 56 : 34));
  for (const place of places) {
    const at = (place + 0.5 - begin) * per;
    if (at < 0 || at > size) continue;
    const text = labelled && names[place] !== undefined ? cut(names[place]) : String(place);
    ink(text, at, labelled);
  }
}

function drawAxes(context, {view, box, names, words, colors}) {
  context.fillStyle = colors.ink;
  context.strokeStyle = colors.line;
  context.lineWidth = 1;
  context.strokeRect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height + 1);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  drawAxis(context, {names: names.queries, begin: view.top, end: view.top + view.queries, size: box.height,
    ink: (text, at) => context.fillText(text, box.left - 6, box.top + at)});
  drawAxis(context, {names: names.keys, begin: view.left, end: view.left + view.keys, size: box.width, horizontal: true,
    ink: (text, at, upright) => {
      context.save();
      context.translate(box.left + at, box.top + box.height + 6);
      if (upright) context.rotate(-Math.PI / 2);
      context.textAlign = upright ? 'right' : 'center';
      context.textBaseline = upright ? 'middle' : 'top';
      context.fillText(text, 0, 0);
      context.restore();
    }});
  context.fillStyle = colors.quiet;
  context.textAlign = 'right';
  context.textBaseline = 'bottom';
  const upright = names.keys && box.width / view.keys >= NAMED;
  const under = box.top + box.height + (upright ? 76 : 34);
  context.fillText(words.keys, box.left + box.width, under);
  context.save();
  context.translate(9, box.top);
  context.rotate(-Math.PI / 2);
  context.textBaseline = 'middle';
  context.fillText(words.queries, 0, 0);
  context.restore();
}

function drawLegend(context, {box, height, top, more, logarithmic, words, colors}) {
  const width = Math.min(260, box.width), y = height - LEGEND + 14;
  for (let x = 0; x < width; ++x) {
    context.fillStyle = css(weightColor(x / (width - 1)));
    context.fillRect(box.left + x, y, 1.5, 12);
  }
  context.fillStyle = colors.ink;
  context.textBaseline = 'top';
  const marks = logarithmic && width > 220 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1];
  for (const part of marks) {
    context.textAlign = part === 0 ? 'left' : part === 1 ? 'right' : 'center';
    const value = logarithmic ? top * 10 ** (4 * (part - 1)) : top * part;
    const beyond = part === 1 && more ? '≥ ' : logarithmic && part === 0 ? '≤ ' : '';
    context.fillText(beyond + short(value), box.left + part * width, y + 15);
  }
  if (box.width - width > 60) {
    context.textAlign = 'left';
    context.fillStyle = colors.quiet;
    context.fillText(words.weight, box.left + width + 8, y);
  }
}

function drawCursor(context, {view, box, cursor, locked}) {
  const [across, down] = [box.width / view.keys, box.height / view.queries];
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.width, box.height);
  context.clip();
  const band = (row, color) => {
    const y = box.top + (row - view.top) * down;
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.strokeRect(box.left - 4, y - 1, box.width + 8, Math.max(down, 1) + 2);
  };
  if (locked !== undefined) band(locked, '#ff4fa3');
  if (cursor) {
    const x = box.left + (cursor.key - view.left) * across, y = box.top + (cursor.query - view.top) * down;
    const [wide, high] = [Math.max(across, 5), Math.max(down, 5)];
    // Black outlined in white: visible on every colour.
    for (const [by, color] of [[1.5, '#000'], [0, '#fff']]) {
      context.strokeStyle = color;
      context.lineWidth = 1.5;
      context.strokeRect(x + across / 2 - wide / 2 - by, y + down / 2 - high / 2 - by, wide + 2 * by, high + 2 * by);
    }
  }
  context.restore();
}

/** Draws everything; `layers` are drawn in order, each over the previous. */
export function drawPlot(context, scene) {
  const {width, height, layers, view, colors, names} = scene;
  const box = boxOf(width, height, Boolean(names.keys));
  context.fillStyle = colors.paper;
  context.fillRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.width, box.height);
  context.clip();
  context.imageSmoothingEnabled = false;
  for (const layer of layers) drawLayer(context, layer, view, box);
  context.restore();
  drawCursor(context, {...scene, box});
  drawAxes(context, {...scene, box});
  drawLegend(context, {...scene, box});
}
