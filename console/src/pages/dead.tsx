import { useRef } from "preact/hooks";
import { useData } from "../api/data";
import { change, LABELS, REPLAY, RETRY } from "../api/jobs";
import type { DeadGroups, Job, JobPage } from "../api/schema";
import { type Choice, useBatches } from "../lib/batches";
import { announce } from "../lib/news";
import { href, picked, type Route } from "../lib/route";
import { Act } from "../parts/act";
import { DeadAct, Difference, WORDS } from "../parts/dead-act";
import { causeOf, groupColumns, groupKey, type Within } from "../parts/dead-columns";
import { FilterBar } from "../parts/filters";
import { jobColumns } from "../parts/job-columns";
import { Page } from "../parts/panel";
import { Loaded } from "../parts/problem";
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
  // Buttons stay under the hand that goes for them while another filter takes effect.
  const any = useRef(false);
  const { data } = groups;
  if (!groups.loading) any.current = !!data && (data.groups.length > 0 || data.at_least);
  return (
    <Page title="Dead letters" actions={any.current && <All route={route} />}>
      <FilterBar route={route} filters={FILTERS} />
      <Loaded from={groups}>
        {({ groups, at_least }) => (
          <>
            {groups.length > 0 && <Difference />}
            <Table
              caption="dead letters by cause"
              rows={groups}
              keyOf={groupKey}
              columns={groupColumns(withinOf(route), at_least)}
              empty={emptiness(filtered, at_least)}
            />
            {at_least && <p class="dim">Only the newest 10,000 dead letters are counted.</p>}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** What can be done to everything that the filters choose. */
function All({ route, after }: { route: Route; after?: () => void }) {
  return (
    <>
      {(["retry", "replay", "purge"] as const).map((verb) => (
        <DeadAct
          key={verb}
          verb={verb}
          choice={choiceOf(route)}
          what={wordsOf(route)}
          label={`${WORDS[verb]} all`}
          primary={verb === "retry"}
          {...(after && { after })}
        />
      ))}
    </>
  );
}

/** Says why no row is there. */
function emptiness(filtered: boolean, at_least: boolean): string {
  if (at_least) return "None of the newest dead letters match the filter; older ones may.";
  return filtered ? "No dead letters match the filter." : "No dead letters.";
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
  return (
    <Page
      title={group ? causeOf(group).slice(0, 200) : "Dead letters of one cause"}
      actions={<All route={route} after={() => void jobs.refresh()} />}
    >
      <p class="crumbs">
        <a href="#/dead">All dead letters</a>
      </p>
      <Loaded from={jobs}>
        {({ jobs: found, next }) => (
          <>
            {found.length > 0 && <Difference />}
            <Table
              caption="dead letters"
              rows={found}
              keyOf={(job) => job.id}
              columns={[...letterColumns, againColumn(jobs.refresh)]}
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

function againColumn(after: () => Promise<void>): Column<Job> {
  const again = async (job: Job, verb: "retry" | "replay", reason: string) => {
    const changed = await change(job.id, verb, reason);
    announce(`${LABELS[verb]}: ${job.type} is ${changed.status}`);
    await after();
  };
  return {
    head: "",
    cell: (job) => (
      <span class="actions">
        {(
          [
            ["retry", RETRY],
            ["replay", REPLAY],
          ] as const
        ).map(([verb, meaning]) => (
          <Act
            key={verb}
            label={LABELS[verb]}
            title={`${LABELS[verb]} ${job.id}`}
            hint={meaning}
            scope="jobs:write"
            act={(reason) => again(job, verb, reason)}
          >
            <p>{meaning}</p>
          </Act>
        ))}
      </span>
    ),
  };
}

const NAMES = ["type", "queue", "tenant", "fingerprint", "tag"] as const;

/** Gives what the filters of the address choose, as the service takes it. */
function filtersOf(route: Route): Choice {
  const { type = [], queue = [], tenant = [], fingerprint = [], tag = [] } = picked(route, NAMES);
  const found: Choice = {};
  if (type.length) found.type = type;
  if (queue.length) found.queue = queue;
  if (tenant.length) found.tenant = tenant;
  if (fingerprint.length) found.fingerprint = fingerprint;
  if (tag[0]) found.tag = tag[0];
  return found;
}

/** The same without a cause: what a group is a part of. */
function withinOf(route: Route): Within {
  const { fingerprint: _, ...within } = filtersOf(route);
  return within;
}

function choiceOf(route: Route): Choice {
  const found = filtersOf(route);
  return Object.keys(found).length ? found : { all: true };
}

function wordsOf(route: Route): string {
  const said = NAMES.flatMap((name) => route.query.getAll(name).map((value) => `${name} ${value}`));
  return said.length ? `dead letters of ${said.join(", ")}`.slice(0, 120) : "all dead letters";
}
