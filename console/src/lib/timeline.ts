// The life of a job as a row of stretches: it waits, it runs, it waits again.

import { isOver } from "../api/jobs";
import type { AttemptShape, Job } from "../api/schema";

export interface Stretch {
  kind: "waits" | "runs";
  /** Colour, as of a badge. */
  tone: string;
  label: string;
  seconds: number;
}

const TONES: Record<string, string> = {
  claimed: "next",
  running: "lit",
  succeeded: "good",
  failed: "bad",
  crashed: "bad",
  lost: "bad",
};

/** Colour of how an attempt ended. */
export function outcomeTone(outcome: string): string {
  return TONES[outcome] ?? "warn";
}

/** How an attempt ended, or what it does: one that is claimed has not started. */
export function outcomeOf(job: Job, { outcome, finished_at }: AttemptShape): string {
  return finished_at === null && job.status === "claimed" ? job.status : outcome;
}

/** Cuts a life into stretches. Attempts are given oldest first; some may be missing. */
export function stretches(job: Job, attempts: readonly AttemptShape[], now: number): Stretch[] {
  const found: Stretch[] = [];
  let at = Date.parse(job.created_at);
  const wait = (until: number, label: string) => {
    if (until > at)
      found.push({ kind: "waits", tone: "later", label, seconds: (until - at) / 1000 });
    at = Math.max(at, until);
  };
  for (const [place, attempt] of attempts.entries()) {
    wait(Date.parse(attempt.started_at), place === 0 ? "queued" : "waited");
    const end = attempt.finished_at === null ? now : Date.parse(attempt.finished_at);
    const seconds = Math.max(0, end - Date.parse(attempt.started_at)) / 1000;
    const outcome = outcomeOf(job, attempt);
    found.push({
      kind: outcome === "claimed" ? "waits" : "runs",
      tone: outcomeTone(outcome),
      label: `attempt ${attempt.number}: ${outcome}`,
      seconds,
    });
    at = Math.max(at, end);
  }
  const running = attempts.at(-1)?.finished_at === null;
  if (!running && !isOver(job.status)) wait(now, "waiting");
  return found;
}

/** Gives the width of a stretch: longer is wider, but a day does not hide a millisecond. */
export function width({ seconds }: Stretch): number {
  return 1 + Math.log2(1 + seconds * 20);
}
