// A schedule while somebody writes it: every field a text, as it stands in the form.

import type { NewScheduleBody, ScheduleChange, ScheduleShape } from "../api/schema";

export const KINDS = ["cron", "every", "rrule", "at"] as const;
export type Kind = (typeof KINDS)[number];

/** Fields that are numbers to the service. */
const NUMBERS = [
  "every",
  "window",
  "jitter",
  "max_runs",
  "hold_after",
  "keep_succeeded",
  "keep_failed",
  "timeout",
] as const;
const TEXTS = [
  "id",
  "type",
  "cron",
  "rrule",
  "at",
  "timezone",
  "gap",
  "twice",
  "overlap",
  "catch_up",
  "start",
  "end",
  "queue",
  "priority",
  "tenant",
] as const;
/** Only clocks of a place have them. */
const CLOCKS: readonly string[] = ["timezone", "gap", "twice"];

type Field = (typeof NUMBERS)[number] | (typeof TEXTS)[number] | "arguments" | "tags";

/** `kind` is empty for a calendar that has no form: it stays as it is until one is chosen. */
export type Draft = Record<Field, string> & { kind: Kind | "" };

const EMPTY: Draft = {
  kind: "cron",
  arguments: "{}",
  tags: "",
  ...(Object.fromEntries([...NUMBERS, ...TEXTS].map((name) => [name, ""])) as Record<
    (typeof NUMBERS)[number] | (typeof TEXTS)[number],
    string
  >),
};

/** Gives a draft of nothing, or of what is known already. */
export function emptyDraft(known: Partial<Draft> = {}): Draft {
  return { ...EMPTY, ...known };
}

/** Gives a stored schedule as a draft; null if nobody here can read it. */
export function draftOf(schedule: ScheduleShape): Draft | null {
  const { spec } = schedule;
  if (!spec) return null;
  const { calendar } = spec;
  const said = (value: unknown) => (value === null || value === undefined ? "" : String(value));
  const kind = { cron: "cron", interval: "every", rrule: "rrule", once: "at" }[
    said(calendar["kind"])
  ];
  return {
    ...EMPTY,
    kind: (kind ?? "") as Kind | "",
    id: schedule.id,
    type: schedule.type,
    tenant: schedule.tenant,
    arguments: JSON.stringify(spec.arguments, null, 2) ?? "{}",
    tags: spec.tags.join(", "),
    cron: said(calendar["expression"]),
    every: said(calendar["every"]),
    rrule: said(calendar["text"]),
    at: said(calendar["at"]),
    timezone: said(calendar["timezone"]),
    gap: said(calendar["gap"]),
    twice: said(calendar["overlap"]),
    overlap: spec.overlap,
    catch_up: spec.catch_up,
    window: said(spec.window),
    jitter: said(spec.jitter),
    start: said(spec.start ?? calendar["start"]),
    end: said(spec.end),
    max_runs: said(spec.max_runs),
    hold_after: said(spec.hold_after),
    keep_succeeded: said(spec.keep_succeeded),
    keep_failed: said(spec.keep_failed),
    queue: spec.queue,
    priority: spec.priority,
    timeout: said(spec.timeout),
  };
}

/** Reads the arguments; a text says what is wrong with them. */
export function argumentsOf(draft: Draft): Record<string, unknown> | string {
  const text = draft.arguments.trim() || "{}";
  try {
    const found: unknown = JSON.parse(text);
    if (found !== null && typeof found === "object" && !Array.isArray(found))
      return found as Record<string, unknown>;
    return 'The arguments must be an object, as in {"name": "Ada"}.';
  } catch (error) {
    return `This is no JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

type Fields = Record<string, unknown>;

/** Gives a draft as the service takes it: only what is said. Arguments that are no JSON are left out. */
export function bodyOf(draft: Draft): Fields {
  const body: Fields = {};
  const fits = (name: string) => {
    if ((KINDS as readonly string[]).includes(name)) return name === draft.kind;
    return !CLOCKS.includes(name) || draft.kind === "cron" || draft.kind === "rrule";
  };
  for (const name of TEXTS) if (draft[name].trim() && fits(name)) body[name] = draft[name].trim();
  for (const name of NUMBERS)
    if (draft[name].trim() && fits(name)) body[name] = Number(draft[name]);
  const given = argumentsOf(draft);
  if (typeof given !== "string") body["arguments"] = given;
  const tags = draft.tags.split(",").map((tag) => tag.trim());
  if (tags.some(Boolean)) body["tags"] = tags.filter(Boolean);
  return body;
}

/** Gives a draft as the body of a new schedule. */
export function newOf(draft: Draft): NewScheduleBody {
  return bodyOf(draft) as NewScheduleBody;
}

/** Gives what is different about a draft; what was emptied is null: by default. */
export function changesOf(before: Draft, after: Draft): ScheduleChange {
  const old = bodyOf(before);
  const now = bodyOf(after);
  const changes: Fields = {};
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
    if (name === "tenant") continue; // another tenant's would be another schedule
    if (JSON.stringify(old[name]) !== JSON.stringify(now[name])) changes[name] = now[name] ?? null;
  }
  return changes as ScheduleChange;
}

/** Tells whether something was written that would be lost with a draft. */
export function isTouched(before: Draft, after: Draft): boolean {
  return (Object.keys(after) as (keyof Draft)[]).some((name) => before[name] !== after[name]);
}

/** Puts the changes that were made to `before` on top of what somebody else has made of it. */
export function rebased(before: Draft, mine: Draft, theirs: Draft): Draft {
  const names = Object.keys(theirs) as (keyof Draft)[];
  const found = names.map((name) => [
    name,
    mine[name] === before[name] ? theirs[name] : mine[name],
  ]);
  return Object.fromEntries(found) as Draft;
}

export interface Difference {
  name: string;
  before: string;
  theirs: string;
  mine: string;
}

/** Tells what somebody else has changed, beside what was to be changed here. */
export function differences(before: Draft, mine: Draft, theirs: Draft): Difference[] {
  return (Object.keys(theirs) as (keyof Draft)[])
    .filter((name) => before[name] !== theirs[name])
    .map((name) => ({ name, before: before[name], theirs: theirs[name], mine: mine[name] }));
}
