import assert from 'node:assert/strict';
import {test} from 'node:test';

import {rapt} from './support.mjs';

const argmax = (values) => values.indexOf(Math.max(...values));

test('the built-in model goes on with what it saw before', () => {
  const model = rapt.builtinModel();
  const {characters, vocabulary, layers} = model.config;
  assert.equal([...characters].length, vocabulary);
  const tokens = [...'QxB7kMw2pLtzB7kM'].map((each) => characters.indexOf(each));
  const {logits, weights} = model.read(tokens);
  assert.equal(weights.length, layers);
  const last = logits.values().slice(-vocabulary);
  assert.equal(characters[argmax([...last])], 'w', 'after B7kM came w');
});

test('a model and its parameters by name', () => {
  const model = rapt.builtinModel();
  const parameters = model.parameters();
  assert.deepEqual(parameters['tokens.weight'].shape, [64, 64]);
  assert.ok('layers.1.attention.in_proj_weight' in parameters);
  assert.throws(() => model.read([64]), /there is no token 64/);
});

test('training has the same numbers every time, and learns', () => {
  const runs = [1, 1, 2].map((seed) => {
    const training = rapt.train('induction', seed);
    const losses = Array.from({length: 40}, () => {
      training.step();
      return training.state.loss;
    });
    assert.equal(training.state.step, 40);
    return losses;
  });
  assert.deepEqual(runs[0], runs[1]);
  assert.notDeepEqual(runs[0], runs[2]);
  assert.ok(runs[0].at(-1) < runs[0][0] - 0.1);
});

test('an example can be looked at on the way', () => {
  const training = rapt.train('induction', 1);
  const example = training.example(7);
  assert.equal(example.length, 32);
  const {weights} = training.read(example);
  assert.deepEqual(weights.map((each) => each.shape), [[1, 1, 32, 32], [1, 1, 32, 32]]);
  const {measures} = training.evaluation();
  assert.ok(measures.some((each) => each.key === 'accuracy' && each.goal === 0.99));
  assert.throws(() => rapt.train('chess'), /unknown task "chess"/);
});
