// What the walk computes, in the worker.

const CONTEXT = 32;

// The characters of a text that the model knows, the last of them; or, where there are too few, a text that it likes.
function readable(text, characters, context) {
  const known = [...text].filter((letter) => characters.includes(letter)).slice(-context);
  return known.length >= 4 ? {letters: known, own: true} : {letters: [...'xKq7mTzBaKq7m'], own: false};
}

export const methods = {
  /** {text, heads, causal} → the walk, as `rapt explain --json` has it. */
  walk: (rapt, {text, heads, causal}) => rapt.walk(text, {heads, causal}),

  /** What the built-in trained model makes of the letters of a text: {letters, own: are they of the text?, likely, maps}. */
  vocabulary: (rapt, {text}) => rapt.scope(() => {
    const model = rapt.builtinModel();
    const {characters, context} = model.config;
    const {letters, own} = readable(text, characters, Math.min(context, CONTEXT));
    const {logits, weights} = model.read(letters.map((letter) => characters.indexOf(letter)));
    const size = characters.length;
    const last = logits.values().slice(-size);
    const most = Math.max(...last);
    const powers = Array.from(last, (logit) => Math.exp(logit - most));
    const sum = powers.reduce((a, b) => a + b, 0);
    const likely = powers.map((power, n) => ({letter: characters[n], logit: last[n], chance: power / sum}));
    likely.sort((a, b) => b.chance - a.chance);
    return {
      letters, own, characters, width: model.config.width,
      likely: likely.slice(0, 8),
      maps: weights.map((each) => Array.from(each.values())),
    };
  }),
};
