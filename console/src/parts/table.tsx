import type { ComponentChildren } from "preact";
import { second } from "../lib/time";
import { useStale } from "./stale";

export interface Column<T> {
  /** Empty: what can be done to the row. */
  head: string;
  cell: (row: T) => ComponentChildren;
  /** Numbers stand to the right. */
  number?: boolean;
  /** Left out on narrow screens. */
  wide?: boolean;
  /** Names of others that matter less than what stands beside them: they get little room, or none. */
  brief?: boolean;
}

export interface Selection {
  chosen: ReadonlySet<string>;
  choose: (chosen: ReadonlySet<string>) => void;
}

interface Props<T> {
  /** What the table shows, for screen readers. */
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** Said instead, if there are no rows. */
  empty: string;
  /** Lets rows be selected, with the mouse or with `x`. */
  selection?: Selection;
  /** Name of a row, for its checkbox. */
  nameOf?: (row: T) => string;
}

/** A table. Its rows are reached with `j` and `k`; the first link or button of a row opens it. */
export function Table<T>({ caption, columns, rows, keyOf, empty, selection, nameOf }: Props<T>) {
  const stale = useStale();
  if (!rows.length) {
    const before = stale !== undefined && `Nothing was here at ${second(stale)}.`;
    return <p class="empty dim">{before || empty}</p>;
  }
  return (
    <div class="table">
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {selection && (
              <th class="tick" scope="col">
                <All rows={rows.map(keyOf)} selection={selection} />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.head} scope="col" class={kind(column)}>
                {column.head || <span class="unseen">actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = keyOf(row);
            return (
              <tr
                key={key}
                data-row={key}
                class={selection?.chosen.has(key) ? "chosen" : undefined}
              >
                {selection && (
                  <td class="tick">
                    <input
                      type="checkbox"
                      aria-label={`select ${nameOf ? nameOf(row) : key}`}
                      checked={selection.chosen.has(key)}
                      onChange={() => selection.choose(toggled(selection.chosen, key))}
                    />
                  </td>
                )}
                {columns.map((column) => (
                  <td key={column.head} class={kind(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function All({ rows, selection }: { rows: readonly string[]; selection: Selection }) {
  const all = rows.every((key) => selection.chosen.has(key));
  return (
    <input
      type="checkbox"
      aria-label="select all on this page"
      checked={all}
      onChange={() =>
        selection.choose(
          all ? without(selection.chosen, rows) : new Set([...selection.chosen, ...rows]),
        )
      }
    />
  );
}

function without(chosen: ReadonlySet<string>, rows: readonly string[]): ReadonlySet<string> {
  return new Set([...chosen].filter((key) => !rows.includes(key)));
}

function toggled(chosen: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(key)) next.add(key);
  return next;
}

function kind<T>(column: Column<T>): string | undefined {
  const kinds = [column.number && "number", column.wide && "wide", column.brief && "brief"];
  return kinds.filter(Boolean).join(" ") || undefined;
}
