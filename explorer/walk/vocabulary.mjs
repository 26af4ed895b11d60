// The last step: from a row of numbers to the next letter, with the trained model.
import {h} from '../dom.mjs';
import {matrix} from '../matrix.mjs';

export function vocabularyPage(app, {letters, own, characters, width, likely, maps}) {
  const length = letters.length;
  const last = letters.at(-1);
  const before = letters.slice(0, -1).lastIndexOf(last);
  const rows = likely.map(({letter, logit, chance}) => h('tr', {},
    h('th', {scope: 'row'}, h('code', {}, letter)),
    h('td', {class: 'amount'}, logit.toFixed(2)),
    h('td', {class: 'amount'}, `${(100 * chance).toFixed(1)} %`),
    h('td', {}, h('span', {class: 'bar', style: {width: `${(100 * chance).toFixed(1)}%`}}))));
  const shown = Math.min(length, 16);
  const names = letters.slice(-shown);
  return [
    h('p', {}, app.say(own ? 'walk.vocabulary.reads' : 'walk.vocabulary.sample'), ' ', h('code', {class: 'letters'}, letters.join(' '))),
    h('p', {}, before >= 0 ? app.say('walk.vocabulary.before', last, letters[before + 1])
      : app.say('walk.vocabulary.never', last)),
    h('div', {class: 'scroll'}, h('table', {class: 'chances'},
      h('caption', {}, app.say('walk.vocabulary.caption', width, characters.length)),
      h('thead', {}, h('tr', {}, ['letter', 'logit', 'chance', 'bar'].map((key) =>
        h('th', {scope: 'col'}, app.say(`walk.vocabulary.${key}`))))),
      h('tbody', {}, rows))),
    h('div', {class: 'panels'}, maps.map((flat, layer) => {
      const values = names.map((_, i) => names.map((__, j) => flat[(length - shown + i) * length + length - shown + j]));
      return matrix({
        title: app.say(`walk.vocabulary.layer${layer}`), rows: names, columns: names, values, paint: 'weight',
        decimals: 1, announce: (text) => app.announce(text),
        read: (i, j) => app.say('walk.readWeight', names[i], Math.round(100 * values[i][j]), names[j]),
      });
    })),
  ];
}
