import { useState } from "preact/hooks";
import { minute } from "../lib/time";
import { useStale } from "./stale";

export interface Series {
  name: string;
  /** Colour, as of a badge. */
  tone: string;
  /** One per time; null: nothing is known. */
  values: readonly (number | null)[];
}

interface Props {
  title: string;
  /** Milliseconds since 1970, evenly spaced. */
  times: readonly number[];
  series: readonly Series[];
  /** Bars stand on each other; lines do not. */
  kind: "bars" | "lines";
  format: (value: number) => string;
}

const WIDTH = 600;
const HEIGHT = 120;

/** A drawing of numbers over time. Pointing at it, or the arrow keys, tell the numbers. */
export function Chart({ title, times, series, kind, format }: Props) {
  const [at, setAt] = useState<number>();
  const isOld = useStale() !== undefined;
  const last = times.at(-1);
  const top = ceiling(
    kind === "bars"
      ? tops(series, times.length)
      : series.flatMap(({ values }) => values.filter(known)),
  );
  const shown = at === undefined ? times.length - 1 : at;
  const point = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    setAt(
      bounded(Math.floor(((event.clientX - box.left) / box.width) * times.length), times.length),
    );
  };
  const press = (event: KeyboardEvent) => {
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (!by) return;
    event.preventDefault();
    setAt(bounded(shown + by, times.length));
  };
  return (
    <figure class="chart">
      <figcaption>
        <span class="title">{title}</span>
        <span class="legend" aria-live={at === undefined ? "off" : "polite"}>
          <span class="dim">
            {times[shown] === undefined
              ? ""
              : at === undefined && !isOld
                ? "this minute"
                : minute(times[shown])}
          </span>
          {series.map(({ name, tone, values }) => (
            <span key={name} class={`key ${tone}`}>
              <i aria-hidden="true" />
              {name} <b>{known(values[shown] ?? null) ? format(values[shown] as number) : "–"}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div class="plot">
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={summary(title, series, format)}
          tabIndex={0}
          onPointerMove={point}
          onPointerLeave={() => setAt(undefined)}
          onBlur={() => setAt(undefined)}
          onKeyDown={press}
        >
          <path
            class="grid"
            d={`M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}M0 .5H${WIDTH}`}
          />
          {kind === "bars" ? (
            <Bars series={series} length={times.length} top={top} />
          ) : (
            <Lines series={series} top={top} />
          )}
          {at !== undefined && <path class="cursor" d={`M${x(at, times.length)} 0V${HEIGHT}`} />}
        </svg>
        <span class="scale top dim">{format(top)}</span>
        <span class="scale bottom dim">{times[0] === undefined ? "" : minute(times[0])}</span>
        <span class="scale bottom right dim">
          {isOld && last !== undefined ? minute(last) : "now"}
        </span>
      </div>
    </figure>
  );
}

function Bars({ series, length, top }: { series: readonly Series[]; length: number; top: number }) {
  const width = WIDTH / Math.max(length, 1);
  const floors = new Array<number>(length).fill(0);
  return (
    <>
      {series.map(({ name, tone, values }) => {
        const path = values.map((value, at) => {
          const height = (Math.max(value ?? 0, 0) / top) * HEIGHT;
          if (!height) return "";
          const floor = floors[at] ?? 0;
          floors[at] = floor + height;
          return `M${round(at * width + width * 0.12)} ${round(HEIGHT - floor)}v${round(-height)}h${round(width * 0.76)}v${round(height)}z`;
        });
        return <path key={name} class={`bar ${tone}`} d={path.join("")} />;
      })}
    </>
  );
}

function Lines({ series, top }: { series: readonly Series[]; top: number }) {
  return (
    <>
      {series.map(({ name, tone, values }) => (
        <path key={name} class={`curve ${tone}`} d={line(values, top)} />
      ))}
    </>
  );
}

/** Draws the known values; a gap stays a gap, and a lonely value is a short line. */
function line(values: readonly (number | null)[], top: number): string {
  let drawing = false;
  return values
    .map((value, at) => {
      if (!known(value)) {
        drawing = false;
        return "";
      }
      const y = round(HEIGHT - 2 - (value / top) * (HEIGHT - 4));
      const middle = x(at, values.length);
      const from = drawing ? `L${middle} ${y}` : `M${round(middle - 2)} ${y}H${middle}`;
      drawing = true;
      return known(values[at + 1] ?? null) ? from : `${from}h2`;
    })
    .join("");
}

function x(at: number, length: number): number {
  return round(((at + 0.5) / Math.max(length, 1)) * WIDTH);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function bounded(at: number, length: number): number {
  return Math.min(Math.max(at, 0), length - 1);
}

function known(value: number | null): value is number {
  return value !== null && Number.isFinite(value);
}

function tops(series: readonly Series[], length: number): number[] {
  return Array.from({ length }, (_, at) =>
    series.reduce((sum, { values }) => sum + Math.max(values[at] ?? 0, 0), 0),
  );
}

/** The next number above all that is easy to read: 1, 2 or 5 with zeros. */
function ceiling(values: readonly number[]): number {
  const most = Math.max(...values, 0);
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5, 10].find((step) => step * power >= most) ?? 10) * power;
}

function summary(
  title: string,
  series: readonly Series[],
  format: (value: number) => string,
): string {
  const said = series.map(({ name, values }) => {
    const found = values.filter(known);
    return found.length
      ? `${name}: last ${format(found.at(-1) ?? 0)}, at most ${format(Math.max(...found))}`
      : `${name}: nothing`;
  });
  return `${title}, last hour. ${said.join("; ")}. Arrow keys tell the minutes.`;
}
