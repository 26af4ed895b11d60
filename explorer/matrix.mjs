// A matrix that can be explored with the mouse, the keyboard and a screen reader. One cell is in the tab order; arrows,
// Home and End move it. `read(i, j)` returns the sentence for the cell that is pointed at.
import {h} from './dom.mjs';
import {css, GROUPS, inkOn, numberColor, weightColor} from './paint.mjs';

/** Formats a number: 1.20, −∞ (a masked score), ∞ or NaN. */
export function written(value, decimals = 2) {
  if (value === null || value === '-inf' || value === -Infinity) return '−∞';
  if (value === 'inf' || value === Infinity) return '∞';
  if (value === 'nan' || Number.isNaN(value)) return 'NaN';
  const text = value.toFixed(decimals).replace('-', '−');
  return /^−0\.?0*$/.test(text) ? text.slice(1) : text;
}

// Widths in em. Cells are as wide as their widest number, in a monospace font; a label does not change that.
const DIGIT = 0.61, AROUND = 0.3;
const LONGEST = 11;  // of a label; the rest is cut, and in its title
let pen;
function widthOf(text) {
  if (!pen) {
    pen = document.createElement('canvas').getContext('2d');
    pen.font = "100px system-ui, 'Noto Sans CJK SC', sans-serif";  // as .matrix th
  }
  return pen.measureText(text).width / 100;
}

function largestOf(values) {
  return values.flat().reduce((most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most), 0);
}

function colors(value, {paint, largest, group}) {
  if (paint === 'group') return {background: GROUPS[group % GROUPS.length], color: '#fff'};
  if (paint === 'none') return {};
  if (!Number.isFinite(value)) return {background: 'var(--hidden)', color: 'var(--hidden-ink)'};
  const color = paint === 'weight' ? weightColor(value) : numberColor(value, largest);
  return {background: css(color), color: inkOn(color)};
}

/**
 * {title, rows, columns, values: [[…]], paint: 'weight' | 'number' | 'group' | 'none', groups?: [[…]], legend?,
 *  decimals?, largest?, read?(i, j) → sentence, point?(i, j), announce?(sentence), mood?,
 *  every?: the number of columns between two gaps}
 */
export function matrix(options) {
  const {title, rows, columns, values, paint = 'number', decimals = 2, read, point, mood, every} = options;
  const largest = options.largest ?? largestOf(values);
  const texts = values.map((row) => row.map((value) => written(value, decimals)));
  const cell = DIGIT * Math.max(3, ...texts.flat().map(({length}) => length)) + AROUND;
  const turned = columns.map((name) => widthOf(name) > cell);
  const cells = values.map((row, i) => row.map((value, j) => h('td', {
    role: 'gridcell', tabindex: i + j === 0 ? 0 : -1, 'data-cell': `${i},${j}`,
    class: every && j > 0 && j % every === 0 ? 'gap' : undefined,
    style: colors(value, {paint, largest, group: options.groups?.[i][j]}),
  }, texts[i][j])));
  const head = h('tr', {role: 'row'}, h('td', {role: 'presentation'}), columns.map((name, j) =>
    h('th', {role: 'columnheader', scope: 'col', class: every && j > 0 && j % every === 0 ? 'gap' : undefined,
      title: turned[j] ? name : undefined}, h('span', {class: turned[j] ? 'label turned' : 'label'}, name))));
  const table = h('table', {role: 'grid', 'aria-label': title, class: `matrix paint-${paint}`,
    style: {'--cell': `${cell.toFixed(2)}em`, '--longest': `${LONGEST}em`}},
    columns.some((name) => name !== '') ? h('thead', {role: 'rowgroup'}, head) : undefined,
    h('tbody', {role: 'rowgroup'}, cells.map((row, i) => h('tr', {role: 'row'},
      h('th', {role: 'rowheader', scope: 'row', title: widthOf(rows[i]) > LONGEST ? rows[i] : undefined}, rows[i]),
      row))));
  const says = h('output', {class: 'reading'});
  let current = [0, 0];

  const show = (i, j) => {
    says.textContent = read ? read(i, j) : `${rows[i]}, ${columns[j]}: ${written(values[i][j], decimals)}`;
    point?.(i, j);
  };
  const placeOf = (target) => target.closest?.('[data-cell]')?.dataset.cell.split(',').map(Number);
  table.addEventListener('pointerover', (event) => {
    const place = placeOf(event.target);
    if (place) show(...place);
  });
  table.addEventListener('focusin', (event) => {
    const place = placeOf(event.target);
    if (!place) return;
    cells[current[0]][current[1]].tabIndex = -1;
    current = place;
    cells[place[0]][place[1]].tabIndex = 0;
    show(...place);
    options.announce?.(says.textContent);
  });
  table.addEventListener('keydown', (event) => {
    const [i, j] = current;
    const last = [values.length - 1, values[0].length - 1];
    const moves = {
      ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
      Home: [i, 0], End: [i, last[1]],
    };
    const to = moves[event.key];
    if (!to || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    cells[Math.min(last[0], Math.max(0, to[0]))][Math.min(last[1], Math.max(0, to[1]))].focus();
  });
  const figure = h('figure', {class: `matrix-figure${mood && mood !== 'plain' ? ` mood-${mood}` : ''}`},
    h('figcaption', {}, title), h('div', {class: 'scroll'}, table),
    options.legend?.length ? h('p', {class: 'legend'}, options.legend.map((name, n) => h('span', {class: 'key'},
      h('i', {style: {background: GROUPS[n % GROUPS.length]}}), name))) : undefined,
    says);
  // Marks rows, columns or single cells: the inputs of the number that is pointed at.
  figure.mark = ({row, column, cell} = {}) => {
    cells.forEach((line, i) => line.forEach((each, j) => {
      each.classList.toggle('marked', i === row || j === column || (cell !== undefined && cell[0] === i && cell[1] === j));
    }));
  };
  return figure;
}
