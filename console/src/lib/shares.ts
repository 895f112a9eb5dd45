// Who gets how much: shares of what runs against shares of the weights.

import type { Tenant } from "../api/schema";

/** Milliseconds that are remembered: what runs at one moment says little. */
const SPAN = 60_000;

/** What was running from one moment on, until the next look. */
export interface Look {
  at: number;
  running: ReadonlyMap<string, number>;
}

export interface Share {
  /** Part of the weights of all that take part, 0 to 1; null: it has nothing to run. */
  due: number | null;
  /** Part of what was running in the last minute; null: nothing was. */
  had: number | null;
}

/** Adds what is running now to the last looks, unless those were too long ago. */
export function looked(
  before: readonly Look[],
  tenants: readonly Tenant[],
  at: number,
): readonly Look[] {
  const now = { at, running: new Map(tenants.map(({ name, running }) => [name, running])) };
  const isNear = at - (before.at(-1)?.at ?? 0) < 2 * SPAN;
  const all = isNear ? [...before, now] : [now];
  // The last look before the span says what was running when it began.
  return all.slice(
    Math.max(
      0,
      all.findLastIndex((look) => look.at <= at - SPAN),
    ),
  );
}

/** Compares the shares. Only tenants that have something to run, and are not held, take part. */
export function shares(
  tenants: readonly Tenant[],
  looks: readonly Look[],
  now: number,
): ReadonlyMap<string, Share> {
  const sums = ran(looks, now);
  const all = [...sums.values()].reduce((sum, each) => sum + each, 0);
  const takesPart = ({ name, held, waiting }: Tenant) =>
    !held && (waiting > 0 || (sums.get(name) ?? 0) > 0);
  const weights = tenants.filter(takesPart).reduce((sum, { weight }) => sum + weight, 0);
  return new Map(
    tenants.map((tenant) => [
      tenant.name,
      {
        due: takesPart(tenant) ? tenant.weight / weights : null,
        had: all ? (sums.get(tenant.name) ?? 0) / all : null,
      },
    ]),
  );
}

/** Adds up for how long jobs of each tenant were running. */
function ran(looks: readonly Look[], now: number): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const [place, { at, running }] of looks.entries()) {
    const end = looks[place + 1]?.at ?? now;
    const long = Math.max(1, end - Math.max(at, now - SPAN));
    for (const [name, number] of running) sums.set(name, (sums.get(name) ?? 0) + number * long);
  }
  return sums;
}
