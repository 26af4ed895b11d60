// Every word that the page itself says, in both languages: one table, a part for each view. (What exhibits say comes
// from the engine, which the terminal shares.) `{0}` is the first thing put in.
import {data} from './strings/data.mjs';
import {questions} from './strings/questions.mjs';
import {shell} from './strings/shell.mjs';
import {train} from './strings/train.mjs';
import {walk} from './strings/walk.mjs';

export const STRINGS = {...shell, ...walk, ...questions, ...data, ...train};
export const LANGUAGES = ['en', 'zh'];

/** The sentence of a key, in one language. */
export function say(lang, key, ...parts) {
  const both = STRINGS[key];
  if (!both) throw new Error(`no words for ${key}`);
  return both[lang].replace(/\{(\d)\}/g, (_, n) => parts[n]);
}
