import type { ComponentChildren, Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useAway, useLink, useStoreAway } from "../api/data";
import { keepPulse } from "../api/pulse";
import { useMe, useSees } from "../api/session";
import { useDialog } from "../lib/dialogs";
import type { Route } from "../lib/route";
import { nextTheme, theme } from "../lib/theme";
import { second } from "../lib/time";
import { PAGES, pageOf } from "../pages";
import { Lamp } from "./lamp";
import { Text } from "./text";
import { Toasts } from "./toasts";
import { Tray } from "./tray";

interface Props {
  route: Route;
  help: () => void;
  leave: () => void;
  main: Ref<HTMLElement>;
  children: ComponentChildren;
}

/** What stands around every page: the ways to the others, who we are, and how fresh things are. */
export function Frame({ route, help, leave, main, children }: Props) {
  const sees = useSees();
  const here = pageOf(route);
  const menu = useRef<HTMLUListElement>(null);
  const away = useAway();
  const storeAway = useStoreAway();
  const isOld = away !== undefined || storeAway !== undefined;
  useEffect(keepPulse, []);
  useEffect(() => {
    // On a narrow screen the menu is a line that may reach beyond the edge.
    menu.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [here]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the page
      </a>
      <header class="side">
        <a class="brand" href="#/">
          <Lamp />
          <span>Lamplighter</span>
        </a>
        <nav aria-label="pages">
          <ul ref={menu}>
            {PAGES.filter(sees).map((page) => (
              <li key={page.path}>
                <a
                  href={`#/${page.path}`}
                  aria-current={page.path === here.path ? "page" : undefined}
                  title={`g ${page.key}`}
                >
                  {page.name}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Foot help={help} leave={leave} />
      </header>
      <main id="main" tabIndex={-1} ref={main} class={isOld ? "old" : undefined}>
        <Away />
        {children}
      </main>
      {useDialog()}
      <Tray />
      <Toasts />
    </div>
  );
}

/** Says, once for all parts of a page, that what they show is not of now. */
function Away() {
  const away = useAway();
  const storeAway = useStoreAway();
  if (away === undefined && storeAway === undefined) return null;
  return (
    <div class="problem" role="alert">
      <p>
        <b>{away === undefined ? "The store does not answer" : "The service does not answer"}</b>,
        since {second(away ?? storeAway ?? 0)}.
      </p>
      {away === undefined ? (
        <p class="dim">
          What is shown is from before; jobs may have gone on or not. The log of the service says
          more, and so does <code>lamplighter doctor</code>; this page goes on by itself as soon as
          the store answers.
        </p>
      ) : (
        <p class="dim">
          What is shown is from before. See whether <code>lamplighter serve</code> runs and can be
          reached from here; this page goes on by itself as soon as it answers.
        </p>
      )}
    </div>
  );
}

/** The fragment belongs to the pages, so the link moves the focus by itself. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const LINKS = { connecting: "connecting", live: "live", polling: "every 5 s", hidden: "paused" };

function Foot({ help, leave }: { help: () => void; leave: () => void }) {
  const me = useMe();
  const link = useLink();
  const isAway = useAway() !== undefined && link !== "hidden";
  const isStoreAway = useStoreAway() !== undefined && link !== "hidden";
  const [chosen, setChosen] = useState(theme);
  return (
    <div class="foot">
      <span
        class={`link ${isAway || isStoreAway ? "away" : link}`}
        role="status"
        title="how changes come to this page"
      >
        <i aria-hidden="true" />
        {isAway ? "no answer" : isStoreAway ? "no store" : LINKS[link]}
      </span>
      <span class="who" title={`scopes: ${me.scopes.join(", ") || "none"}`}>
        <Text value={me.name} />
        {me.tenant !== null && (
          <>
            {" · "}
            <Text value={me.tenant} />
          </>
        )}
      </span>
      <span class="buttons">
        <button
          type="button"
          class="quiet"
          onClick={() => setChosen(nextTheme())}
          title="dark or light"
        >
          {chosen === "auto" ? "◐" : chosen === "dark" ? "☾" : "☼"}
          <span class="unseen">theme: {chosen}</span>
        </button>
        <button
          type="button"
          class="quiet"
          onClick={help}
          title="keyboard (?)"
          aria-label="keyboard help"
        >
          ?
        </button>
        {me.session !== undefined && (
          <button type="button" class="quiet" onClick={leave}>
            log out
          </button>
        )}
      </span>
    </div>
  );
}
