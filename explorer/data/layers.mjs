// The attention layers in the dropped files: what is known of each, and what the user must say before its weights can
// be computed. The number of heads, which shapes do not determine, is never guessed. The layers of a model follow one
// another, so an input belongs to one layer: the first, unless the user names another one.
import {placeOf, stem, titleOf} from './arrays.mjs';

const INPUTS = /(^|[._/ -])(x|input|inputs|hidden|hidden_states|embeddings|embedding)$/i;
// In the file of a model, every other name may be a parameter's, such as position_embeddings.
const OWN_INPUTS = /^(x|input|inputs|hidden|hidden_states)$/i;
const PARAMETERS = /(^|[._/ -])(weight|bias|gamma|beta)$/i;

const inOrder = new Intl.Collator('en', {numeric: true});  // layer 10 comes after layer 9

// The arrays that may be the input of a layer, arrays with the name of an input first.
function inputsFor(layer, files) {
  const arrays = files.flatMap((file) => file.arrays.filter(({name}) =>
    (file.layers.length ? OWN_INPUTS.test(name) : !PARAMETERS.test(name))));
  const fitting = arrays.filter(({readable, shape}) => readable && (shape.length === 2 || shape.length === 3)
    && shape.at(-1) === layer.embedSize && shape.every((size) => size > 0));
  return fitting.sort((a, b) => INPUTS.test(titleOf(b)) - INPUTS.test(titleOf(a)));
}

/** The number of heads as the file or its config.json states it: {heads, from}, {doubt} if it does not fit, or {}. */
export function statedHeads(layer, {name, metadata, config}) {
  const noted = Number(metadata['rapt.heads']);
  if (layer.possibleHeads.includes(noted)) return {heads: noted, from: ['data.heads.noted', name]};
  if (layer.possibleHeads.length === 1) return {heads: layer.possibleHeads[0], from: ['data.heads.shapes']};
  if (!config) return {};
  const {heads, key, kvHeads, kvKey} = config;
  if (!layer.possibleHeads.includes(heads)) {
    return {doubt: ['data.heads.misfit', config.name, key, heads, layer.queryWidth, layer.keyWidth]};
  }
  if (kvHeads && kvHeads * (layer.queryWidth / heads) !== layer.keyWidth) {
    return {doubt: ['data.heads.misfit', config.name, kvKey, kvHeads, layer.queryWidth, layer.keyWidth]};
  }
  return {heads, from: ['data.heads.config', config.name, key]};
}

function layersOf(file, files) {
  const layers = [...file.layers].sort((a, b) => inOrder.compare(a.prefix, b.prefix));
  const subjects = layers.map((layer) => {
    const title = layer.prefix.replace(/\.$/, '') || stem(file.name);
    let wrong;
    if (layer.keySize !== layer.embedSize) wrong = ['data.crossLayer', title];
    else if (layer.addsKeys) wrong = ['data.addedKeys', title];
    return {kind: 'layer', id: `layer:${file.name}:${layer.prefix}`, file: file.name, title, layer, arrays: file.arrays,
      inputs: inputsFor(layer, files), stated: statedHeads(layer, file), wrong};
  });
  const first = subjects.find(({wrong}) => !wrong);
  return subjects.map((each) => ({...each, first: each === first, several: layers.length > 1}));
}

export function layersIn(files) {
  return files.flatMap((file) => layersOf(file, files));
}

// The user's choices: `chosen.heads` by the sizes of a layer, `chosen.inputs` by the id of a layer.
const sizesOf = ({file, layer}) => `${file}:${layer.queryWidth}:${layer.keyWidth}`;

/** The choices with a number of heads, which holds for all layers of this size in the file. */
export function withHeads(chosen = {}, subject, heads) {
  return {...chosen, [sizesOf(subject)]: heads};
}

/** The choices with an array as the input of this layer, and of no other layer in the file. */
export function withInput(chosen = {}, {id, file}, place) {
  const others = Object.entries(chosen).filter(([, each]) => each.file !== file || each.place !== place);
  return {...Object.fromEntries(others), [id]: {file, place}};
}

function inputOf({id, file, first, inputs}, chosen = {}) {
  const named = inputs.find((array) => placeOf(array) === chosen[id]?.place);
  if (named || !first) return named;
  const taken = Object.values(chosen).filter((each) => each.file === file).map(({place}) => place);
  return inputs.find((array) => !taken.includes(placeOf(array)));
}

/** A layer with the user's choices; `lacks` says what is still unknown, and `notes` what was assumed. */
export function decidedLayer(subject, chosen) {
  const {inputs, layer, stated, title, first, several} = subject;
  const one = {...subject, lacks: [], notes: []};
  const told = chosen.heads?.[sizesOf(subject)];
  one.heads = layer.possibleHeads.includes(told) ? told : stated.heads;
  one.headsFrom = one.heads === told ? ['data.heads.chosen'] : stated.from;
  one.x = inputOf(subject, chosen.inputs);
  if (!one.heads) one.lacks.push(...(stated.doubt ? [stated.doubt] : []), ['data.heads.unknown', title]);
  if (!one.x) one.lacks.push([first && !inputs.length ? 'data.noInput' : 'data.inputUnknown', title, layer.embedSize]);
  if (one.lacks.length) return one;
  if (several) one.notes.push(['data.inputOf', titleOf(one.x), title]);
  one.size = layer.queryWidth / one.heads;
  one.kvHeads = layer.keyWidth / one.size;
  one.queries = one.keys = one.x.shape.at(-2);
  one.batches = one.x.shape.length === 3 ? one.x.shape[0] : 1;
  const names = new Set(Object.values(layer.tensors));
  one.arrays = subject.arrays.filter((array) => names.has(array.name));
  one.causal = layer.contextLength > 0;
  const [pairs, base] = (chosen.rotary ?? '').split(':');
  one.rotary = pairs && one.size % 2 === 0 ? {pairs, base: Number(base)} : undefined;
  delete one.inputs;
  return one;
}
