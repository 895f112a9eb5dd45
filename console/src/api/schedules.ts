// What is done to schedules, and what is asked about those that are not stored yet.

import { useEffect, useState } from "preact/hooks";
import { ask, place, problemOf, Refused } from "./client";
import type {
  BackfillBody,
  Foretold,
  NewScheduleBody,
  PreviewBody,
  PutSchedule,
  ScheduleChange,
  ScheduleShape,
  TriggeredRun,
} from "./schema";

/** Holds a schedule, or lets it go on. */
export function setHeld(id: string, held: boolean, reason: string): Promise<ScheduleShape> {
  const verb = held ? "hold" : "unhold";
  return ask(place("v1/schedules", id, verb), { method: "POST", query: { reason } });
}

/** Runs its job now. */
export function trigger(id: string, reason: string): Promise<TriggeredRun> {
  return ask(place("v1/schedules", id, "trigger"), { method: "POST", query: { reason } });
}

/** Runs occurrences of the past. */
export function backfill(id: string, body: BackfillBody, reason: string): Promise<ScheduleShape> {
  const query = { reason };
  return ask(place("v1/schedules", id, "backfill"), { method: "POST", query, body });
}

/** Removes a schedule. */
export function remove(id: string, reason: string): Promise<unknown> {
  return ask(place("v1/schedules", id), { method: "DELETE", query: { reason } });
}

/** Makes a schedule, unless there is one of its id already. */
export async function create(body: NewScheduleBody): Promise<PutSchedule> {
  if (body.id && (await isThere(body.id))) {
    throw new Refused(
      409,
      "exists",
      `there is a schedule ${body.id} already`,
      "take another id, or open that one and edit it",
    );
  }
  return ask("v1/schedules", { method: "POST", body });
}

async function isThere(id: string): Promise<boolean> {
  const { schedules } = await ask<{ schedules: ScheduleShape[] }>("v1/schedules", {
    query: { prefix: id, limit: 1 },
  });
  return schedules.some((each) => each.id === id);
}

/** Changes a schedule, if it is still of this version. */
export function patch(id: string, version: number, body: ScheduleChange): Promise<ScheduleShape> {
  return ask(place("v1/schedules", id), { method: "PATCH", query: { version }, body });
}

/** What would become of a schedule that is being written. */
export interface Foresight {
  seen: Foretold | undefined;
  /** What is wrong with the times. */
  problem: Refused | undefined;
  /** What is wrong with the job, though the times are well. */
  job: Refused | undefined;
  /** Whether the answer to what was written last is awaited. */
  busy: boolean;
}

const PAUSE = 250;
const ABOUT_JOBS = ["invalid-arguments", "unknown-type"];

const NOTHING: Foresight = { seen: undefined, problem: undefined, job: undefined, busy: false };

/**
 * Foretells a schedule a moment after it was written; the times also if its job does not fit yet.
 * One that does not say when, or cannot say so here, is null.
 */
export function useForesight(body: PreviewBody | null, after: string): Foresight {
  const [shown, setShown] = useState(NOTHING);
  const text = body && JSON.stringify(body);
  useEffect(() => {
    if (text === null) return setShown(NOTHING);
    const mine = new AbortController();
    setShown((before) => ({ ...before, busy: true }));
    const timer = window.setTimeout(async () => {
      try {
        const found = await foretell(JSON.parse(text) as PreviewBody, after, mine.signal);
        if (!mine.signal.aborted) setShown({ ...found, problem: undefined, busy: false });
      } catch (error) {
        if (mine.signal.aborted) return;
        const problem = problemOf(error);
        setShown((before) => ({ ...before, problem, job: undefined, busy: false }));
      }
    }, PAUSE);
    return () => {
      window.clearTimeout(timer);
      mine.abort();
    };
  }, [text, after]);
  return shown;
}

async function foretell(
  body: PreviewBody,
  after: string,
  signal: AbortSignal,
): Promise<Pick<Foresight, "seen" | "job">> {
  const asked = { method: "POST", query: { count: 10, after }, signal } as const;
  try {
    return { seen: await ask("v1/schedules:preview", { ...asked, body }), job: undefined };
  } catch (error) {
    const job = problemOf(error);
    if (!ABOUT_JOBS.includes(job.code)) throw error;
    const { type: _type, arguments: _arguments, ...times } = body;
    return { seen: await ask("v1/schedules:preview", { ...asked, body: times }), job };
  }
}
