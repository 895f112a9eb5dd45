// Whether the service answers at all, and whether its store does, as was found out last.

type Watcher = (since: number | undefined) => void;

/** Something that may be away, and since when. */
class Reach {
  private watchers = new Set<Watcher>();
  private from: number | undefined;

  /** Since when it does not answer, in milliseconds since 1970; undefined: it does. */
  since(): number | undefined {
    return this.from;
  }

  /** Takes in whether it has answered just now. */
  note(answered: boolean): void {
    const next = answered ? undefined : (this.from ?? Date.now());
    if (next === this.from) return;
    this.from = next;
    for (const watcher of this.watchers) watcher(next);
  }

  /** Calls back when that changes. */
  watch(watcher: Watcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

export const service = new Reach();
export const store = new Reach();
