// Dead letters retried, replayed or purged in batches, while other pages are shown.

import { useEffect, useState } from "preact/hooks";
import { ask, patiently, problemOf, type Refused } from "../api/client";
import type { DeadDone } from "../api/schema";
import { announce } from "./news";
import { stay } from "./stay";
import { plural } from "./text";

export type Verb = "retry" | "replay" | "purge";

const DONE: Record<Verb, string> = { retry: "retried", replay: "replayed", purge: "removed" };

/** Which dead letters: the filters of the service, as lists, or all. */
export interface Choice {
  type?: string[];
  queue?: string[];
  tenant?: string[];
  fingerprint?: string[];
  tag?: string;
  all?: boolean;
}

export interface Batch {
  id: number;
  verb: Verb;
  what: string;
  done: number;
  /** How many there were when it began, as far as the service counts. */
  total: { count: number; at_least: boolean };
  /** Per second; 0: as fast as the service can. */
  rate: number;
  state: "running" | "stopped" | "done" | "failed";
  problem?: Refused;
}

/** Jobs of one request if nobody asked for less. */
const MOST = 100;

type Listener = (batches: readonly Batch[]) => void;
const listeners = new Set<Listener>();
let batches: readonly Batch[] = [];
let last = 0;

function change(next: readonly Batch[]): void {
  batches = next;
  for (const listener of listeners) listener(batches);
}

function update(id: number, changes: Partial<Batch>): void {
  change(batches.map((each) => (each.id === id ? { ...each, ...changes } : each)));
}

function stateOf(id: number): Batch["state"] | undefined {
  return batches.find((each) => each.id === id)?.state;
}

/** Tells how many it would be about, without doing anything. */
export function foresee(verb: Verb, choice: Choice): Promise<DeadDone> {
  return ask<DeadDone>(`v1/dlq:${verb}`, {
    method: "POST",
    body: { ...choice, dry_run: true, limit: 20 },
  });
}

export interface Order {
  verb: Verb;
  what: string;
  choice: Choice;
  total: Batch["total"];
  rate: number;
  reason: string;
}

/** Begins it. The first part is done, or refused, when the promise ends; the rest goes on. */
export async function begin(order: Order): Promise<void> {
  const { verb, what, total, rate } = order;
  const leave = stay();
  try {
    const first = await part(order, null);
    const id = ++last;
    change([...batches, { id, verb, what, total, rate, done: first.done, state: "running" }]);
    if (first.next === null) finish(id);
    else return void goOn(id, order, first.next).finally(leave);
  } catch (error) {
    leave();
    throw error;
  }
  leave();
}

async function goOn(id: number, order: Order, from: string): Promise<void> {
  let cursor: string | null = from;
  while (cursor !== null) {
    if (order.rate) await new Promise((wake) => window.setTimeout(wake, 1000));
    if (stateOf(id) !== "running") return;
    try {
      const from: string = cursor;
      const answer: DeadDone = await patiently(() => part(order, from));
      const done = (batches.find((each) => each.id === id)?.done ?? 0) + answer.done;
      update(id, { done });
      cursor = answer.next;
    } catch (error) {
      update(id, { state: "failed", problem: problemOf(error) });
      return;
    }
  }
  if (stateOf(id) === "running") finish(id);
}

function part({ verb, choice, rate, reason }: Order, cursor: string | null): Promise<DeadDone> {
  const limit = Math.min(rate || MOST, 1000);
  return ask<DeadDone>(`v1/dlq:${verb}`, {
    method: "POST",
    query: { reason },
    body: { ...choice, limit, cursor },
  });
}

function finish(id: number): void {
  const batch = batches.find((each) => each.id === id);
  update(id, { state: "done" });
  if (batch) announce(`${plural(batch.done, "job")} ${DONE[batch.verb]}`);
  window.setTimeout(() => dismiss(id), 8_000);
}

/** Ends it after the part that is under way. */
export function stop(id: number): void {
  update(id, { state: "stopped" });
}

/** Forgets one that has ended. */
export function dismiss(id: number): void {
  change(batches.filter((each) => each.id !== id));
}

/** Ends and forgets all: they were begun by somebody who has left. */
export function forgetAll(): void {
  change([]);
}

/** Gives all that run, or have ended lately. */
export function useBatches(): readonly Batch[] {
  const [seen, setSeen] = useState(batches);
  useEffect(() => {
    listeners.add(setSeen);
    setSeen(batches);
    return () => void listeners.delete(setSeen);
  }, []);
  return seen;
}
