// Who gets how much: shares of what runs against shares of the weights.

import type { Tenant } from "../api/schema";

/** Looks that are remembered: what runs at one moment says little. */
export const LOOKS = 12;

export type Look = ReadonlyMap<string, number>;

export interface Share {
  /** Part of the weights of all that take part, 0 to 1; null: it has nothing to run. */
  due: number | null;
  /** Part of what was running at the last looks; null: nothing was. */
  had: number | null;
}

/** Adds what is running now to the last looks. */
export function looked(before: readonly Look[], tenants: readonly Tenant[]): readonly Look[] {
  const now = new Map(tenants.map(({ name, running }) => [name, running]));
  return [...before, now].slice(-LOOKS);
}

/** Compares the shares. Only tenants that have something to run, and are not held, take part. */
export function shares(
  tenants: readonly Tenant[],
  looks: readonly Look[],
): ReadonlyMap<string, Share> {
  const sums = new Map(
    tenants.map(({ name }) => [name, looks.reduce((sum, look) => sum + (look.get(name) ?? 0), 0)]),
  );
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
