import type { RunShape } from "../api/schema";
import { href } from "../lib/route";
import { count } from "../lib/text";
import { between, duration } from "../lib/time";
import { Instant } from "./instant";
import { Badge } from "./status";
import type { Column } from "./table";
import { Id, Line } from "./text";
import { Took } from "./time";

const TONES: Record<string, string> = {
  queued: "next",
  started: "lit",
  succeeded: "good",
  dead: "bad",
  skipped: "warn",
};
const KINDS: Record<string, string> = { trigger: "asked for", backfill: "backfill" };

/** What became of an occurrence, in a list. */
export const runColumns: readonly Column<RunShape>[] = [
  {
    head: "Due",
    cell: (run) => (
      <span>
        <Instant at={run.due} />{" "}
        {run.kind !== "due" && <span class="tag">{KINDS[run.kind] ?? run.kind}</span>}
      </span>
    ),
  },
  { head: "State", cell: (run) => <State run={run} /> },
  { head: "Late", cell: (run) => lateness(run), number: true },
  { head: "Took", cell: (run) => <RunTime run={run} />, number: true, wide: true },
  {
    head: "Reason",
    cell: (run) => run.reason && <Line value={run.reason} most={90} />,
    wide: true,
  },
  { head: "Job", cell: (run) => run.job && <Id value={run.job} />, wide: true },
];

function State({ run }: { run: RunShape }) {
  const badge = <Badge tone={TONES[run.state] ?? "still"}>{run.state}</Badge>;
  if (run.job) return <a href={href(["jobs", run.job])}>{badge}</a>;
  if (run.state !== "skipped" || run.count === 1) return badge;
  return (
    <span>
      {badge}{" "}
      <span class="dim">{run.count === null ? "very many" : `${count(run.count)} times`}</span>
    </span>
  );
}

/** How long after its due time it was started, or at least was given its job. */
function lateness(run: RunShape): string {
  if (run.state === "skipped") return "–";
  return duration(Math.max(0, between(run.due, run.started_at ?? run.written_at)));
}

function RunTime({ run }: { run: RunShape }) {
  if (!run.started_at) return <span class="dim">–</span>;
  return <Took from={run.started_at} to={run.finished_at} />;
}
