// Finds what can be shown in the dropped files: pure functions from lists of arrays to subjects. A subject has the
// fields that heads.mjs needs, a `title`, and `choices` for the user, each with a default or a question.
import {shapeOf, titleOf} from './arrays.mjs';
import {decidedLayer, layersIn} from './layers.mjs';

const LAST = /(?:^|[._/ -])(q|k|query|key|queries|keys)$/i;

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

/** All subjects, the most likely first. Subjects that cannot be shown give the reason in `wrong`. */
export function subjectsIn(files) {
  // Parameters of a layer are not shown as weights, or as q and k.
  const arrays = files.flatMap((file) => {
    const own = new Set(file.layers.flatMap((layer) => Object.values(layer.tensors)));
    return file.arrays.filter((array) => !own.has(array.name));
  });
  const all = [...weightsIn(arrays), ...pairsIn(arrays), ...layersIn(files)];
  return [...all.filter((each) => !each.wrong), ...all.filter((each) => each.wrong)];
}

/** A subject with every choice made: the user's, or the default. If the user must choose, `lacks` says what. */
export function decided(subject, chosen) {
  const one = subject.kind === 'layer' ? decidedLayer(subject, chosen)
    : {...subject, causal: false, lacks: [], notes: []};
  if (one.lacks.length) return one;
  if (subject.kind !== 'weights' && chosen.causal !== undefined) one.causal = chosen.causal === 'yes';
  one.batch = Math.min(Number(chosen.batch) || 0, one.batches - 1);
  return one;
}
