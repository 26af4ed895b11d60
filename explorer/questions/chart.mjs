// A line chart: an SVG, with the same numbers in a table that opens below it.
import {h, svg} from '../dom.mjs';

const WIDTH = 560, HEIGHT = 260, LEFT = 56, BOTTOM = 40, TOP = 12, RIGHT = 16;
// Lines differ in colour, and in dash pattern for readers without colour.
const DASHES = ['', '7 4', '2 3', '10 3 2 3'];

function scaleOf(values, logarithmic, from, to) {
  const finite = values.filter((value) => Number.isFinite(value) && (!logarithmic || value > 0));
  const map = logarithmic ? Math.log10 : (value) => value;
  let low = Math.min(...finite.map(map)), high = Math.max(...finite.map(map));
  if (!logarithmic) low = Math.min(0, low);
  if (high === low) high = low + 1;
  const place = (value) => from + (map(value) - low) / (high - low) * (to - from);
  const ticks = [];
  if (logarithmic) {
    for (let power = Math.ceil(low - 1e-9); power <= high + 1e-9; ++power) ticks.push(10 ** power);
    if (ticks.length < 2) ticks.push(10 ** low, 10 ** high);
  } else {
    const raw = (high - low) / 4;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= raw);
    for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) ticks.push(tick);
  }
  return {place, ticks};
}

/** A number of an axis or a table: whole numbers in full, others with at least three digits. */
export function short(value) {
  const size = Math.abs(value), whole = Math.round(value);
  if (size < 1e6 && Math.abs(value - whole) <= 1e-9 * size) return String(whole);  // 10 ** log10(1024) is near 1024
  if (size >= 1e6 || size < 1e-3) return Number(value.toPrecision(3)).toExponential();
  return String(size >= 1000 ? whole : Number(value.toPrecision(3)));
}

const toNumber = (value) => (typeof value === 'number' ? value : NaN);

export function chart({title, x_name: xName, x, log_x: logX, log_y: logY, series}, app) {
  const lines = series.map(({name, y}) => ({name, y: y.map(toNumber)}));
  const across = scaleOf(x, logX, LEFT, WIDTH - RIGHT);
  const up = scaleOf(lines.flatMap(({y}) => y), logY, HEIGHT - BOTTOM, TOP);
  const xTicks = logX && x.length <= 10 ? x : across.ticks;
  const drawing = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title, class: 'chart'},
    up.ticks.map((tick) => [
      svg('line', {x1: LEFT, x2: WIDTH - RIGHT, y1: up.place(tick), y2: up.place(tick), class: 'rule'}),
      svg('text', {x: LEFT - 6, y: up.place(tick) + 4, 'text-anchor': 'end'}, short(tick))]),
    xTicks.map((tick) => svg('text', {x: across.place(tick), y: HEIGHT - BOTTOM + 16, 'text-anchor': 'middle'},
      short(tick))),
    svg('text', {x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, 'text-anchor': 'middle'}, xName),
    lines.map(({y}, n) => svg('polyline', {
      class: `line line-${n}`, 'stroke-dasharray': DASHES[n % DASHES.length],
      points: y.map((value, i) => [x[i], value]).filter(([, value]) => Number.isFinite(value) && (!logY || value > 0))
        .map(([a, b]) => `${across.place(a).toFixed(1)},${up.place(b).toFixed(1)}`).join(' '),
    })));
  return h('figure', {class: 'chart-figure'}, h('figcaption', {}, title), drawing,
    h('p', {class: 'legend'}, lines.map(({name}, n) => h('span', {class: 'key'}, svg('svg', {
      viewBox: '0 0 28 8', class: 'sample', 'aria-hidden': 'true',
    }, svg('line', {x1: 0, x2: 28, y1: 4, y2: 4, class: `line line-${n}`, 'stroke-dasharray': DASHES[n % DASHES.length]})),
    name))),
    h('details', {}, h('summary', {}, app.say('questions.asTable')), h('div', {class: 'scroll'}, h('table', {class: 'plain'},
      h('thead', {}, h('tr', {}, [xName, ...lines.map(({name}) => name)].map((text) => h('th', {scope: 'col'}, text)))),
      h('tbody', {}, x.map((at, i) => h('tr', {}, h('th', {scope: 'row'}, short(at)),
        lines.map(({y}) => h('td', {class: 'amount'}, Number.isFinite(y[i]) ? short(y[i]) : 'NaN')))))))));
}
