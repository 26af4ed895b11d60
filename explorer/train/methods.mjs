// Worker methods of Train, in a worker of its own: training steps, and regular snapshots of the model.

const LOOK_EVERY = 80;  // milliseconds

let run;  // {training, running, row, losses: of the steps since the last snapshot}

// Positions at which the next token is predictable: the current token appeared before, and the same token followed it.
function knowable(tokens) {
  const places = [];
  for (let i = 1; i + 1 < tokens.length; ++i) {
    const before = tokens.indexOf(tokens[i]);
    if (before < i && tokens[before + 1] === tokens[i + 1]) places.push(i);
  }
  return places;
}

function look(rapt, evaluated) {
  const {training, row} = run;
  const {step, steps, loss, done, reached} = training.state;
  const maps = rapt.scope(() => training.read(row).weights.map((each) => each.values()));
  const report = {step, steps, loss, done, reached, maps, losses: run.losses.splice(0)};
  if (evaluated) {
    report.measures = training.evaluation().measures;
    report.honest = training.evaluation({causal: true}).measures[0].value;
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
  /** {seed, causal, rate} → the row shown in the maps, and the first snapshot. */
  trainBegin: (rapt, {seed, causal, rate}) => {
    run?.training.free();
    const training = rapt.train('induction', seed);
    training.setCausal(causal);
    if (rate) training.setRate(rate);
    const row = training.example(1000);
    run = {training, running: false, row, losses: []};
    return {
      letters: row.map((token) => training.characters[token]), places: knowable(row), rate: training.state.rate,
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
  trainCausal: (rapt, {causal}) => {
    run.training.setCausal(causal);
    return look(rapt, true);
  },
};
