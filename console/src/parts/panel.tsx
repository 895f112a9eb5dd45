import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { plainly } from "../lib/text";
import { Text } from "./text";

interface Framed {
  title: string;
  /** Buttons and links that belong to the title. */
  actions?: ComponentChildren;
  children: ComponentChildren;
}

/** A page: its title, also of the window, and what is on it. */
export function Page({ title, actions, children }: Framed) {
  useEffect(() => {
    document.title = `${plainly(title).slice(0, 80)} · Lamplighter`;
  }, [title]);
  return (
    <>
      <header class="page-head">
        <h1>
          <Text value={title} />
        </h1>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** A part of a page that has a title of its own. */
export function Panel({ title, actions, children }: Framed) {
  const id = `panel-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** Names and values. What is null, undefined, false or empty is left out. */
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts
        .filter(
          ([, value]) => value !== null && value !== undefined && value !== false && value !== "",
        )
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
