import { away, clock, duration, useNow } from "../lib/time";

/** An instant as one says it now: `2 min ago`. The title has it exactly. */
export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span class="dim">–</span>;
  return (
    <time dateTime={at} title={clock(at)}>
      {away(at, now)}
    </time>
  );
}

/** How long something took, or has taken so far. */
export function Took({ from, to }: { from: string; to: string | null }) {
  const now = useNow();
  const end = to === null ? now : Date.parse(to);
  return <span>{duration(Math.max(0, (end - Date.parse(from)) / 1000))}</span>;
}
