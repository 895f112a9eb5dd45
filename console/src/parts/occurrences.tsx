import type { ClockChange, PreviewShape } from "../api/schema";
import { Badge } from "./status";
import { Text } from "./text";
import { Ago } from "./time";

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const DAY = 86_400_000;

const MARKS: Record<string, readonly [tone: string, text: string]> = {
  "moved out of a gap": ["warn", "moved: the clocks skip its time"],
  "first of two": ["later", "first of two: the clocks show its time twice"],
  "second of two": ["later", "second of two: the clocks show its time twice"],
};

const EFFECTS: Record<ClockChange["effect"], string> = {
  moved: "is left out; it happens as soon as they have changed",
  skipped: "is left out, and does not happen",
  doubled: "comes twice, and happens twice",
  "first only": "comes twice; it happens the first time",
};

interface Props {
  runs: readonly PreviewShape[];
  clocks: ClockChange | null;
  /** Shows the occurrences around an instant, if that is possible here. */
  jump?: (after: string) => void;
}

/** When a schedule fires next, and what the clocks do to it. */
export function Occurrences({ runs, clocks, jump }: Props) {
  return (
    <>
      {runs.length === 0 ? (
        <p class="empty dim">It never fires again.</p>
      ) : (
        <ol class="occurrences" aria-label="next runs">
          {withSkipped(runs, clocks).map((each) =>
            typeof each === "string" ? (
              <li key={`skipped ${each}`} class="touched">
                <s>{local(each)}</s>
                <Badge tone="bad">skipped: the clocks do not show this time</Badge>
              </li>
            ) : (
              <li key={each.utc} class={each.mark ? "touched" : undefined}>
                <time dateTime={each.utc} title={each.utc}>
                  {local(each.local)}
                </time>
                <span class="dim">
                  <Ago at={each.utc} />
                </span>
                {each.mark && <Marked mark={each.mark} />}
              </li>
            ),
          )}
        </ol>
      )}
      {clocks && <Clocks clocks={clocks} jump={jump} />}
    </>
  );
}

function Marked({ mark }: { mark: string }) {
  const [tone, text] = MARKS[mark] ?? ["warn", mark];
  return <Badge tone={tone}>{text}</Badge>;
}

function Clocks({ clocks, jump }: { clocks: ClockChange; jump: Props["jump"] }) {
  const before = new Date(Date.parse(clocks.at) - DAY).toISOString();
  return (
    <p class="clocks">
      <span>
        When the clocks of <Text value={clocks.timezone} /> change next, {local(clocks.wall)}{" "}
        {EFFECTS[clocks.effect]}.
      </span>{" "}
      {jump && (
        <button type="button" class="quiet" onClick={() => jump(before)}>
          show it
        </button>
      )}
    </p>
  );
}

/** Puts the time that does not happen, as a text, between the runs around it. */
function withSkipped(
  runs: readonly PreviewShape[],
  clocks: ClockChange | null,
): (PreviewShape | string)[] {
  if (clocks?.effect !== "skipped") return [...runs];
  const at = Date.parse(clocks.at);
  const next = runs.findIndex(({ utc }) => Date.parse(utc) >= at);
  return next < 0 ? [...runs] : [...runs.slice(0, next), clocks.wall, ...runs.slice(next)];
}

/** `Sun 2030-03-31 03:00:00 +02:00`, as it was written, without regard to who looks. */
function local(written: string): string {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(.*)$/.exec(written);
  if (!found) return written;
  const [, date = "", time = "", zone = ""] = found;
  const day = DAYS[new Date(`${date}T00:00:00Z`).getUTCDay()] ?? "";
  return [day, date, time, zone === "Z" ? "UTC" : zone].filter(Boolean).join(" ");
}
