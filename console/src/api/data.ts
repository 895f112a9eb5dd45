// What a page shows: read at once, kept up to date while it is looked at.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { keepAsking } from "./again";
import { address, ask, problemOf, type Query, type Refused } from "./client";
import { service, store } from "./reach";
import { type Scope, useMe } from "./session";
import { hear, link, watchLink } from "./stream";

export const POLL = 5_000;

export interface Data<T> {
  /** The last answer; undefined until there is one. */
  data: T | undefined;
  /** Why there is no newer one. */
  problem: Refused | undefined;
  /** Since when there is none, in milliseconds since 1970. */
  since: number | undefined;
  /** Whether an answer is being waited for that nothing stands for yet. */
  loading: boolean;
  /** Asks again now. */
  refresh: () => Promise<void>;
}

export interface Ways {
  query?: Query;
  /** Topic of the stream that tells the same; without it, or without a stream, we ask again. */
  topic?: string;
  /** Topic of the stream that tells when to ask again, if there is none that tells the same. */
  signal?: string;
  /** Milliseconds after which to ask again where nothing is told; 0: never. */
  every?: number;
}

interface Shown<T> {
  target: string | null;
  data?: T;
  problem?: Refused;
  since?: number;
}

/** Reads a path of the service, and keeps it up to date. A null path is not read. */
export function useData<T>(
  path: string | null,
  { query = {}, topic, signal, every = POLL }: Ways = {},
): Data<T> {
  const target = path === null ? null : address(path, query);
  const heard = useHeard(topic);
  const signalled = useHeard(signal);
  const [shown, setShown] = useState<Shown<T>>({ target: null });
  const current = useRef<string | null>(null);
  current.current = target;
  const trouble = useRef<Refused | undefined>(undefined);

  const show = useCallback(
    (data: T) => {
      trouble.current = undefined;
      setShown({ target, data });
    },
    [target],
  );
  const refresh = useCallback(async () => {
    if (target === null) return;
    try {
      const data = await ask<T>(target);
      if (current.current === target) show(data);
    } catch (error) {
      if (current.current !== target) return;
      const problem = problemOf(error);
      trouble.current = problem;
      setShown((before) => {
        const kept = before.target === target ? before : {};
        return { since: Date.now(), ...kept, target, problem };
      });
    }
  }, [target]);

  useEffect(() => void refresh(), [refresh]);
  useEffect(() => {
    if (target === null || heard === undefined) return;
    return hear(heard, (data) => show(data as T));
  }, [target, heard]);
  useEffect(() => {
    if (target === null) return;
    const rhythm = { every, topic: heard, signal: signalled };
    return keepAsking(refresh, () => trouble.current, rhythm);
  }, [refresh, every, heard, signalled]);

  const fits = shown.target === target;
  const data = fits ? shown.data : undefined;
  const problem = fits ? shown.problem : undefined;
  const loading = target !== null && data === undefined && !problem;
  return { data, problem, since: problem && shown.since, loading, refresh };
}

const SCOPES: Partial<Record<string, Scope>> = { schedules: "schedules:read", dlq: "operator" };

/**
 * Gives a topic if it is told to whoever looks; else they ask again. Those of one tenant are told of
 * single jobs only, and most topics are for operators.
 */
function useHeard(topic: string | undefined): string | undefined {
  const { tenant, scopes } = useMe();
  if (topic === undefined || !scopes.includes("jobs:read")) return undefined;
  if (topic.startsWith("job:")) return topic;
  const scope = SCOPES[topic] ?? "operator:read";
  return tenant === null && scopes.includes(scope) ? topic : undefined;
}

/** Says how changes come at present, also after it has changed. */
export function useLink() {
  const [seen, setSeen] = useState(link);
  useEffect(() => watchLink(setSeen), []);
  return seen;
}

/** Says since when the service does not answer, also after it has changed; undefined: it does. */
export function useAway(): number | undefined {
  return useReach(service);
}

/** The same about the store of a service that answers. */
export function useStoreAway(): number | undefined {
  return useReach(store);
}

function useReach(reach: typeof service): number | undefined {
  const [since, setSince] = useState(() => reach.since());
  useEffect(() => {
    setSince(reach.since());
    return reach.watch(setSince);
  }, []);
  return since;
}
