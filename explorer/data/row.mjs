// The weights of one query: a line over all keys, and the ten keys with the largest weights.
import {h, svg} from '../dom.mjs';

const WIDTH = 560, HEIGHT = 90;

/** Indices of the largest weights, largest first. */
export function topOf(values, most = 10) {
  const best = [];
  for (let key = 0; key < values.length; ++key) {
    if (!(values[key] > 0) || (best.length === most && values[key] <= values[best[most - 1]])) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]] < values[key]) --at;
    best.splice(at, 0, key);
    if (best.length > most) best.pop();
  }
  return best;
}

// The maximum in each bin, so that a single large weight stays visible.
function line(values) {
  const pieces = Math.min(values.length, WIDTH);
  const most = values.reduce((all, value) => (value > all ? value : all), 0) || 1;
  const points = [];
  for (let piece = 0; piece < pieces; ++piece) {
    const begin = Math.floor(piece * values.length / pieces), end = Math.floor((piece + 1) * values.length / pieces);
    let top = 0;
    for (let key = begin; key < end; ++key) {
      if (values[key] > top) top = values[key];
    }
    const y = (HEIGHT - top / most * HEIGHT).toFixed(1);
    points.push(`${(piece * WIDTH / pieces).toFixed(1)},${y} ${((piece + 1) * WIDTH / pieces).toFixed(1)},${y}`);
  }
  return svg('svg', {
    viewBox: `0 -2 ${WIDTH} ${HEIGHT + 4}`, class: 'data-line', preserveAspectRatio: 'none', 'aria-hidden': 'true',
  }, svg('polyline', {points: `0,${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`}));
}

export function tokenOf(names, place) {
  return names?.[place] === undefined ? String(place) : `${place} “${names[place]}”`;
}

export class RowPanel {
  constructor(app, unlock) {
    this.app = app;
    this.unlock = unlock;
    this.element = h('section', {class: 'data-row', 'aria-label': app.say('data.row')});
    this.show();
  }
  show(query, values, names = {}) {
    const {app} = this;
    if (!values) {
      this.element.replaceChildren(h('p', {class: 'quiet'}, app.say('data.lockHint')));
      return;
    }
    const top = topOf(values), largest = values[top[0]] || 1;
    this.element.replaceChildren(
      h('h3', {}, app.say('data.rowOf', tokenOf(names.queries, query)), ' ',
        h('button', {type: 'button', class: 'data-unlock', onclick: this.unlock}, app.say('data.unlock'))),
      line(values),
      h('p', {class: 'quiet'}, app.say('data.top', top.length)),
      h('ol', {class: 'data-top'}, top.map((key) => h('li', {},
        h('span', {class: 'data-token'}, tokenOf(names.keys, key)),
        h('span', {class: 'data-bar', style: {width: `${(values[key] / largest * 100).toFixed(1)}%`}}),
        h('span', {class: 'data-value'}, exact(values[key]))))));
  }
}

/** A weight with seven digits, about the precision of an f32. */
export function exact(value) {
  if (value === 0) return '0';
  return value >= 1e-4 ? value.toFixed(6) : value.toExponential(3);
}
