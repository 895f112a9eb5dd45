import type { Job } from "../api/schema";
import { href } from "../lib/route";
import { between, duration } from "../lib/time";
import { Status } from "./status";
import type { Column } from "./table";
import { Id, Line, Name } from "./text";
import { Ago, Took } from "./time";

/** A job in a list: enough to know whether to open it. */
export const jobColumns: readonly Column<Job>[] = [
  {
    head: "Job",
    cell: (job) => (
      <a href={href(["jobs", job.id])} aria-label={`job ${job.id}`}>
        <Id value={job.id} />
      </a>
    ),
  },
  { head: "Type", cell: (job) => <Name value={job.type} most={40} /> },
  { head: "Status", cell: (job) => <Status status={job.status} /> },
  { head: "Queue", cell: (job) => <Name value={job.queue} most={24} />, wide: true, brief: true },
  { head: "Tenant", cell: (job) => <Name value={job.tenant} most={24} />, wide: true, brief: true },
  { head: "Created", cell: (job) => <Ago at={job.created_at} />, wide: true },
  { head: "What", cell: (job) => <Gist job={job} />, wide: true },
];

/** The one thing that matters most about a job of its status. */
export function Gist({ job }: { job: Job }) {
  if (job.status === "dead" || job.status === "retrying") {
    const text = job.error ? `${job.error.type}: ${job.error.message}` : (job.reason ?? "");
    return (
      <span class="bad">
        <Line value={text} most={90} />
      </span>
    );
  }
  if (job.status === "claimed") return <span class="dim brief">not started yet</span>;
  if (job.next_run && job.status === "scheduled") {
    return (
      <span class="brief">
        due <Ago at={job.next_run} />
      </span>
    );
  }
  if (job.status === "succeeded" && job.started_at && job.finished_at) {
    return <span class="dim brief">took {duration(between(job.started_at, job.finished_at))}</span>;
  }
  if (job.started_at && (job.status === "running" || job.status === "cancelling")) {
    return (
      <span class="dim brief">
        for <Took from={job.started_at} to={null} />
      </span>
    );
  }
  return job.reason ? <Line value={job.reason} most={90} /> : <span class="dim">–</span>;
}
