// Text of others, made safe to look at: what cannot be seen, or turns the text around, is named.

/** Control characters but tab and newline, marks of direction, characters without width, halves. */
const ODD =
  // biome-ignore lint: these are the characters in question
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const ODDS = new RegExp(ODD.source, "g");

export interface Piece {
  text: string;
  /** Whether the text names a character that cannot be shown. */
  odd: boolean;
}

/** Cuts a text into what can be shown as it is and names of what cannot. */
export function pieces(text: string): Piece[] {
  if (!ODD.test(text)) return [{ text, odd: false }];
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(ODDS)) {
    if (match.index > from) found.push({ text: text.slice(from, match.index), odd: false });
    found.push({ text: named(match[0]), odd: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from), odd: false });
  return found;
}

/** Gives a text for places that take no markup, such as titles. */
export function plainly(text: string): string {
  return pieces(text)
    .map((piece) => piece.text)
    .join("");
}

function named(character: string): string {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Cuts a text after so many characters, never inside of one. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]$/.test(text.slice(0, most)) ? most - 1 : most;
  return `${text.slice(0, end)}…`;
}

/** Gives the first line that says something. */
export function firstLine(text: string): string {
  return text.split("\n").find((line) => line.trim()) ?? "";
}

/** `1 job`, `2 jobs`. */
export function plural(number: number, word: string, words = `${word}s`): string {
  return `${count(number)} ${number === 1 ? word : words}`;
}

/** A number as people read it. */
export function count(number: number): string {
  return Math.round(number).toLocaleString("en");
}

/** Counts of the store are exact to 10,000, and mean "at least" from there. */
export function counted(number: number): string {
  return number >= 10_000 ? atLeast(number) : count(number);
}

/** A number of those that were counted, where there may be more. */
export function atLeast(number: number): string {
  return `≥ ${count(number)}`;
}

/** A number as the service tells it: exact, or at least so many. */
export function tallied({ count: number, at_least }: { count: number; at_least: boolean }): string {
  return at_least ? atLeast(number) : count(number);
}
