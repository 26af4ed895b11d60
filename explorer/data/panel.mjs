// Files in, choices made: the part of the view above the maps.
import {h} from '../dom.mjs';
import {SORTS} from './grid.mjs';
import {shapeOf, titleOf} from './subjects.mjs';

/** A button that opens the chooser of files, a place to drop them, and a sample. `give` takes a list of File. */
export function intake(app, {give, sample, empty}) {
  const input = h('input', {type: 'file', id: 'data-files', class: 'unseen', multiple: true, tabindex: -1,
    'aria-label': app.say('data.choose'), accept: '.npy,.npz,.safetensors,.txt', onchange: () => {
      const files = [...input.files];
      input.value = '';
      give(files);
    }});
  return h('div', {class: empty ? 'data-drop' : 'data-drop small'},
    h('p', {}, app.say(empty ? 'data.dropHere' : 'data.dropMore')),
    h('div', {class: 'data-buttons'},
      h('button', {type: 'button', class: empty ? 'primary' : '', id: 'data-choose', onclick: () => input.click()},
        app.say('data.choose')),
      empty && h('button', {type: 'button', id: 'data-sample', onclick: sample}, app.say('data.sample'))),
    input);
}

/** What is loaded. */
export function loaded(app, {files, labels}, removeAll) {
  const arrays = files.flatMap((file) => file.arrays);
  return h('details', {class: 'data-loaded'},
    h('summary', {}, app.say('data.loaded', files.length, arrays.length)),
    files.map((file) => h('div', {}, h('h3', {}, file.name),
      h('ul', {}, file.arrays.slice(0, 200).map((array) => h('li', {}, h('code', {}, titleOf(array)), ` ${shapeOf(array.shape)} `,
        h('span', {class: 'quiet'}, array.type, array.weights ? ` · ${app.say('data.isWeights')}` : ''))),
      file.arrays.length > 200 && h('li', {}, app.say('data.more', file.arrays.length - 200))))),
    labels && h('p', {}, app.say('data.labels', labels.length, labels.slice(0, 8).join(' '))),
    h('button', {type: 'button', id: 'data-remove', onclick: removeAll}, app.say('data.removeAll')));
}

function field(label, id, choices, chosen, change) {
  return h('div', {class: 'field'}, h('label', {for: id}, label),
    h('select', {id, onchange: (event) => change(event.target.value)}, choices.map(({value, words}) =>
      h('option', {value, selected: String(value) === String(chosen)}, words))));
}

/** What the reader may decide: only where there is something to decide. */
export function choices(app, session, {choose, sort, logarithmic, change}) {
  const {subject} = session;
  const able = session.subjects().filter((each) => !each.wrong);
  const full = able.find((each) => each.id === subject.id);
  const fields = [];
  if (able.length > 1) {
    fields.push(field(app.say('data.what'), 'data-subject', able.map((each) =>
      ({value: each.id, words: app.say(`data.kind.${each.kind}`, each.title)})), subject.id, (value) => choose({subject: value})));
  }
  if (full.inputs?.length > 1) {
    fields.push(field(app.say('data.input'), 'data-input', full.inputs.map((array) => ({value: `${array.file}:${array.name}`,
      words: `${titleOf(array)} ${shapeOf(array.shape)}`})), `${subject.x.file}:${subject.x.name}`, (value) => choose({input: value})));
  }
  if (full.layer?.possibleHeads.length > 1) {
    fields.push(field(app.say('data.howMany'), 'data-heads', full.layer.possibleHeads.map((heads) =>
      ({value: heads, words: app.say('data.headsOf', heads, full.layer.queryWidth / heads)})), subject.heads,
    (value) => choose({heads: value})));
  }
  if (subject.batches > 1) {
    fields.push(field(app.say('data.batch'), 'data-batch', Array.from({length: Math.min(subject.batches, 1000)}, (_, n) =>
      ({value: n, words: String(n)})), subject.batch, (value) => choose({batch: value})));
  }
  if (subject.kind !== 'weights') {
    fields.push(field(app.say('data.sees'), 'data-causal', ['no', 'yes'].map((value) =>
      ({value, words: app.say(`data.causal.${value}`)})), subject.causal ? 'yes' : 'no', (value) => choose({causal: value})));
  }
  if (subject.kind === 'layer' && subject.size % 2 === 0) {
    const {rotary} = subject;
    fields.push(field(app.say('data.rotary'), 'data-rotary', [{value: '', words: app.say('data.rotary.none')},
      ...['halfSplit', 'interleaved'].flatMap((pairs) => [10000, 500000].map((base) =>
        ({value: `${pairs}:${base}`, words: app.say(`data.rotary.${pairs}`, base)})))],
    rotary ? `${rotary.pairs}:${rotary.base}` : '', (value) => choose({rotary: value})));
  }
  if (subject.heads > 1) {
    fields.push(field(app.say('data.sort'), 'data-sort', SORTS.map((value) => ({value, words: app.say(`data.sort.${value}`)})),
      sort, (value) => change({sort: value})));
  }
  fields.push(field(app.say('data.colour'), 'data-log', ['', '1'].map((value) =>
    ({value, words: app.say(value ? 'data.logarithmic' : 'data.linear')})), logarithmic ? '1' : '', (value) => change({log: value})));
  return h('div', {class: 'controls'}, fields);
}
