// Times and durations, as people say them.

import { useEffect, useState } from "preact/hooks";

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

/** `2 h 5 min`, `3.2 s`, `14 ms`. */
export function duration(seconds: number): string {
  const size = Math.abs(seconds);
  if (size < 0.001) return "0 ms";
  if (size < 1) return `${Math.round(size * 1000)} ms`;
  if (size < 10) return `${size.toFixed(1)} s`;
  if (size < 60) return `${Math.round(size)} s`;
  let left = Math.round(size);
  const parts: string[] = [];
  for (const [length, name] of UNITS) {
    if (left >= length && parts.length < 2) {
      parts.push(`${Math.floor(left / length)} ${name}`);
      left %= length;
    } else if (parts.length) break;
  }
  return parts.join(" ");
}

/** `in 5 min`, `2 h ago`, `now`. */
export function away(instant: string, now: number): string {
  const seconds = (Date.parse(instant) - now) / 1000;
  if (Number.isNaN(seconds)) return instant;
  if (Math.abs(seconds) < 1) return "now";
  const whole = Math.abs(seconds) < 10 ? Math.round(Math.abs(seconds)) : Math.abs(seconds);
  const said = whole < 10 ? `${whole} s` : duration(whole);
  return seconds > 0 ? `in ${said}` : `${said} ago`;
}

/** Seconds between two instants. */
export function between(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

/** `2030-01-31 12:00:00.104`, by the clock of whoever looks. */
export function clock(instant: string): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return instant;
  const two = (value: number, width = 2) => String(value).padStart(width, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${two(at.getMilliseconds(), 3)}`;
}

/** `+01:00` or `UTC`: how far the clock of whoever looks is ahead at an instant. */
export function zone(instant: string): string {
  const ahead = -new Date(instant).getTimezoneOffset();
  if (!ahead) return "UTC";
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const size = Math.abs(ahead);
  return `${ahead < 0 ? "-" : "+"}${two(size / 60)}:${two(size % 60)}`;
}

/** `12:04` of a time that is known to be near. */
export function minute(milliseconds: number): string {
  return clock(new Date(milliseconds).toISOString()).slice(11, 16);
}

/** `12:04:59` of a time that is known to be near. */
export function second(milliseconds: number): string {
  return clock(new Date(milliseconds).toISOString()).slice(11, 19);
}

const listeners = new Set<(now: number) => void>();
let ticking: number | undefined;

function tick(): void {
  if (document.hidden) return;
  const now = Date.now();
  for (const listener of listeners) listener(now);
}

/** Gives the present, again every second while the page is looked at. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    listeners.add(setNow);
    ticking ??= window.setInterval(tick, 1000);
    return () => {
      listeners.delete(setNow);
      if (listeners.size) return;
      window.clearInterval(ticking);
      ticking = undefined;
    };
  }, []);
  return now;
}
