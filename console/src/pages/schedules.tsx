import { useData } from "../api/data";
import { scheduleLink } from "../api/schedules";
import type { JobTypes, SchedulePage, ScheduleShape } from "../api/schema";
import { useMay } from "../api/session";
import { useShortcuts } from "../lib/keys";
import { go, href } from "../lib/route";
import { plural } from "../lib/text";
import { FilterBar } from "../parts/filters";
import { Instant } from "../parts/instant";
import { Pager } from "../parts/pager";
import { Page } from "../parts/panel";
import { Loaded } from "../parts/problem";
import { Badge } from "../parts/status";
import { type Column, Table } from "../parts/table";
import { Line, Name } from "../parts/text";
import { Ago } from "../parts/time";
import type { PageProps } from ".";
import { NewSchedule } from "./schedule-form";

const NAMES = ["type", "tenant", "prefix", "held", "cursor"];

/** All schedules by tenant and id, or the form for a new one. */
export function Schedules({ route }: PageProps) {
  return route.query.has("new") ? <NewSchedule route={route} /> : <List route={route} />;
}

function List({ route }: PageProps) {
  const may = useMay();
  const create = href(["schedules"], { new: "1" });
  useShortcuts(
    may("schedules:write") ? [{ keys: "n", what: "new schedule", do: () => go(create) }] : [],
  );
  const query = Object.fromEntries(NAMES.map((name) => [name, route.query.getAll(name)]));
  const isPlain = Object.values(query).every((values) => values.length === 0);
  const topic = isPlain ? { topic: "schedules" } : {};
  const page = useData<SchedulePage>("v1/schedules", { query, ...topic });
  const types = useData<JobTypes>(may("jobs:read") ? "v1/types" : null, { every: 0 });
  const names = [...new Set(types.data?.types.map(({ name }) => name))].sort();
  const filters = [
    { name: "prefix", label: "Id begins with" },
    { name: "type", label: "Type", offers: names },
    { name: "tenant", label: "Tenant" },
    { name: "held", label: "Held", options: ["true", "false"] },
  ];
  return (
    <Page
      title="Schedules"
      actions={
        may("schedules:write") && (
          <a class="button" href={create}>
            New schedule
          </a>
        )
      }
    >
      <FilterBar route={route} filters={filters} />
      <Loaded from={page}>
        {({ schedules, next }) => (
          <>
            <Table
              caption="schedules by tenant and id"
              rows={schedules}
              keyOf={({ id, tenant }) => `${tenant} ${id}`}
              columns={COLUMNS}
              empty={
                next
                  ? "None on this page; the search goes on with the next."
                  : isPlain
                    ? "There are no schedules."
                    : "No schedules match the filter."
              }
            />
            <Pager route={route} next={next} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

const COLUMNS: readonly Column<ScheduleShape>[] = [
  {
    head: "Schedule",
    cell: ({ id, tenant }) => (
      <a class="title" href={scheduleLink({ id, tenant })}>
        <Name value={id} most={40} />
      </a>
    ),
  },
  { head: "Type", cell: ({ type }) => <Name value={type} most={40} />, wide: true, brief: true },
  { head: "When", cell: (schedule) => <Line value={inShort(schedule)} most={80} />, wide: true },
  { head: "Next run", cell: (schedule) => <NextRun schedule={schedule} /> },
  { head: "Last run", cell: (schedule) => <LastRun schedule={schedule} />, wide: true },
  {
    head: "Tenant",
    cell: ({ tenant }) => <Name value={tenant} most={24} />,
    wide: true,
    brief: true,
  },
];

/** The first sentence of the description; the others are about what the clocks do. */
function inShort({ spec, unreadable }: ScheduleShape): string {
  return spec ? (spec.description.split(". ")[0] ?? "").replace(/\.$/, "") : (unreadable ?? "");
}

/** When it is fired next, or why it is not. */
export function NextRun({ schedule }: { schedule: ScheduleShape }) {
  if (schedule.hold) return <Badge tone="still">held</Badge>;
  if (schedule.next_run) return <Instant at={schedule.next_run} />;
  return <span class="dim">never again</span>;
}

/** When it was fired last, and whether it has failed since it last succeeded. */
export function LastRun({ schedule }: { schedule: ScheduleShape }) {
  const { last_due, last_job, failures, fired } = schedule;
  if (!last_due) return <span class="dim">none yet</span>;
  const when = <Ago at={last_due} />;
  return (
    <span>
      {last_job ? <a href={href(["jobs", last_job])}>{when}</a> : when}{" "}
      {failures > 0 ? (
        <Badge tone="bad">{`${plural(failures, "failure")} in a row`}</Badge>
      ) : (
        fired > 0 && <Badge tone="good">healthy</Badge>
      )}
    </span>
  );
}
