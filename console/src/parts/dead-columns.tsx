import type { DeadGroup } from "../api/schema";
import type { Choice } from "../lib/batches";
import { type Filters, href } from "../lib/route";
import { tallied } from "../lib/text";
import { DeadAct } from "./dead-act";
import type { Column } from "./table";
import { Line, Name } from "./text";
import { Ago } from "./time";

/** What was chosen of all dead letters, before they were grouped. */
export type Within = Omit<Choice, "all" | "fingerprint">;

/**
 * Causes of death in a list, each with a way to its jobs and to run them again: to those that are
 * counted there, and no others.
 */
export function groupColumns(within: Within, at_least: boolean): readonly Column<DeadGroup>[] {
  return [
    { head: "Jobs", cell: ({ count }) => tallied({ count, at_least }), number: true },
    {
      head: "Cause",
      cell: (group) => (
        <a class="bad" href={groupLink(group, within)}>
          <Line value={causeOf(group)} />
        </a>
      ),
    },
    { head: "Type", cell: (group) => <Name value={group.type} most={40} /> },
    {
      head: "Queue",
      cell: (group) => <Name value={group.queue} most={24} />,
      wide: true,
      brief: true,
    },
    { head: "Newest", cell: (group) => <Ago at={group.newest_at} />, wide: true },
    {
      head: "",
      cell: (group) => (
        <span class="actions">
          {(["retry", "replay"] as const).map((verb) => (
            <DeadAct
              key={verb}
              verb={verb}
              choice={{ ...within, ...groupChoice(group) }}
              what={wordsOf(group, within)}
            />
          ))}
        </span>
      ),
    },
  ];
}

/** Tells one group from the others. */
export function groupKey({ type, fingerprint, reason }: DeadGroup): string {
  return `${type} ${fingerprint} ${reason}`;
}

/** What they died of. */
export function causeOf({ error, reason }: DeadGroup): string {
  return error ? `${error.type}: ${error.message}` : reason || "unknown";
}

/** What the service takes for "without a fingerprint". */
const NO_FINGERPRINT = "none";

function groupChoice({ type, fingerprint }: DeadGroup) {
  return { type: [type], fingerprint: [fingerprint || NO_FINGERPRINT] };
}

function groupLink(group: DeadGroup, { tag, ...within }: Within): string {
  const filters: Filters = { open: "1", ...within, ...groupChoice(group), tag: tag ?? null };
  return href(["dead"], filters);
}

function wordsOf(group: DeadGroup, { queue = [], tenant = [], tag }: Within): string {
  const said = [
    ...queue.map((name) => `queue ${name}`),
    ...tenant.map((name) => `tenant ${name}`),
    ...(tag === undefined ? [] : [`tag ${tag}`]),
  ];
  const limits = said.length ? ` (${said.join(", ")})` : "";
  return `${group.type}: ${causeOf(group)}`.slice(0, 100) + limits.slice(0, 100);
}
