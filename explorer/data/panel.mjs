// The part of the view above the maps: loading files and choosing what to show.
import {h} from '../dom.mjs';
import {placeOf, shapeOf, titleOf} from './arrays.mjs';
import {SORTS} from './grid.mjs';

const LISTED = 200;  // at most this many arrays of a file are listed

/** A button that opens the file dialog, a drop area, and an example. `give` takes a list of File. */
export function intake(app, {give, sample, empty}) {
  const input = h('input', {type: 'file', id: 'data-files', class: 'unseen', multiple: true, tabindex: -1,
    'aria-label': app.say('data.choose'), accept: '.npy,.npz,.safetensors,.txt,.json', onchange: () => {
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

/** The list of loaded files and arrays. */
export function loaded(app, {files, labels, config}, removeAll) {
  const arrays = files.flatMap((file) => file.arrays);
  const line = (array) => h('li', {}, h('code', {}, titleOf(array)), ` ${shapeOf(array.shape)} `,
    h('span', {class: 'quiet'}, array.type, array.weights ? ` · ${app.say('data.isWeights')}` : ''));
  const configured = (one) => one && h('p', {}, app.say('data.config', one.heads, one.name));
  return h('details', {class: 'data-loaded'},
    h('summary', {}, app.say('data.loaded', files.length, arrays.length)), configured(config),
    files.map((file) => h('div', {}, h('h3', {}, file.name), configured(file.config),
      h('ul', {}, file.arrays.slice(0, LISTED).map(line), file.arrays.length > LISTED && h('li', {}, app.say('data.more', file.arrays.length - LISTED))))),
    labels && h('p', {}, app.say('data.labels', labels.length, labels.slice(0, 8).join(' '))),
    h('button', {type: 'button', id: 'data-remove', onclick: removeAll}, app.say('data.removeAll')));
}

function field(label, id, choices, chosen, change) {
  return h('div', {class: 'field'}, h('label', {for: id}, label),
    h('select', {id, onchange: (event) => change(event.target.value)}, choices.map(({value, words}) =>
      h('option', {value, selected: String(value) === String(chosen)}, words))));
}

/** Controls for the user's choices; a control with only one value is omitted. */
export function choices(app, session, {choose, sort, logarithmic, change}) {
  const {asked: subject} = session;
  const able = session.subjects().filter((each) => !each.wrong);
  const {inputs = [], layer, several} = able.find((each) => each.id === subject.id);
  const fields = [];
  const offer = (name, list, chosen, act = (value) => choose({[name]: value})) => {
    fields.push(field(app.say(`data.field.${name}`), `data-${name}`, list, chosen, act));
  };
  if (able.length > 1) {
    offer('subject', able.map(({id, kind, title}) => ({value: id, words: app.say(`data.kind.${kind}`, title)})),
      subject.id);
  }
  // A choice that the user must make begins without a value.
  const open = (words, value) => (value === undefined ? [{value: '', words: app.say(words)}] : []);
  if (inputs.length > 1 || (inputs.length && several)) {
    const list = inputs.map((array) => ({value: placeOf(array), words: `${titleOf(array)} ${shapeOf(array.shape)}`}));
    offer('input', [...open('data.input.unknown', subject.x), ...list], subject.x ? placeOf(subject.x) : '');
  }
  if (layer?.possibleHeads.length > 1) {
    const list = layer.possibleHeads.map((heads) =>
      ({value: heads, words: app.say('data.headsOf', heads, layer.queryWidth / heads)}));
    offer('heads', [...open('data.heads.choose', subject.heads), ...list], subject.heads ?? '');
  }
  const fieldsOf = () => h('div', {class: 'controls'}, fields);
  if (subject.lacks.length) return fieldsOf();
  if (subject.batches > 1) {
    const rows = Array.from({length: Math.min(subject.batches, 1000)}, (_, row) => ({value: row, words: String(row)}));
    offer('batch', rows, subject.batch);
  }
  if (subject.kind !== 'weights') {
    offer('causal', ['no', 'yes'].map((value) => ({value, words: app.say(`data.causal.${value}`)})),
      subject.causal ? 'yes' : 'no');
  }
  if (layer && subject.size % 2 === 0) {
    const kinds = ['halfSplit', 'interleaved'].flatMap((pairs) => [10000, 500000].map((base) =>
      ({value: `${pairs}:${base}`, words: app.say(`data.rotary.${pairs}`, base)})));
    offer('rotary', [{value: '', words: app.say('data.rotary.none')}, ...kinds],
      subject.rotary ? `${subject.rotary.pairs}:${subject.rotary.base}` : '');
  }
  if (subject.heads > 1) {
    offer('sort', SORTS.map((value) => ({value, words: app.say(`data.sort.${value}`)})), sort,
      (value) => change({sort: value}));
  }
  offer('log', ['', '1'].map((value) => ({value, words: app.say(value ? 'data.logarithmic' : 'data.linear')})),
    logarithmic ? '1' : '', (value) => change({log: value}));
  return fieldsOf();
}
