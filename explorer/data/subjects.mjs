// Finds what can be shown in the dropped files: pure functions from lists of arrays to subjects. A subject has the
// fields that heads.mjs needs, a `title`, and `choices` for the user, each with a default.

const LAST = /(?:^|[._/ -])(q|k|query|key|queries|keys)$/i;
const INPUTS = /(^|[._/ -])(x|input|inputs|hidden|hidden_states|embeddings|embedding)$/i;

const stem = (name) => name.replace(/\.[^.]*$/, '');
/** The name of an array; the array of a .npy file has the file's name. */
export const titleOf = (array) => array.name || stem(array.file);
export const shapeOf = (shape) => `(${shape.join(', ')})`;

// (L, D), (H, L, D) or (B, H, L, D) as four sizes.
function four(shape) {
  return [...Array(4 - shape.length).fill(1), ...shape];
}

function weightsIn(arrays) {
  return arrays.filter((array) => array.weights).map((array) => {
    const [batches, heads, queries, keys] = four(array.shape);
    return {kind: 'weights', id: `weights:${array.file}:${array.name}`, title: titleOf(array), array, batches, heads,
      queries, keys};
  });
}

// Pairs of q and k: the same prefix, in one file or in files with these names.
function pairsIn(arrays) {
  const pairs = new Map();
  for (const array of arrays) {
    if (!array.readable || array.shape.length < 2 || array.shape.length > 4) continue;
    const said = LAST.exec(titleOf(array));
    if (!said) continue;
    const before = titleOf(array).slice(0, said.index);
    const place = `${array.name ? array.file : ''}:${before}`;
    pairs.set(place, {...pairs.get(place), before, [said[1][0].toLowerCase()]: array});
  }
  return [...pairs].filter(([, {q, k}]) => q && k).map(([place, {before, q, k}]) => {
    const [batches, heads, queries, size] = four(q.shape), [kBatches, kvHeads, keys, kSize] = four(k.shape);
    const fits = batches === kBatches && size === kSize && heads % kvHeads === 0
      && [...q.shape, ...k.shape].every((each) => each > 0);
    return {kind: 'qk', id: `qk:${place}`, title: before ? `${before}: q, k` : 'q, k', q, k, batches, heads, kvHeads,
      queries, keys, size, wrong: fits ? undefined : ['data.misfit', shapeOf(q.shape), shapeOf(k.shape)]};
  });
}

// Common head sizes, most common first.
const USUAL = [64, 128, 32, 16, 80, 96, 8, 256];
export function likelyHeads({possibleHeads, queryWidth}, noted) {
  if (possibleHeads.includes(noted)) return noted;
  const several = possibleHeads.filter((heads) => heads > 1);
  for (const size of USUAL) {
    const heads = queryWidth / size;
    if (several.includes(heads)) return heads;
  }
  return several[0] ?? possibleHeads[0];
}

function layersIn(files, arrays) {
  return files.flatMap((file) => file.layers.map((layer) => {
    const inputs = arrays.filter((array) => array.readable
      && (array.shape.length === 2 || array.shape.length === 3) && array.shape.at(-1) === layer.embedSize
      && array.shape.every((size) => size > 0));
    // By name, or the first array that fits.
    inputs.sort((a, b) => INPUTS.test(titleOf(b)) - INPUTS.test(titleOf(a)));
    const title = layer.prefix.replace(/\.$/, '') || stem(file.name);
    let wrong;
    if (layer.keySize !== layer.embedSize) wrong = ['data.crossLayer', title];
    else if (layer.addsKeys) wrong = ['data.addedKeys', title];
    else if (!inputs.length) wrong = ['data.noInput', title, layer.embedSize];
    return {kind: 'layer', id: `layer:${file.name}:${layer.prefix}`, title, layer, arrays: file.arrays, inputs,
      likely: likelyHeads(layer, Number(file.metadata['rapt.heads'])), wrong};
  }));
}

/** All subjects, the most likely first. Subjects that cannot be shown give the reason in `wrong`. */
export function subjectsIn(files) {
  // Parameters of a layer are not offered as inputs, even if their shapes fit.
  const arrays = files.flatMap((file) => {
    const own = new Set(file.layers.flatMap((layer) => Object.values(layer.tensors)));
    return file.arrays.filter((array) => !own.has(array.name));
  });
  const all = [...weightsIn(arrays), ...pairsIn(arrays), ...layersIn(files, arrays)];
  return [...all.filter((each) => !each.wrong), ...all.filter((each) => each.wrong)];
}

/** A subject with every choice made: the user's, or the default. */
export function decided(subject, chosen) {
  const one = {...subject, causal: false};
  if (subject.kind === 'layer') {
    const {layer, inputs, likely} = subject;
    one.x = inputs.find((array) => `${array.file}:${array.name}` === chosen.input) ?? inputs[0];
    one.heads = layer.possibleHeads.includes(Number(chosen.heads)) ? Number(chosen.heads) : likely;
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
  }
  if (subject.kind !== 'weights' && chosen.causal !== undefined) one.causal = chosen.causal === 'yes';
  one.batch = Math.min(Number(chosen.batch) || 0, one.batches - 1);
  return one;
}
