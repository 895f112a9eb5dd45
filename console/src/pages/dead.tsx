import { useData } from "../api/data";
import { change } from "../api/jobs";
import type { DeadGroups, Job, JobPage } from "../api/schema";
import { announce } from "../lib/news";
import { type Choice, useBatches } from "../lib/replay";
import { href, picked, type Route } from "../lib/route";
import { Act } from "../parts/act";
import { causeOf, groupColumns, groupKey } from "../parts/dead-columns";
import { FilterBar } from "../parts/filters";
import { jobColumns } from "../parts/job-columns";
import { Page } from "../parts/panel";
import { Loaded } from "../parts/problem";
import { ReplayAct } from "../parts/replay-act";
import { type Column, Table } from "../parts/table";
import { Ago } from "../parts/time";
import type { PageProps } from ".";

const FILTERS = [
  { name: "type", label: "Type" },
  { name: "queue", label: "Queue" },
  { name: "tenant", label: "Tenant" },
  { name: "tag", label: "Tag" },
];

/** Jobs that failed for good: by cause, or those of one cause. */
export function Dead({ route }: PageProps) {
  return route.query.has("open") ? <OneCause route={route} /> : <Causes route={route} />;
}

function Causes({ route }: PageProps) {
  const query = picked(route, NAMES);
  const filtered = Object.values(query).some((values) => values.length);
  const running = useBatches().some(({ state }) => state === "running");
  const told = filtered ? { signal: "dlq" } : { topic: "dlq" };
  const groups = useData<DeadGroups>("v1/dlq", { query, ...told, every: running ? 2_000 : 5_000 });
  const number = groups.data?.groups.reduce((sum, group) => sum + group.count, 0) ?? 0;
  return (
    <Page
      title="Dead letters"
      actions={
        number > 0 && (
          <>
            <ReplayAct
              verb="replay"
              choice={choiceOf(route)}
              what={wordsOf(route)}
              label="Replay all"
            />
            <ReplayAct
              verb="purge"
              choice={choiceOf(route)}
              what={wordsOf(route)}
              label="Purge all"
            />
          </>
        )
      }
    >
      <FilterBar route={route} filters={FILTERS} />
      <Loaded from={groups}>
        {({ groups }) => (
          <Table
            caption="dead letters by cause"
            rows={groups}
            keyOf={groupKey}
            columns={groupColumns}
            empty={filtered ? "No dead letter fits." : "No dead letters."}
          />
        )}
      </Loaded>
    </Page>
  );
}

function OneCause({ route }: PageProps) {
  const query = {
    ...picked(route, NAMES),
    status: "dead",
    limit: 50,
    cursor: route.query.get("cursor"),
  };
  const jobs = useData<JobPage>("v1/jobs", { query, signal: "dlq" });
  const groups = useData<DeadGroups>("v1/dlq", {
    query: picked(route, NAMES),
    signal: "dlq",
  });
  const group = groups.data?.groups[0];
  const after = () => void jobs.refresh();
  return (
    <Page
      title={group ? causeOf(group).slice(0, 200) : "Dead letters of one cause"}
      actions={
        <>
          <ReplayAct
            verb="replay"
            choice={choiceOf(route)}
            what={wordsOf(route)}
            label="Replay all of them"
            after={after}
          />
          <ReplayAct
            verb="purge"
            choice={choiceOf(route)}
            what={wordsOf(route)}
            label="Purge all of them"
            after={after}
          />
        </>
      }
    >
      <p class="crumbs">
        <a href="#/dead">All dead letters</a>
      </p>
      <Loaded from={jobs}>
        {({ jobs: found, next }) => (
          <>
            <Table
              caption="dead letters"
              rows={found}
              keyOf={(job) => job.id}
              columns={[...letterColumns, replayColumn(jobs.refresh)]}
              empty="None is left."
            />
            {next !== null && (
              <nav class="pager" aria-label="pages of the list">
                <a href={href(["dead"], { open: "1", ...picked(route, NAMES), cursor: next })}>
                  older
                </a>
              </nav>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** All of them are dead, of one cause: that is not said again. */
const letterColumns: readonly Column<Job>[] = [
  ...jobColumns.filter(({ head }) => !["Status", "What"].includes(head)),
  { head: "Died", cell: (job) => <Ago at={job.finished_at} /> },
];

function replayColumn(after: () => Promise<void>): Column<Job> {
  const replay = async (job: Job, reason: string) => {
    const changed = await change(job.id, "replay", reason);
    announce(`replay: ${job.type} is ${changed.status}`);
    await after();
  };
  return {
    head: "",
    cell: (job) => (
      <Act
        label="Replay"
        title={`Replay ${job.id}`}
        scope="jobs:write"
        act={(reason) => replay(job, reason)}
      >
        <p>It runs again under the same id, with all its attempts anew.</p>
      </Act>
    ),
  };
}

const NAMES = ["type", "queue", "tenant", "fingerprint", "tag"] as const;

function choiceOf(route: Route): Choice {
  const { type = [], queue = [], tenant = [], fingerprint = [], tag = [] } = picked(route, NAMES);
  const found: Choice = {};
  if (type.length) found.type = type;
  if (queue.length) found.queue = queue;
  if (tenant.length) found.tenant = tenant;
  if (fingerprint.length) found.fingerprint = fingerprint;
  if (tag[0]) found.tag = tag[0];
  return Object.keys(found).length ? found : { all: true };
}

function wordsOf(route: Route): string {
  const said = NAMES.flatMap((name) => route.query.getAll(name).map((value) => `${name} ${value}`));
  return said.length ? `dead letters of ${said.join(", ")}`.slice(0, 120) : "all dead letters";
}
