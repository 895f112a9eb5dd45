// What is done to schedules, and what is asked about those that are not stored yet.

import { useEffect, useState } from "preact/hooks";
import { type Filters, href } from "../lib/route";
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

/** What a schedule is known by: ids are unique in a tenant only. */
export interface Key {
  id: string;
  tenant: string | undefined;
}

const DEFAULT_TENANT = "default";

/** Writes a link to a schedule; without a tenant it leads to the default one, or to one's own. */
export function scheduleLink({ id, tenant }: Key, filters: Filters = {}): string {
  const owner = tenant === DEFAULT_TENANT ? undefined : tenant;
  return href(["schedules", id], { tenant: owner, ...filters });
}

/** Holds a schedule, or lets it go on. */
export function setHeld(
  { id, tenant }: Key,
  held: boolean,
  reason: string,
): Promise<ScheduleShape> {
  const verb = held ? "hold" : "unhold";
  return ask(place("v1/schedules", id, verb), { method: "POST", query: { reason, tenant } });
}

/** Runs its job now. */
export function trigger({ id, tenant }: Key, reason: string): Promise<TriggeredRun> {
  return ask(place("v1/schedules", id, "trigger"), { method: "POST", query: { reason, tenant } });
}

/** Runs occurrences of the past. */
export function backfill(
  { id, tenant }: Key,
  body: BackfillBody,
  reason: string,
): Promise<ScheduleShape> {
  const query = { reason, tenant };
  return ask(place("v1/schedules", id, "backfill"), { method: "POST", query, body });
}

/** Removes a schedule. */
export function remove({ id, tenant }: Key, reason: string): Promise<unknown> {
  return ask(place("v1/schedules", id), { method: "DELETE", query: { reason, tenant } });
}

/** Makes a schedule, unless there is one of its id already. `own` is the tenant of who makes it. */
export async function create(body: NewScheduleBody, own: string | null): Promise<PutSchedule> {
  if (body.id && (await isThere(body.id, body.tenant ?? own ?? DEFAULT_TENANT))) {
    throw new Refused(
      409,
      "exists",
      `there is a schedule ${body.id} already`,
      "take another id, or open that one and edit it",
    );
  }
  return ask("v1/schedules", { method: "POST", body });
}

async function isThere(id: string, tenant: string): Promise<boolean> {
  const { schedules } = await ask<{ schedules: ScheduleShape[] }>("v1/schedules", {
    query: { prefix: id, tenant, limit: 1 },
  });
  return schedules.some((each) => each.id === id);
}

/** Changes a schedule, if it is still of this version. */
export function patch(
  { id, tenant }: Key,
  version: number,
  body: ScheduleChange,
): Promise<ScheduleShape> {
  return ask(place("v1/schedules", id), { method: "PATCH", query: { version, tenant }, body });
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
