import type { Note } from "../api/schema";
import { Act } from "./act";
import { By } from "./note";
import { Badge } from "./status";

interface Props {
  /** What is meant, in words. */
  what: string;
  held: boolean;
  act: (held: boolean, reason: string) => Promise<void>;
}

/** A button that holds a queue or a tenant, or lets it go on. */
export function HoldAct({ what, held, act }: Props) {
  return held ? (
    <Act
      label="Unhold"
      title={`Let ${what} go on`}
      scope="operator"
      act={(reason) => act(false, reason)}
    >
      <p>Its jobs run again, those that have waited longest first.</p>
    </Act>
  ) : (
    <Act label="Hold" title={`Hold ${what}`} scope="operator" act={(reason) => act(true, reason)}>
      <p>None of its jobs start until it is unheld. Running jobs continue.</p>
    </Act>
  );
}

/** Who holds it, since when and why. */
export function Held({ note }: { note: Note | null }) {
  if (!note) return <span class="dim">no</span>;
  return (
    <span>
      <Badge tone="still">held</Badge> <By note={note} />
    </span>
  );
}
