// Whether the service answers at all, as the last request has found out.

type Watcher = (since: number | undefined) => void;

const watchers = new Set<Watcher>();
let since: number | undefined;

/** Says since when the service does not answer, in milliseconds since 1970; undefined: it does. */
export function awaySince(): number | undefined {
  return since;
}

/** Takes in whether it has answered just now. */
export function noteAnswer(answered: boolean): void {
  const next = answered ? undefined : (since ?? Date.now());
  if (next === since) return;
  since = next;
  for (const watcher of watchers) watcher(next);
}

/** Calls back when that changes. */
export function watchAway(watcher: Watcher): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}
