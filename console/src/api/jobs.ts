// What operators do to jobs.

import { ask, place } from "./client";
import type { Job } from "./schema";

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
  retry: "Run now",
  replay: "Replay",
  hold: "Hold",
  unhold: "Unhold",
  cancel: "Cancel",
};

export const MEANINGS: Record<Verb, string> = {
  retry: "A waiting job runs now; a dead one runs again.",
  replay: "Jobs that have ended run again under the same id, with all their attempts anew.",
  hold: "They do not run until somebody lets them go on.",
  unhold: "They go on as if they had not been held.",
  cancel: "Waiting jobs never run; running ones are asked to stop.",
};

/** Does it to one job, and gives the job after it. */
export function change(id: string, verb: Verb, reason: string): Promise<Job> {
  if (verb === "cancel")
    return ask<Job>(place("v1/jobs", id), { method: "DELETE", query: { reason } });
  return ask<Job>(place("v1/jobs", id, verb), { method: "POST", query: { reason } });
}
