// Requests to the service. Whatever it refuses is a `Refused`, with its cause and its remedy.

import { proof } from "./proof";
import { service, store } from "./reach";

/** The service stands where its console does, wherever both are mounted. */
const BASE = new URL(".", document.baseURI);

export type Query = Record<string, string | number | readonly string[] | null | undefined>;

export interface Asked {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
}

const AWAY = "unreachable";
/** Codes of a store that could be asked, and would not do it; all others of a store cannot be. */
const STORE_THERE: readonly string[] = ["store-busy", "store-full", "store-read-only"];
/** Longer than a service takes for any answer; else a connection that broke unseen is waited for. */
const PATIENCE = 60_000;
const REACH = "see whether `lamplighter serve` runs and can be reached from here";

/** What the service says when it does not do what was asked. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly hint: string,
    /** Seconds after which the service wants to be asked again, at the earliest. */
    readonly after = 0,
  ) {
    super(detail);
  }

  /** Whether nothing answered that is the service. */
  get isAway(): boolean {
    return this.code === AWAY;
  }

  /** Whether the service has answered, and its store has not. */
  get isStoreAway(): boolean {
    return (
      this.code === "not-ready" ||
      (this.code.startsWith("store-") && !STORE_THERE.includes(this.code))
    );
  }

  /** Whether it will be the same if it is asked again soon. */
  get isLasting(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 429;
  }

  /** Whether the service does not have what was asked for, as opposed to forbidding it. */
  get isMissing(): boolean {
    return this.status === 404 || this.status === 405;
  }
}

/** How often `patiently` waits at most. */
const MOST_WAITS = 5;
/** What a proxy says while there is nobody behind it. */
const GATEWAYS: readonly number[] = [502, 503, 504];

type Listener = (why: Refused) => void;
const onUnauthorized = new Set<Listener>();

/** Calls back when the service wants a login, or another one. */
export function whenUnauthorized(listener: Listener): () => void {
  onUnauthorized.add(listener);
  return () => onUnauthorized.delete(listener);
}

/** Gives the address of a path of the service, such as `v1/jobs`. */
export function address(path: string, query: Query = {}): string {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "")
        url.searchParams.append(name, String(each));
    }
  }
  return url.href;
}

/** Gives a path with names in it, whatever they are called: `place("v1/jobs", id, "logs")`. */
export function place(...parts: string[]): string {
  const [first = "", ...rest] = parts;
  return [first, ...rest.map(encodeURIComponent)].join("/");
}

/** Asks the service and gives its answer. */
export async function ask<T>(path: string, asked: Asked = {}): Promise<T> {
  const response = await send(path, asked);
  if (!response.ok) throw await refusal(response);
  service.note(true);
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw unreached(error);
    throw new Refused(
      response.status,
      "unreadable",
      "the answer is not one of the service",
      "see what stands between here and the service, such as a proxy, and what it says",
    );
  }
}

/** Asks again for as long as the service says that it is asked too often. */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (let left = MOST_WAITS; ; left--) {
    try {
      return await call();
    } catch (error) {
      const { status, after } = problemOf(error);
      if (status !== 429 || !left) throw error;
      await new Promise((wake) => window.setTimeout(wake, Math.max(after, 1) * 1000));
    }
  }
}

async function send(
  path: string,
  { method = "GET", query, body, signal }: Asked,
): Promise<Response> {
  const headers = proof(method);
  const sent: RequestInit = { method, headers, cache: "no-store", redirect: "error" };
  if (signal) sent.signal = signal;
  else if (method === "GET") sent.signal = AbortSignal.timeout(PATIENCE);
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    sent.body = JSON.stringify(body);
  }
  try {
    return await fetch(address(path, query), sent);
  } catch (error) {
    throw unreached(error);
  }
}

/** Gives what a request has met with that found nobody; whoever has ended it knows so. */
function unreached(error: unknown): unknown {
  if (error instanceof DOMException && error.name === "AbortError") return error;
  service.note(false);
  return new Refused(0, AWAY, "the service does not answer", REACH);
}

/** Reads why the service refused; a 401 also asks for a login. */
export async function refusal(response: Response): Promise<Refused> {
  let told: Record<string, unknown> = {};
  try {
    told = (await response.json()) as Record<string, unknown>;
  } catch {
    // a proxy's page, not an answer of the service
  }
  const text = (name: string, otherwise: string) => {
    const found = told[name];
    return typeof found === "string" ? found : otherwise;
  };
  const said = `${response.status} ${response.statusText}`.trim();
  if (GATEWAYS.includes(response.status) && !told["code"]) {
    service.note(false);
    const detail = `the service does not answer; what stands in front of it says ${said}`;
    return new Refused(response.status, AWAY, detail, REACH);
  }
  service.note(true);
  const found = new Refused(
    response.status,
    text("code", "unknown"),
    text("detail", `the answer was ${said}`),
    text("hint", ""),
    Number(response.headers.get("Retry-After")) || 0,
  );
  if (found.isStoreAway) store.note(false);
  if (response.status === 401 && !isLogin(response))
    for (const listener of onUnauthorized) listener(found);
  return found;
}

/** Tells an attempt to log in, whose refusal is shown where it was made. */
function isLogin(response: Response): boolean {
  return response.url === address("v1/session");
}

/** Gives what went wrong as a `Refused`, whatever was thrown. */
export function problemOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  return new Refused(0, "unexpected", String(error), "reload the page; if it stays, report it");
}
