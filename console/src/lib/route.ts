// Where we are: `#/jobs?status=dead`. Every filter is part of it, so that it can be sent as a link.

import { useLayoutEffect, useState } from "preact/hooks";

export interface Route {
  /** The parts of the path, decoded: `["jobs", "01K…"]`. */
  parts: string[];
  query: URLSearchParams;
}

/** Reads a fragment. */
export function parse(hash: string): Route {
  const [path = "", query = ""] = split(hash.replace(/^#\/?/, ""), "?");
  return { parts: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function split(text: string, by: string): [string, string] {
  const at = text.indexOf(by);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export type Filters = Record<string, string | readonly string[] | null | undefined>;

/** Writes a link: `href(["jobs", id])`, `href(["jobs"], { status: ["dead"] })`. */
export function href(parts: readonly string[], filters: Filters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each) query.append(name, each);
  }
  const text = query.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

/** Gives what an address says of some filters, as lists. */
export function picked(route: Route, names: readonly string[]): Record<string, string[]> {
  return Object.fromEntries(names.map((name) => [name, route.query.getAll(name)]));
}

/** Goes there. `replace` leaves no step in the history: for filters that change while one types. */
export function go(to: string, { replace = false } = {}): void {
  if (!replace) location.hash = to;
  else {
    history.replaceState(null, "", to);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

/** Gives where we are, also after it has changed. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  // Before anything is seen: somebody may go on at once.
  useLayoutEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    changed();
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}
