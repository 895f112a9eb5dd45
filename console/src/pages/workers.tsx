import { useData } from "../api/data";
import type { Workers as Answer, Worker } from "../api/schema";
import { href } from "../lib/route";
import { count, plural } from "../lib/text";
import { between, duration, useNow } from "../lib/time";
import { Page } from "../parts/panel";
import { Loaded } from "../parts/problem";
import { Badge } from "../parts/status";
import { type Column, Table } from "../parts/table";
import { Name } from "../parts/text";
import { Ago } from "../parts/time";

/** Who runs jobs, and how they are. */
export function Workers() {
  const answer = useData<Answer>("v1/workers", { topic: "workers" });
  return (
    <Page title="Workers">
      <Loaded from={answer}>
        {({ workers }) => (
          <>
            {workers.length > 0 && <Sum workers={workers} />}
            <Table
              caption="workers, oldest first"
              rows={workers}
              keyOf={(worker) => worker.id}
              columns={COLUMNS}
              empty="There is no worker: nothing runs until one joins."
            />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Sum({ workers }: { workers: readonly Worker[] }) {
  const living = workers.filter(({ state }) => state !== "dead");
  const sum = (of: (worker: Worker) => number) => living.reduce((all, one) => all + of(one), 0);
  return (
    <p class="dim sum" role="status">
      {plural(living.length, "worker")}; {count(sum(({ running }) => running))} of{" "}
      {plural(
        sum(({ slots }) => slots),
        "slot",
      )}{" "}
      at work
    </p>
  );
}

const COLUMNS: readonly Column<Worker>[] = [
  {
    head: "Worker",
    cell: ({ id }) => (
      <span class="title">
        <Name value={id} most={40} />
      </span>
    ),
  },
  { head: "Health", cell: (worker) => <Health worker={worker} /> },
  { head: "At work", cell: (worker) => <Load worker={worker} /> },
  { head: "Queues", cell: ({ queues }) => <Queues names={queues} />, wide: true },
  {
    head: "Types",
    cell: ({ types }) => <span title={types.join(", ").slice(0, 2000)}>{count(types.length)}</span>,
    number: true,
    wide: true,
  },
  {
    head: "Where",
    cell: ({ host, pid }) => (
      <span>
        <Name value={host} most={30} /> <span class="dim">{pid}</span>
      </span>
    ),
    wide: true,
  },
  { head: "Joined", cell: ({ joined_at }) => <Ago at={joined_at} />, wide: true },
  { head: "Heartbeat", cell: ({ beat_at }) => <Ago at={beat_at} /> },
];

/** Whether it is well, and if not, why. */
function Health({ worker }: { worker: Worker }) {
  const now = useNow();
  const silent = Math.max(0, between(worker.beat_at, new Date(now).toISOString()));
  if (worker.state === "alive") {
    const full = worker.slots > 0 && worker.running >= worker.slots;
    return (
      <Badge tone={full ? "lit" : "good"}>{full ? "healthy, all slots taken" : "healthy"}</Badge>
    );
  }
  if (worker.state === "suspect")
    return <Badge tone="warn">{`suspect: silent for ${duration(silent)}`}</Badge>;
  if (worker.state === "dead")
    return <Badge tone="bad">{`dead: silent for ${duration(silent)}`}</Badge>;
  return <Badge tone="still">{worker.state}</Badge>;
}

function Load({ worker: { id, running, slots } }: { worker: Worker }) {
  return (
    <span class="load">
      <progress max={Math.max(slots, 1)} value={running} aria-label={`slots of ${id} at work`} />
      <span>
        {count(running)} / {count(slots)}
      </span>
    </span>
  );
}

function Queues({ names }: { names: readonly string[] }) {
  return (
    <>
      {names.map((queue) => (
        <a key={queue} class="tag" href={href(["jobs"], { queue })}>
          <Name value={queue} most={30} />
        </a>
      ))}
    </>
  );
}
