import { useEffect, useRef, useState } from "preact/hooks";
import { type Filters, go, href, parse, type Route } from "../lib/route";

export interface Filter {
  name: string;
  label: string;
  /** Only these are possible; without them any text is. */
  options?: readonly string[];
  /** Offered while one types. */
  offers?: readonly string[];
}

interface Props {
  route: Route;
  filters: readonly Filter[];
}

/** Fields that choose what is shown. What is chosen stands in the address. */
export function FilterBar({ route, filters }: Props) {
  const change = (name: string, value: string) => {
    // What was typed into two fields takes effect one after the other: the later keeps the earlier.
    const now = parse(location.hash);
    const next: Filters = {};
    for (const key of new Set(now.query.keys())) next[key] = now.query.getAll(key);
    next[name] = value;
    next["cursor"] = null;
    go(href(now.parts, next), { replace: true });
  };
  const any = filters.some(({ name }) => route.query.has(name));
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {filters.map((filter, at) => (
        <FilterField
          key={filter.name}
          filter={filter}
          first={at === 0}
          value={route.query.get(filter.name) ?? ""}
          change={(value) => change(filter.name, value)}
        />
      ))}
      {any && (
        <a class="quiet" href={href(route.parts)}>
          clear
        </a>
      )}
    </form>
  );
}

interface FieldProps {
  filter: Filter;
  first: boolean;
  value: string;
  change: (value: string) => void;
}

function FilterField({ filter, first, value, change }: FieldProps) {
  const { name, label, options, offers } = filter;
  if (options) {
    return (
      <label>
        {label}
        <select
          data-filter={first || undefined}
          value={value}
          onChange={(event) => change(event.currentTarget.value)}
        >
          <option value="">any</option>
          {options.map((option) => (
            <option key={option} value={option}>
              {option}
            </option>
          ))}
        </select>
      </label>
    );
  }
  return (
    <label>
      {label}
      <Typed
        name={name}
        first={first}
        value={value}
        change={change}
        list={offers && `offers-${name}`}
      />
      {offers && (
        <datalist id={`offers-${name}`}>
          {offers.map((offer) => (
            <option key={offer} value={offer} />
          ))}
        </datalist>
      )}
    </label>
  );
}

interface TypedProps {
  name: string;
  first: boolean;
  value: string;
  change: (value: string) => void;
  list: string | undefined;
}

/** Takes effect a moment after the last key, and at once when the field is left. */
function Typed({ name, first, value, change, list }: TypedProps) {
  const [typed, setTyped] = useState(value);
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const settle = (next: string) => {
    window.clearTimeout(timer.current);
    timer.current = undefined;
    change(next);
  };
  return (
    <input
      type="search"
      name={name}
      data-filter={first || undefined}
      value={typed}
      list={list}
      placeholder="any"
      autoComplete="off"
      spellcheck={false}
      onInput={(event) => {
        const next = event.currentTarget.value;
        setTyped(next);
        window.clearTimeout(timer.current);
        timer.current = window.setTimeout(() => settle(next), 300);
      }}
      onChange={(event) => timer.current !== undefined && settle(event.currentTarget.value)}
    />
  );
}
