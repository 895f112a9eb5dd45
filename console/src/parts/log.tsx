import { useEffect, useRef } from "preact/hooks";
import { type Log, MOST_LINES } from "../api/logs";
import { clock } from "../lib/time";
import { PageProblem } from "./problem";
import { Text } from "./text";

const TONES: Record<string, string> = {
  warning: "warn",
  error: "bad",
  critical: "bad",
  err: "warn",
  debug: "still",
};

function emptiness({ loading, problem }: Log, growing: boolean): string {
  if (loading) return "one moment…";
  if (problem) return "Nothing is known of it.";
  return growing ? "Nothing so far." : "It has logged nothing.";
}

/** A log. It stays at its end while it grows, unless somebody has scrolled back. */
export function LogView({ log, growing }: { log: Log; growing: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [log.lines.length]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current as HTMLDivElement;
    atEnd.current = scrollHeight - scrollTop - clientHeight < 20;
  };
  return (
    <>
      {log.problem && <PageProblem problem={log.problem} />}
      {log.lines.length === MOST_LINES && (
        <p class="dim">The last {MOST_LINES.toLocaleString("en")} lines.</p>
      )}
      {log.lines.length === 0 ? (
        <p class="empty dim">{emptiness(log, growing)}</p>
      ) : (
        <div
          class="log"
          ref={box}
          onScroll={scrolled}
          tabIndex={0}
          role="log"
          aria-label="log of the job"
          aria-live={growing ? "polite" : "off"}
        >
          {log.lines.map((line) => (
            <p key={`${line.lease}.${line.number}`}>
              <span class="dim">{line.at ? clock(line.at).slice(11) : ""}</span>
              <span class={TONES[line.level] ?? "next"}>{line.level}</span>
              <span>
                <Text value={line.text} />
              </span>
            </p>
          ))}
        </div>
      )}
    </>
  );
}
