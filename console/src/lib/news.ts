// What just happened, for eyes and for screen readers.

export interface News {
  id: number;
  text: string;
  kind: "good" | "bad";
}

type Listener = (news: readonly News[]) => void;

const SHOWN_FOR = 6_000;
const listeners = new Set<Listener>();
let all: readonly News[] = [];
let last = 0;

/** Tells it, for some seconds. */
export function announce(text: string, kind: News["kind"] = "good"): void {
  const news = { id: ++last, text, kind };
  change([...all.slice(-3), news]);
  window.setTimeout(() => change(all.filter((each) => each !== news)), SHOWN_FOR);
}

function change(next: readonly News[]): void {
  all = next;
  for (const listener of listeners) listener(all);
}

/** Calls back with what is told at present, whenever it changes. */
export function hearNews(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
