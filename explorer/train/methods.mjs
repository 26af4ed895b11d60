// What training computes, in a worker of its own: steps, and between them a look at what the model does now.

const LOOK_EVERY = 80;  // milliseconds
const ROWS = 4;         // rows on which it is asked honestly

let run;  // {training, running, row, points}

// Places in a row where the next token can be known: this one stood here before, and the same came after it.
function knowable(tokens) {
  const places = [];
  for (let i = 1; i + 1 < tokens.length; ++i) {
    const before = tokens.indexOf(tokens[i]);
    if (before < i && tokens[before + 1] === tokens[i + 1]) places.push(i);
  }
  return places;
}

function largestAt(values, begin, size) {
  let best = 0;
  for (let n = 1; n < size; ++n) if (values[begin + n] > values[begin + best]) best = n;
  return best;
}

// How often the next token is right when nothing after it can be seen, because it is not there yet.
function honestAccuracy(rapt, training, size) {
  let right = 0, asked = 0;
  for (let seed = 0; seed < ROWS; ++seed) {
    const tokens = training.example(seed);
    for (const place of knowable(tokens)) {
      rapt.scope(() => {
        const logits = training.read(tokens.slice(0, place + 1)).logits.values();
        right += largestAt(logits, place * size, size) === tokens[place + 1] ? 1 : 0;
      });
      ++asked;
    }
  }
  return right / asked;
}

function look(rapt, evaluated) {
  const {training, row} = run;
  const {step, steps, loss, done, reached} = training.state;
  const maps = rapt.scope(() => training.read(row).weights.map((each) => each.values()));
  const report = {step, steps, loss, done, reached, maps, losses: run.losses.splice(0)};
  if (evaluated) {
    report.measures = training.evaluation().measures;
    report.honest = honestAccuracy(rapt, training, run.size);
  }
  return report;
}

function turn(rapt, tell) {
  if (!run?.running) return;
  const until = performance.now() + LOOK_EVERY;
  let evaluated = false;
  do {
    evaluated = advance() || evaluated;
  } while (performance.now() < until && !run.training.state.done);
  if (run.training.state.done) run.running = false;
  tell('look', look(rapt, evaluated));
  setTimeout(() => turn(rapt, tell), 0);
}

function advance() {
  const evaluated = run.training.step();
  const {step, loss} = run.training.state;
  run.losses.push([step, loss]);
  return evaluated;
}

export const methods = {
  /** {seed, causal, rate} → the row that is looked at, and the first look. */
  trainBegin: (rapt, {seed, causal, rate}) => {
    run?.training.free();
    const training = rapt.train('induction', seed, {causal});
    if (rate) training.setRate(rate);
    const row = training.example(1000);
    run = {training, running: false, row, losses: [], size: training.characters.length};
    return {
      letters: row.map((token) => training.characters[token]), places: knowable(row), rate: training.rate,
      ...look(rapt, true),
    };
  },
  trainRun: (rapt, {running}, tell) => {
    const was = run.running;
    run.running = running;
    if (running && !was) turn(rapt, tell);
  },
  trainStep: (rapt) => {
    run.running = false;
    const evaluated = advance();
    return look(rapt, evaluated);
  },
  trainRate: (rapt, {rate}) => run.training.setRate(rate),
};
