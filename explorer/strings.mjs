// All text of the page itself, in both languages: one table, with a part for each view. (The text of exhibits comes
// from the engine and is shared with the terminal.) `{0}` is the first argument.
import {data} from './strings/data.mjs';
import {questions} from './strings/questions.mjs';
import {shell} from './strings/shell.mjs';
import {train} from './strings/train.mjs';
import {walk} from './strings/walk.mjs';

export const STRINGS = {...shell, ...walk, ...questions, ...data, ...train};
export const LANGUAGES = ['en', 'zh'];

/** The text for a key, in one language. If the first part is the number 1, the text for `key.one`, if there is one. */
export function say(lang, key, ...parts) {
  const both = (parts[0] === 1 && STRINGS[`${key}.one`]) || STRINGS[key];
  if (!both) throw new Error(`no words for ${key}`);
  return both[lang].replace(/\{(\d)\}/g, (_, n) => parts[n]);
}
