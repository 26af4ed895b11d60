// Worker methods of Questions: the exhibits of src/exhibits, which the terminal shows too.
export const methods = {
  /** {lang} → the list of exhibits, without their blocks. */
  questions: (rapt, {lang}) => rapt.questions(lang),
  /** {number, lang, settings} → one complete exhibit. */
  exhibit: (rapt, {number, lang, settings}) => rapt.exhibit(number, {lang, settings}),
};
