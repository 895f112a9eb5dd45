/** Every status there is, in the order of a life. */
export const STATUSES = [
  "scheduled",
  "blocked",
  "ready",
  "paused",
  "claimed",
  "running",
  "cancelling",
  "retrying",
  "succeeded",
  "dead",
  "cancelled",
  "expired",
] as const;

const TONES: Record<string, string> = {
  scheduled: "later",
  blocked: "later",
  ready: "next",
  paused: "still",
  claimed: "next",
  running: "lit",
  cancelling: "warn",
  retrying: "warn",
  succeeded: "good",
  dead: "bad",
  cancelled: "still",
  expired: "still",
};

/** A status: a mark and its word, so that it can be told without colours. */
export function Status({ status }: { status: string }) {
  return <Badge tone={TONES[status] ?? "still"}>{status}</Badge>;
}

/** A word with a mark in front. Tones: lit, good, bad, warn, next, later, still. */
export function Badge({ tone, children }: { tone: string; children: string }) {
  return (
    <span class={`badge ${tone}`}>
      <i aria-hidden="true" />
      {children}
    </span>
  );
}
