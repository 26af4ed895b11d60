// What the explorer draws: the walk and the questions.
import assert from 'node:assert/strict';
import test from 'node:test';

import {rapt} from './support.mjs';

test('a walk has every step, and passes its own checks', () => {
  const walk = rapt.walk('the cat saw the dog', {heads: 3, causal: true});
  assert.deepEqual(walk.sizes, {B: 1, L: 5, E: 24, H: 3, D: 8});
  assert.equal(walk.steps.length, 15);
  assert.ok(walk.checks.good);
  assert.equal(walk.heads[0].weights[0][0], 1);
});

test('an impossible walk is refused with a message', () => {
  assert.throws(() => rapt.walk('x', {heads: 5}), /24 numbers cannot be divided into 5 heads/);
  assert.throws(() => rapt.walk('  '), /no word/);
  assert.throws(() => rapt.walk('a '.repeat(65)), /65 tokens; the maximum is 64/);
});

test('every question has an exhibit, with the same numbers in both languages', () => {
  for (const {number, question} of rapt.questions('en')) {
    const english = rapt.exhibit(number), chinese = rapt.exhibit(number, {lang: 'zh'});
    assert.equal(english.question, question);
    assert.notEqual(english.question, chinese.question);
    assert.deepEqual(english.blocks.map(({kind}) => kind), chinese.blocks.map(({kind}) => kind));
    assert.deepEqual(english.blocks.map(({values}) => values), chinese.blocks.map(({values}) => values));
  }
});

test('a switch changes what is shown, and one that is none is refused', () => {
  const [{key, choices}] = rapt.exhibit(4).switches;
  const changed = rapt.exhibit(4, {settings: {[key]: choices[1].value}});
  assert.equal(changed.switches[0].chosen, choices[1].value);
  assert.throws(() => rapt.exhibit(4, {settings: {nothing: 'x'}}), /unknown setting "nothing"/);
  assert.throws(() => rapt.exhibit(19), /questions 1 to 18/);
  assert.throws(() => rapt.exhibit(1, {lang: 'fr'}), /en or zh/);
});

test('training may lose its mask, and is then measured both ways', () => {
  const training = rapt.train('induction', 3);
  training.setCausal(false);
  training.setRate(0.001);
  assert.equal(training.state.rate, 0.001);
  for (let n = 0; n < 3; ++n) training.step();
  assert.notEqual(training.evaluation().loss, training.evaluation({causal: true}).loss);
  assert.throws(() => training.setRate(-1), /rate/);
  training.free();
});
