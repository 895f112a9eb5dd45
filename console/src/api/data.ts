// What a page shows: read at once, kept up to date while it is looked at.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { address, ask, problemOf, type Query, type Refused } from "./client";
import { useMe } from "./session";
import { hear, link, watchLink } from "./stream";

export const POLL = 5_000;
/** So many times as long as an answer took is waited before the next question. */
const CALM = 20;

export interface Data<T> {
  /** The last answer; undefined until there is one. */
  data: T | undefined;
  /** Why there is no newer one. */
  problem: Refused | undefined;
  /** Whether an answer is being waited for that nothing stands for yet. */
  loading: boolean;
  /** Asks again now. */
  refresh: () => Promise<void>;
}

export interface Ways {
  query?: Query;
  /** Topic of the stream that tells the same; without it, or without a stream, we ask again. */
  topic?: string;
  /** Milliseconds after which to ask again; 0: never. */
  every?: number;
}

/** Reads a path of the service, and keeps it up to date. A null path is not read. */
export function useData<T>(
  path: string | null,
  { query = {}, topic, every = POLL }: Ways = {},
): Data<T> {
  const target = path === null ? null : address(path, query);
  const heard = useHeard(topic);
  const [shown, setShown] = useState<{ target: string | null; data?: T; problem?: Refused }>({
    target: null,
  });
  const current = useRef<string | null>(null);
  current.current = target;

  const refresh = useCallback(async () => {
    if (target === null) return;
    try {
      const data = await ask<T>(target);
      if (current.current === target) setShown({ target, data });
    } catch (error) {
      if (current.current !== target) return;
      setShown((before) => ({
        ...(before.target === target ? before : {}),
        target,
        problem: problemOf(error),
      }));
    }
  }, [target]);

  useEffect(() => void refresh(), [refresh]);
  useEffect(() => {
    if (target === null || heard === undefined) return;
    return hear(heard, (data) => setShown({ target, data: data as T }));
  }, [target, heard]);
  useEffect(
    () => repeated(refresh, every, () => heard !== undefined && link() === "live"),
    [refresh, every, heard],
  );

  const fits = shown.target === target;
  const data = fits ? shown.data : undefined;
  const problem = fits ? shown.problem : undefined;
  return { data, problem, loading: target !== null && data === undefined && !problem, refresh };
}

/** Those of one tenant are told of single jobs only; they ask again for all else. */
function useHeard(topic: string | undefined): string | undefined {
  const whole = useMe().tenant === null;
  return whole || topic?.startsWith("job:") ? topic : undefined;
}

/**
 * Calls again and again while the tab is seen, never twice at once, and not while `spare` says so.
 * Answers that take long are asked for more rarely: looking must not become a load.
 */
function repeated(
  call: () => Promise<void>,
  every: number,
  spare: () => boolean,
): (() => void) | undefined {
  if (!every) return undefined;
  let timer: number | undefined;
  let ended = false;
  const timed = async () => {
    const began = performance.now();
    await call();
    if (!ended) next(Math.max(every, (performance.now() - began) * CALM));
  };
  const next = (after = every) => {
    timer = window.setTimeout(() => {
      if (document.hidden || spare()) next();
      else void timed();
    }, after);
  };
  const seen = () => document.hidden || spare() || void call();
  next();
  document.addEventListener("visibilitychange", seen);
  return () => {
    ended = true;
    window.clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}

/** Says how changes come at present, also after it has changed. */
export function useLink() {
  const [seen, setSeen] = useState(link);
  useEffect(() => watchLink(setSeen), []);
  return seen;
}
