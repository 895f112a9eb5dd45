import type { AttemptShape, Job } from "../api/schema";
import { duration, useNow } from "../lib/time";
import { outcomeOf, outcomeTone, stretches, width } from "../lib/timeline";
import { Badge } from "./status";
import { Block, Line, Name } from "./text";
import { Ago, Took } from "./time";

const MOST = 40;

/** The life of a job, drawn: waiting and running, how each attempt ended and how long it took. */
export function Timeline({ job, attempts }: { job: Job; attempts: readonly AttemptShape[] }) {
  const now = useNow();
  const all = stretches(job, attempts, now);
  const shown = all.slice(-MOST);
  if (!shown.length) return null;
  return (
    <ol class="timeline" aria-label="timeline; longer is wider, though not to scale">
      {all.length > MOST && <li class="dim">…</li>}
      {shown.map((stretch, at) => (
        <li
          key={at}
          class={`${stretch.kind} ${stretch.tone}`}
          style={{ flexGrow: String(width(stretch)) }}
          title={`${stretch.label}, ${duration(stretch.seconds)}`}
        >
          <span class="bar" />
          <span class="what">{stretch.label}</span>
          <span class="long">{duration(stretch.seconds)}</span>
        </li>
      ))}
    </ol>
  );
}

/** The attempts, newest first, each with where it failed. */
export function AttemptList({ job, attempts }: { job: Job; attempts: readonly AttemptShape[] }) {
  return (
    <ol class="attempts">
      {[...attempts].reverse().map((attempt) => (
        <li key={`${attempt.generation}.${attempt.lease}`} data-row={String(attempt.lease)}>
          <p class="head">
            <b>
              {attempt.generation > 0 && `life ${attempt.generation + 1}, `}attempt {attempt.number}
            </b>
            <Outcome outcome={outcomeOf(job, attempt)} />
            <span>
              {attempt.finished_at === null ? "for" : "took"}{" "}
              <Took from={attempt.started_at} to={attempt.finished_at} />
            </span>
            <span class="dim">
              began <Ago at={attempt.started_at} /> on <Name value={attempt.worker} />
            </span>
          </p>
          {attempt.error && (
            <>
              <p class="bad">
                <Line value={`${attempt.error.type}: ${attempt.error.message}`} most={400} />
              </p>
              <Trace attempt={attempt} />
            </>
          )}
        </li>
      ))}
    </ol>
  );
}

function Outcome({ outcome }: { outcome: string }) {
  return <Badge tone={outcomeTone(outcome)}>{outcome}</Badge>;
}

function Trace({ attempt }: { attempt: AttemptShape }) {
  const text = attempt.error?.traceback || attempt.error?.message;
  if (!text) return null;
  return (
    <details>
      <summary>{attempt.error?.traceback ? "where it failed" : "the whole message"}</summary>
      <Block value={text} />
    </details>
  );
}
