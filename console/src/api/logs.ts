// A log that grows: read to its end, then again while there may be more.

import { useEffect, useState } from "preact/hooks";
import { ask, place, problemOf, type Refused } from "./client";
import { POLL } from "./data";
import type { LogLine, LogPage } from "./schema";

const PAUSE = 1_500;
/** Lines that are shown; a log keeps its beginning and its end anyway. */
export const MOST_LINES = 5_000;

export interface Log {
  lines: readonly LogLine[];
  problem: Refused | undefined;
  /** Whether nothing of it has been read yet. */
  loading: boolean;
}

/**
 * Reads the log of a job, again when its status has changed, and goes on while it is `growing`. That
 * of null is not read.
 */
export function useLog(id: string | null, status: string | undefined, growing: boolean): Log {
  const [log, setLog] = useState<Log>({ lines: [], problem: undefined, loading: true });
  useEffect(() => {
    if (id === null) return;
    let ended = false;
    let timer: number | undefined;
    let cursor: string | null = null;
    let lines: readonly LogLine[] = [];
    let pause: number | null;
    const show = () =>
      setLog((before) =>
        before.lines === lines && !before.problem && !before.loading
          ? before
          : { lines, problem: undefined, loading: false },
      );
    const read = async () => {
      try {
        pause = growing ? PAUSE : null;
        for (;;) {
          const page: LogPage = await ask(place("v1/jobs", id, "logs"), {
            query: { limit: 100, cursor },
          });
          if (ended) return;
          if (!page.lines.length) break;
          cursor = page.next;
          lines = [...lines, ...page.lines].slice(-MOST_LINES);
          show();
        }
        show();
      } catch (error) {
        const problem = problemOf(error);
        pause = problem.isLasting ? null : Math.max(POLL, problem.after * 1000);
        if (!ended) setLog({ lines, problem, loading: false });
      }
      if (!ended && pause !== null) timer = window.setTimeout(() => void again(), pause);
    };
    const again = async () => {
      if (!document.hidden) return read();
      timer = window.setTimeout(() => void again(), PAUSE);
    };
    void read();
    return () => {
      ended = true;
      window.clearTimeout(timer);
    };
  }, [id, status, growing]);
  return log;
}
