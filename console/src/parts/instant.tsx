import { clock } from "../lib/time";
import { Ago } from "./time";

/** An instant as the calendar has it, and how far away it is. */
export function Instant({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="dim">–</span>;
  return (
    <span class="instant">
      <time dateTime={at}>{clock(at).slice(0, 19)}</time>{" "}
      <span class="dim">
        <Ago at={at} />
      </span>
    </span>
  );
}
