// Worker methods of Walk.

const CONTEXT = 32;

// The last characters of a text that are in the model's vocabulary; if there are too few, an example text.
function readable(text, characters, context) {
  const known = [...text].filter((letter) => characters.includes(letter)).slice(-context);
  return known.length >= 4 ? {letters: known, own: true} : {letters: [...'xKq7mTzBaKq7m'], own: false};
}

export const methods = {
  /** {text, heads, causal} → the walk, in the format of `rapt explain --json`. */
  walk: (rapt, {text, heads, causal}) => rapt.walk(text, {heads, causal}),

  /** Runs the built-in model on the letters of a text: {letters, own: whether they are the text's, likely, maps}. */
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
