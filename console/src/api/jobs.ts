// What operators do to jobs.

import { ask, place } from "./client";
import type { ErasedJob, Job } from "./schema";

export type Verb = "cancel" | "retry" | "hold" | "unhold" | "replay";

export const VERBS: readonly Verb[] = ["retry", "replay", "hold", "unhold", "cancel"];

const ENDED = ["succeeded", "dead", "cancelled", "expired"];

/** Tells whether nothing happens to a job of this status any more, unless somebody acts. */
export function isOver(status: string): boolean {
  return ENDED.includes(status);
}

/** Tells what can be done to a job of this status. */
export function fits(verb: Verb, status: string): boolean {
  switch (verb) {
    case "retry":
      return ["scheduled", "retrying", "ready", "dead"].includes(status);
    case "replay":
      return isOver(status);
    case "unhold":
      return status === "paused";
    case "hold":
      return !isOver(status) && status !== "paused";
    case "cancel":
      return !isOver(status) && status !== "cancelling";
  }
}

export const LABELS: Record<Verb, string> = {
  retry: "Retry",
  replay: "Replay",
  hold: "Hold",
  unhold: "Unhold",
  cancel: "Cancel",
};

/** What retry and replay do to jobs that have ended; this is how they differ. */
export const RETRY =
  "Retry continues the same job: new attempts with the same effect keys, so completed side effects are not repeated.";
export const REPLAY =
  "Replay starts the job over under the same id: new effect keys, so its side effects happen again.";

const RUN_NOW = "The job becomes due now.";

/** What each verb does to a selection of jobs. */
export const MEANINGS: Record<Verb, string> = {
  retry: `Waiting jobs become due now. ${RETRY}`,
  replay: REPLAY,
  hold: "Held jobs do not run until they are unheld.",
  unhold: "The jobs continue as if they had not been held.",
  cancel: "Waiting jobs never run; running jobs are asked to stop.",
};

/** What a verb does to one job, and what it is called there. */
export function offer(verb: Verb, status: string): { label: string; meaning: string } {
  const label = LABELS[verb];
  const isActive = ["claimed", "running"].includes(status);
  switch (verb) {
    case "retry":
      if (status === "dead") return { label, meaning: RETRY };
      return { label: status === "retrying" ? "Retry now" : "Run now", meaning: RUN_NOW };
    case "replay":
      return { label, meaning: REPLAY };
    case "hold":
      return { label, meaning: "The job does not run until it is unheld." };
    case "unhold":
      return { label, meaning: "The job continues as if it had not been held." };
    case "cancel":
      return {
        label,
        meaning: isActive ? "The job is asked to stop." : "The job will never run.",
      };
  }
}

/** Does it to one job, and gives the job after it. */
export function change(id: string, verb: Verb, reason: string): Promise<Job> {
  if (verb === "cancel")
    return ask<Job>(place("v1/jobs", id), { method: "DELETE", query: { reason } });
  return ask<Job>(place("v1/jobs", id, verb), { method: "POST", query: { reason } });
}

/** Erases a job that has ended, with all that belongs to it. */
export function erase(id: string, reason: string): Promise<ErasedJob> {
  return ask<ErasedJob>(place("v1/jobs", id, "erase"), { method: "POST", query: { reason } });
}
