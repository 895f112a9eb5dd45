// The keyboard. Lists need nothing of their own: a row is what has `data-row`, and the first link or
// button in it opens it.

import { useLayoutEffect } from "preact/hooks";
import { go } from "./route";

export interface Shortcut {
  keys: string;
  what: string;
  do: () => void;
}

const LISTS: readonly Shortcut[] = [
  { keys: "j", what: "next row", do: () => step(1) },
  { keys: "k", what: "row before", do: () => step(-1) },
  {
    keys: "x",
    what: "select the row",
    do: () => inRow<HTMLInputElement>("input[type=checkbox]")?.click(),
  },
  {
    keys: "/",
    what: "filter",
    do: () => document.querySelector<HTMLElement>("main [data-filter]")?.focus(),
  },
];

/** What is possible on every page, for the help. */
export const ALWAYS: readonly { keys: string; what: string }[] = [
  ...LISTS,
  { keys: "Enter", what: "open the row" },
  { keys: "Ctrl Enter", what: "do what a dialog asks" },
  { keys: "Esc", what: "close, or leave a field" },
  { keys: "?", what: "this help" },
];

const own = new Set<readonly Shortcut[]>();

/** Shortcuts of the page that is shown, for the help. */
export function pageShortcuts(): Shortcut[] {
  return [...own].flat();
}

/** Adds shortcuts while a page is shown. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  useLayoutEffect(() => {
    own.add(shortcuts);
    return () => void own.delete(shortcuts);
  });
}

function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("main [data-row]")];
}

function rowOfFocus(): HTMLElement | undefined {
  return document.activeElement?.closest<HTMLElement>("[data-row]") ?? undefined;
}

function inRow<E extends HTMLElement>(selector: string): E | null {
  return rowOfFocus()?.querySelector<E>(selector) ?? null;
}

function step(by: number): void {
  const all = rows();
  const at = all.indexOf(rowOfFocus() as HTMLElement);
  const next =
    all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  const target = next?.querySelector<HTMLElement>("a[href], button") ?? next;
  target?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement)
    return !["checkbox", "radio", "button"].includes(target.type);
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    target.isContentEditable
  );
}

/** A place that `g` and a key lead to. */
export interface Place {
  key: string;
  path: string;
  name: string;
}

/** Listens for as long as the console is shown. */
export function useKeyboard(places: readonly Place[], help: () => void): void {
  useLayoutEffect(() => {
    let going = 0;
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
        return;
      if (isTyping(event.target)) {
        if (event.key === "Escape") (event.target as HTMLElement).blur();
        return;
      }
      if (event.key === "g" && Date.now() - going > 1500) {
        going = Date.now();
        return;
      }
      const place =
        Date.now() - going <= 1500 ? places.find(({ key }) => key === event.key) : undefined;
      going = 0;
      const found = [...pageShortcuts(), ...LISTS].find((each) => each.keys === event.key);
      if (place) go(`#/${place.path}`);
      else if (event.key === "?") help();
      else if (found) found.do();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [places, help]);
}
