import type { Job } from "../api/schema";
import { href } from "../lib/route";
import { between, duration } from "../lib/time";
import { Status } from "./status";
import type { Column } from "./table";
import { Line, Name } from "./text";
import { Ago } from "./time";

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
  { head: "Queue", cell: (job) => <Name value={job.queue} most={24} />, wide: true },
  { head: "Tenant", cell: (job) => <Name value={job.tenant} most={24} />, wide: true },
  { head: "Created", cell: (job) => <Ago at={job.created_at} />, wide: true },
  { head: "What", cell: (job) => <Gist job={job} />, wide: true },
];

/** An id; on a narrow screen its end, which tells jobs of the same time apart. */
function Id({ value }: { value: string }) {
  return (
    <>
      <span class="if-wide">
        <Name value={value} />
      </span>
      <span class="if-narrow" aria-hidden="true">
        <Name value={`…${value.slice(-6)}`} />
      </span>
    </>
  );
}

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
  if (job.next_run && job.status === "scheduled") {
    return (
      <span>
        due <Ago at={job.next_run} />
      </span>
    );
  }
  if (job.status === "succeeded" && job.started_at && job.finished_at) {
    return <span class="dim">took {duration(between(job.started_at, job.finished_at))}</span>;
  }
  return job.reason ? <Line value={job.reason} most={90} /> : <span class="dim">–</span>;
}
