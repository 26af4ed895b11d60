// What the questions compute, in the worker: the exhibits of src/exhibits, the same that the terminal draws.
export const methods = {
  /** {lang} → the list, without what they show. */
  questions: (rapt, {lang}) => rapt.questions(lang),
  /** {number, lang, settings} → one, whole. */
  exhibit: (rapt, {number, lang, settings}) => rapt.exhibit(number, {lang, settings}),
};
