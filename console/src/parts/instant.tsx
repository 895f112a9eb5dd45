import { clock, zone } from "../lib/time";
import { Ago } from "./time";

/** An instant by the clock of whoever looks, with its zone, and how far away it is. */
export function Instant({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="dim">–</span>;
  return (
    <span class="instant">
      <time dateTime={at}>
        {clock(at).slice(0, 19)} {zone(at)}
      </time>{" "}
      <span class="dim">
        <Ago at={at} />
      </span>
    </span>
  );
}
