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
    found.push({
      kind: "runs",
      tone: outcomeTone(attempt.outcome),
      label: `attempt ${attempt.number}: ${attempt.outcome}`,
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
