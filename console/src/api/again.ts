// When to ask again: when the stream of changes says so; without it, every few seconds; and never
// while nobody looks.

import type { Refused } from "./client";
import { hear, hearTrouble, link, watchLink } from "./stream";

/** Changes that follow each other quickly are asked for together, so many milliseconds apart. */
const SOON = 3_000;
const MINUTE = 60_000;
/** So many times as long as an answer took is waited before the next question. */
const CALM = 20;

export interface Rhythm {
  /** Milliseconds between two questions while nothing is told; 0: it is never asked again. */
  every: number;
  /** Topic that tells the very same: while it is heard, nothing is asked. */
  topic: string | undefined;
  /** Topic that tells that something has changed: then it is asked, and once in a minute. */
  signal: string | undefined;
}

/**
 * Asks again and again while the tab is seen, never twice at once. Answers that take long are asked
 * for more rarely: looking must not become a load. `trouble` tells why the last question failed.
 */
export function keepAsking(
  ask: () => Promise<void>,
  trouble: () => Refused | undefined,
  { every, topic, signal }: Rhythm,
): (() => void) | undefined {
  if (!every) return undefined;
  const apart = signal === undefined ? 0 : SOON;
  let rested = performance.now() + apart;
  let timer: number | undefined;
  let [busy, wanted, ended] = [false, false, false];

  const wait = (after: number) => {
    window.clearTimeout(timer);
    timer = window.setTimeout(due, Math.max(after, rested - performance.now()));
  };
  const due = () => {
    // Whoever comes back asks, and so does whoever loses the stream.
    const isTold = topic !== undefined && link() === "live" && !trouble();
    if (!document.hidden && !isTold) void now();
  };
  const now = async () => {
    wanted = busy;
    if (busy) return;
    busy = true;
    window.clearTimeout(timer);
    const began = performance.now();
    await ask();
    busy = false;
    const ready = performance.now();
    rested = ready + Math.max(apart, (ready - began) * CALM);
    if (!ended) wait(wanted ? 0 : pause(every, signal, trouble()));
  };
  const change = () => {
    if (busy) wanted = true;
    else wait(0);
  };
  const seen = () => document.hidden || void now();

  const ends: (() => void)[] = [];
  if (topic !== undefined || signal !== undefined) ends.push(onLost(change));
  if (topic !== undefined) ends.push(hearTrouble(() => void now()));
  if (signal !== undefined) ends.push(onChange(signal, change));
  document.addEventListener("visibilitychange", seen);
  wait(every);
  return () => {
    ended = true;
    window.clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
    for (const end of ends) end();
  };
}

/** Says for how long nothing has to be asked, if nothing happens. */
function pause(every: number, signal: string | undefined, problem: Refused | undefined): number {
  if (problem) return problem.isLasting ? MINUTE : Math.max(every, problem.after * 1000);
  // Counts do not tell everything, and charts go on with every minute. Not all ask at once.
  return signal !== undefined && link() === "live"
    ? MINUTE - (Date.now() % MINUTE) + 500 + Math.random() * 2_000
    : every;
}

/** Calls back when the stream breaks. */
function onLost(lost: () => void): () => void {
  let before = link();
  return watchLink((next) => {
    if (before === "live" && next === "polling") lost();
    before = next;
  });
}

/** Calls back when a topic says something else than before. */
function onChange(topic: string, changed: () => void): () => void {
  let known: string | undefined;
  return hear(topic, (said) => {
    const next = JSON.stringify(said, timeless);
    if (next !== known) changed();
    known = next;
  });
}

/** Leaves out what changes by itself while nothing happens: the moment, and how old things are. */
function timeless(name: string, value: unknown): unknown {
  return name === "at" || name.endsWith("_seconds") ? undefined : value;
}
