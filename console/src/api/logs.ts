// A log that grows: read to its end, then again while there may be more.

import { useEffect, useState } from "preact/hooks";
import { ask, place, problemOf, type Refused } from "./client";
import type { LogLine, LogPage } from "./schema";

const PAUSE = 1_500;
/** Lines that are shown; a log keeps its beginning and its end anyway. */
export const MOST_LINES = 5_000;

export interface Log {
  lines: readonly LogLine[];
  problem: Refused | undefined;
}

/** Reads the log of a job, and goes on while it is `growing`. */
export function useLog(id: string, growing: boolean): Log {
  const [log, setLog] = useState<Log>({ lines: [], problem: undefined });
  useEffect(() => {
    let ended = false;
    let timer: number | undefined;
    let cursor: string | null = null;
    let lines: readonly LogLine[] = [];
    const read = async () => {
      try {
        for (;;) {
          const page: LogPage = await ask(place("v1/jobs", id, "logs"), {
            query: { limit: 100, cursor },
          });
          if (ended) return;
          if (!page.lines.length) break;
          cursor = page.next;
          lines = [...lines, ...page.lines].slice(-MOST_LINES);
          setLog({ lines, problem: undefined });
        }
      } catch (error) {
        if (!ended) setLog({ lines, problem: problemOf(error) });
      }
      if (!ended && growing) timer = window.setTimeout(() => void again(), PAUSE);
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
  }, [id, growing]);
  return log;
}
