// Draws the blocks of an exhibit.
import {h, rich} from '../dom.mjs';
import {matrix, written} from '../matrix.mjs';
import {chart} from './chart.mjs';

// The rows of a list.
function cut(values, columns) {
  return Array.from({length: values.length / columns}, (_, i) => values.slice(i * columns, (i + 1) * columns));
}

const number = (value) => ({'-inf': -Infinity, inf: Infinity, nan: NaN}[value] ?? value);

const DRAW = {
  prose: ({text, mood}, app) => h('p', {class: `prose mood-${mood}`},
    mood === 'plain' ? undefined : h('b', {class: 'mark'}, app.say(`questions.${mood}`), ' '), rich(text)),
  code: ({text}) => h('pre', {tabindex: 0}, h('code', {}, text)),
  table: ({title, header, rows}) => h('div', {class: 'scroll'}, h('table', {class: 'plain'},
    h('caption', {}, title),
    h('thead', {}, h('tr', {}, header.map((text) => h('th', {scope: 'col'}, rich(text))))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((text, n) =>
      (n === 0 ? h('th', {scope: 'row'}, rich(text)) : h('td', {}, rich(text))))))))),
  chart: (block, app) => chart(block, app),
  matrix: (block, app) => {
    const {title, rows, columns, decimals, reading, mood, paint, legend} = block;
    const values = cut(block.values.map(number), columns.length);
    return matrix({
      title, rows, columns, values, paint, decimals, mood, legend,
      groups: block.groups?.length ? cut(block.groups, columns.length) : undefined,
      announce: (text) => app.announce(text),
      read: (i, j) => reading.replace('{row}', rows[i]).replace('{column}', columns[j])
        .replace('{value}', written(values[i][j], decimals)),
    });
  },
};

/** Consecutive matrices are shown in one row. */
export function drawBlocks(blocks, app) {
  const drawn = [];
  let row;
  for (const block of blocks) {
    const element = DRAW[block.kind](block, app);
    if (block.kind !== 'matrix') {
      row = undefined;
      drawn.push(element);
    } else if (row) row.append(element);
    else drawn.push(row = h('div', {class: 'panels'}, element));
  }
  return drawn;
}
