// Changes as the service tells them: one stream of events for all topics that the page looks at.
//
// The browser's own EventSource cannot tell why it was refused, so the stream is read with fetch. It
// ends while the tab is hidden, comes back by itself, and where there is none the page asks every few seconds.

import { address, refusal } from "./client";
import { proof } from "./proof";
import { service, store } from "./reach";

export type Link = "connecting" | "live" | "polling" | "hidden";

const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;
/** The service sends a heartbeat every 5 seconds. */
const LONGEST_SILENCE = 12_000;
const NO_STREAM_PAUSE = 300_000;
const NEXT_PAGE = 1_000;
/** The event that tells whether the store answers. */
const STORE = "store";
/** The event that tells that there is no more of a topic; which one, it does not say. */
const PROBLEM = "problem";

type Hear = (data: unknown) => void;

const topics = new Map<string, Set<Hear>>();
const watchers = new Set<(link: Link) => void>();
const troubled = new Set<() => void>();
let state: Link = "connecting";
let running: AbortController | undefined;
let pause = FIRST_PAUSE;
let again: number | undefined;

/** Says how changes come at present. */
export function link(): Link {
  return state;
}

/** Calls back when that changes. */
export function watchLink(watcher: (link: Link) => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** Calls back with what a topic says, whenever it changes. */
export function hear(topic: string, listener: Hear): () => void {
  const found = topics.get(topic) ?? new Set();
  topics.set(topic, found.add(listener));
  if (found.size === 1) restart();
  return () => {
    found.delete(listener);
    if (found.size || topics.get(topic) !== found) return;
    topics.delete(topic);
    restart();
  };
}

/** Calls back when there is no more of some topic: whoever reads one asks for it once more. */
export function hearTrouble(listener: () => void): () => void {
  troubled.add(listener);
  return () => troubled.delete(listener);
}

/** Begins anew, with the topics and the session of now. */
export function restart(after = 30): void {
  running?.abort();
  running = undefined;
  window.clearTimeout(again);
  if (document.hidden) say("hidden");
  else if (topics.size) again = window.setTimeout(() => void run(), after);
  // Most often another page follows at once, with topics of its own.
  else again = window.setTimeout(() => say("polling"), NEXT_PAGE);
}

function say(next: Link): void {
  if (next === state) return;
  state = next;
  for (const watcher of watchers) watcher(next);
}

async function run(): Promise<void> {
  const mine = new AbortController();
  running = mine;
  const silence = window.setTimeout(() => mine.abort(), LONGEST_SILENCE);
  try {
    const response = await fetch(address("v1/events", { topic: [...topics.keys()] }), {
      headers: { ...proof("GET"), Accept: "text/event-stream" },
      cache: "no-store",
      signal: mine.signal,
    }).finally(() => window.clearTimeout(silence));
    const kind = response.headers.get("Content-Type") ?? "";
    if (!response.ok || !response.body || !kind.startsWith("text/event-stream")) {
      if (response.status === 401 || response.status === 503) await refusal(response);
      mine.abort(); // lets go of the rest of the answer
      later(mine, isBusy(response.status) ? pause : NO_STREAM_PAUSE);
      return;
    }
    say("live");
    service.note(true);
    store.note(true); // whoever may listen has been told what is there now
    pause = FIRST_PAUSE;
    await read(response.body, mine);
  } catch {
    // the network, or ourselves
  }
  later(mine, pause);
}

/** Tells an answer that will be another one soon from one that stays. */
function isBusy(status: number): boolean {
  return status === 429 || status >= 500;
}

function later(mine: AbortController, after: number): void {
  if (running !== mine) return; // somebody has begun anew
  say(document.hidden ? "hidden" : "polling");
  pause = Math.min(pause * 2, LONGEST_PAUSE);
  restart(after * (0.75 + Math.random() / 2));
}

async function read(body: ReadableStream<Uint8Array>, mine: AbortController): Promise<void> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = "";
  for (;;) {
    const silence = window.setTimeout(() => mine.abort(), LONGEST_SILENCE);
    const { done, value } = await reader.read().finally(() => window.clearTimeout(silence));
    if (done) return;
    const blocks = (rest + value.replaceAll("\r", "")).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) tell(block);
  }
}

function tell(block: string): void {
  let topic = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "event") topic = value;
    else if (name === "data") data.push(value);
  }
  if (topic === PROBLEM) for (const listener of troubled) listener();
  const heard = topics.get(topic);
  if (!data.length || (!heard && topic !== STORE)) return;
  try {
    const said: unknown = JSON.parse(data.join("\n"));
    if (topic === STORE) store.note((said as { status?: string }).status === "ok");
    for (const listener of heard ?? []) listener(said);
  } catch {
    // not for us
  }
}

document.addEventListener("visibilitychange", () => restart());
// A machine that loses its network tells so long before the stream would be missed.
addEventListener("offline", () => restart());
addEventListener("online", () => restart());
service.watch((since) => {
  if (since === undefined && state === "polling") restart();
});
store.watch((since) => {
  if (since === undefined && state === "polling") restart();
});
