import type { ComponentChildren } from "preact";
import { useData } from "../api/data";
import type { DeadGroups, Overview as Standing, Stats } from "../api/schema";
import { useMay } from "../api/session";
import { type Filters, href } from "../lib/route";
import { count, cut, plainly, tallied } from "../lib/text";
import { duration } from "../lib/time";
import { Chart } from "../parts/chart";
import { groupColumns, groupKey } from "../parts/dead-columns";
import { Page, Panel } from "../parts/panel";
import { Loaded } from "../parts/problem";
import { Stage } from "../parts/stage";
import { Table } from "../parts/table";

const GROUPS = 5;

/** The whole store at a glance: what waits and runs, how late, what failed. */
export function Overview() {
  const may = useMay();
  const standing = useData<Standing>("v1/overview", { topic: "overview" });
  const stats = useData<Stats>("v1/stats", { query: { minutes: 60 }, signal: "overview" });
  const maySeeDead = may("operator");
  const dead = useData<DeadGroups>(maySeeDead ? "v1/dlq" : null, { topic: "dlq" });
  return (
    <Page title="Overview">
      {may("admin") && <Stage />}
      <Loaded from={standing}>{(standing) => <Tiles standing={standing} />}</Loaded>
      <Loaded from={stats}>{(stats) => <Charts stats={stats} />}</Loaded>
      {maySeeDead && (
        <Panel title="Dead letters" actions={<a href="#/dead">View all</a>}>
          <Loaded from={dead}>
            {({ groups, at_least }) => (
              <Table
                caption="newest causes of dead letters"
                rows={newest(groups)}
                keyOf={groupKey}
                columns={groupColumns({}, at_least)}
                empty="No dead letters."
              />
            )}
          </Loaded>
        </Panel>
      )}
    </Page>
  );
}

function newest(groups: DeadGroups["groups"]) {
  return [...groups]
    .sort((one, other) => (one.newest_at < other.newest_at ? 1 : -1))
    .slice(0, GROUPS);
}

function Tiles({ standing }: { standing: Standing }) {
  const {
    due,
    scheduled,
    held,
    running,
    dead,
    oldest,
    workers,
    slots,
    last_minute: last,
    lag,
  } = standing;
  return (
    <div class="tiles">
      <Tile
        label="Waiting"
        value={tallied(due)}
        more={`${tallied(scheduled)} later`}
        filters={{ status: "ready" }}
      />
      <Tile
        label="Running"
        value={tallied(running)}
        more={`of ${count(slots)} slots`}
        filters={{ status: "running" }}
      />
      <Tile
        label="Done, last minute"
        value={count(last.succeeded)}
        more={`${count(last.started)} started`}
        filters={{ status: "succeeded" }}
      />
      <Tile
        label="Failed, last minute"
        value={count(last.failed)}
        more={`${count(last.retried)} retried`}
        bad={last.failed > 0}
        filters={{ status: "dead" }}
      />
      <Tile
        label="Start lag, median"
        value={seconds(lag.p50_seconds)}
        more={lag.p50_seconds === null ? "none started lately" : `p99 ${seconds(lag.p99_seconds)}`}
      />
      <Tile
        label="Oldest due"
        value={oldest ? duration(oldest.due_seconds) : "none"}
        more={oldest ? `in ${cut(plainly(oldest.queue), 24)}` : "nothing is due"}
        link={oldest ? href(["jobs", oldest.id]) : undefined}
      />
      <Tile
        label="Dead letters"
        value={tallied(dead)}
        more={held.count ? `${tallied(held)} held` : ""}
        bad={dead.count > 0}
        link="#/dead"
      />
      <Tile
        label="Workers"
        value={count(workers)}
        more={troubleOf(standing)}
        bad={workers === 0}
        link="#/workers"
      />
    </div>
  );
}

/** What is wrong with those who do the work. */
function troubleOf({ workers, fire_lag_seconds: late }: Standing): string {
  if (workers === 0) return "nothing is run";
  return late > 1 ? `schedules ${duration(late)} late` : "";
}

interface TileProps {
  label: string;
  value: string;
  more: string;
  bad?: boolean;
  filters?: Filters;
  link?: string | undefined;
}

function Tile({ label, value, more, bad = false, filters, link }: TileProps) {
  const to = link ?? (filters && href(["jobs"], filters));
  const inside: ComponentChildren = (
    <>
      <span class="label">{label}</span>
      <span class={bad ? "value bad" : "value"}>{value}</span>
      <span class="more">{more}</span>
    </>
  );
  return to ? (
    <a class="tile" href={to}>
      {inside}
    </a>
  ) : (
    <div class="tile">{inside}</div>
  );
}

function seconds(value: number | null): string {
  return value === null ? "–" : duration(value);
}

function Charts({ stats }: { stats: Stats }) {
  const { minutes } = stats;
  const times = minutes.map(({ at }) => Date.parse(at));
  return (
    <div class="columns">
      <section class="panel" aria-label="throughput">
        <Chart
          title="Jobs per minute"
          kind="bars"
          times={times}
          format={count}
          series={[
            { name: "done", tone: "good", values: minutes.map(({ succeeded }) => succeeded) },
            { name: "retried", tone: "warn", values: minutes.map(({ retried }) => retried) },
            { name: "failed", tone: "bad", values: minutes.map(({ failed }) => failed) },
          ]}
        />
      </section>
      <section class="panel" aria-label="lag">
        <Chart
          title="From due to start"
          kind="lines"
          times={times}
          format={duration}
          series={[
            { name: "p50", tone: "next", values: minutes.map(({ lag }) => lag.p50_seconds) },
            { name: "p95", tone: "later", values: minutes.map(({ lag }) => lag.p95_seconds) },
            { name: "p99", tone: "bad", values: minutes.map(({ lag }) => lag.p99_seconds) },
          ]}
        />
      </section>
    </div>
  );
}
