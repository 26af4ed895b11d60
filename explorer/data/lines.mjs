// Tokens in two columns, with a line from each query to each key; opacity shows the weight. For short sequences.
import {svg} from '../dom.mjs';
import {cut} from './plot.mjs';
import {exact, tokenOf, topOf} from './row.mjs';

export const MOST = 40;
const STEP = 22, SIDE = 130, WIDTH = 520;

/** `map` has a cell for each weight. */
export function linesOf(app, map, names) {
  const {rows, columns, values} = map;
  const height = Math.max(rows, columns) * STEP + 8;
  const y = (place) => 4 + (place + 0.5) * STEP;
  const lines = [];
  for (let query = 0; query < rows; ++query) {
    for (let key = 0; key < columns; ++key) {
      const weight = values[query * columns + key];
      if (!(weight > 0.004)) continue;  // below one step of 8-bit opacity
      lines.push(svg('line', {x1: SIDE, x2: WIDTH - SIDE, y1: y(query), y2: y(key), 'stroke-opacity': weight.toFixed(3),
        'data-query': query, 'data-key': key}));
    }
  }
  // Shows the lines of one token only, or of all tokens if none is given.
  let kept;
  const keep = (side, place) => {
    for (const line of lines) line.style.display = side && line.dataset[side] !== String(place) ? 'none' : '';
    for (const text of figure.querySelectorAll('text')) {
      text.classList.toggle('kept', text.dataset.side === side && text.dataset.place === String(place));
    }
  };
  const token = (side, place, x, anchor, all) => svg('text', {
    x, y: y(place), 'text-anchor': anchor, 'dominant-baseline': 'middle', 'data-side': side, 'data-place': place,
    onpointerenter: () => keep(side, place), onpointerleave: () => keep(),
  }, cut(all?.[place] ?? String(place), 14));
  const key = (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (event.key === 'Escape') {
      kept = undefined;
      keep();
    } else if (step) {
      event.preventDefault();
      kept = kept === undefined ? 0 : Math.max(0, Math.min(rows - 1, kept + step));
      keep('query', kept);
      const row = values.subarray(kept * columns, (kept + 1) * columns);
      app.announce(`${tokenOf(names.queries, kept)}: ${topOf(row, 3).map((place) =>
        `${tokenOf(names.keys, place)} ${exact(row[place])}`).join(', ')}`);
    }
  };
  const figure = svg('svg', {viewBox: `0 0 ${WIDTH} ${height}`, class: 'data-lines', role: 'application', tabindex: 0,
    'aria-label': app.say('data.linesLabel'), onkeydown: key}, svg('g', {}, lines),
  Array.from({length: rows}, (_, n) => token('query', n, SIDE - 8, 'end', names.queries)),
  Array.from({length: columns}, (_, n) => token('key', n, WIDTH - SIDE + 8, 'start', names.keys)));
  return figure;
}
