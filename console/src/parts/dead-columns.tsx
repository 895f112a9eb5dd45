import type { DeadGroup } from "../api/schema";
import type { Choice } from "../lib/replay";
import { href } from "../lib/route";
import { counted } from "../lib/text";
import { ReplayAct } from "./replay-act";
import type { Column } from "./table";
import { Line, Name } from "./text";
import { Ago } from "./time";

/** Causes of death in a list, each with a way to its jobs and to run them again. */
export const groupColumns: readonly Column<DeadGroup>[] = [
  { head: "Jobs", cell: (group) => counted(group.count), number: true },
  {
    head: "Cause",
    cell: (group) => (
      <a class="bad" href={groupLink(group)}>
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
      <ReplayAct verb="replay" choice={groupChoice(group)} what={wordsOf(group).slice(0, 100)} />
    ),
  },
];

/** Tells one group from the others. */
export function groupKey({ type, fingerprint, reason }: DeadGroup): string {
  return `${type} ${fingerprint} ${reason}`;
}

/** What they died of. */
export function causeOf({ error, reason }: DeadGroup): string {
  return error ? `${error.type}: ${error.message}` : reason || "unknown";
}

/** Some have no fingerprint; they can be chosen by their type only. */
function groupChoice({ type, fingerprint }: DeadGroup): Choice {
  return fingerprint ? { type: [type], fingerprint: [fingerprint] } : { type: [type] };
}

function wordsOf(group: DeadGroup): string {
  return group.fingerprint
    ? `${group.type}: ${causeOf(group)}`
    : `all dead letters of type ${group.type}`;
}

function groupLink({ type, fingerprint }: DeadGroup): string {
  return href(["dead"], { open: "1", type, fingerprint });
}
