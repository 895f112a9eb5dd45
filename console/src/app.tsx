import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { problemOf, type Refused, whenUnauthorized } from "./api/client";
import { type Me, type Scope, Session, useMay, whoAmI } from "./api/session";
import { restart } from "./api/stream";
import { keepToken } from "./api/token";
import { useKeyboard } from "./lib/keys";
import { go, useRoute } from "./lib/route";
import { PAGES, pageOf } from "./pages";
import { Login } from "./pages/login";
import { Frame } from "./parts/frame";
import { Help } from "./parts/help";
import { Page as PageFrame } from "./parts/panel";
import { Problem } from "./parts/problem";

type State =
  | { at: "starting" }
  | { at: "login" }
  | { at: "refused"; problem: Refused }
  | { at: "in"; me: Me };

/** The console: a login where one is needed, then the frame with the page of the address in it. */
export function App() {
  const [state, setState] = useState<State>({ at: "starting" });
  const enter = useCallback(async () => {
    try {
      const me = await whoAmI();
      setState({ at: "in", me });
      restart();
    } catch (error) {
      const problem = problemOf(error);
      setState(problem.status === 401 ? { at: "login" } : { at: "refused", problem });
    }
  }, []);
  useEffect(() => whenUnauthorized(() => setState({ at: "login" })), []);
  useEffect(() => void enter(), [enter]);

  if (state.at === "login") return <Login enter={enter} />;
  if (state.at === "refused") {
    return (
      <main class="alone">
        <Problem problem={state.problem} />
        <button type="button" class="primary" onClick={() => void enter()}>
          Try again
        </button>
      </main>
    );
  }
  if (state.at === "starting") return null;
  const leave = () => {
    keepToken(null);
    void enter();
  };
  return (
    <Session.Provider value={state.me}>
      <Inside leave={leave} />
    </Session.Provider>
  );
}

function Inside({ leave }: { leave: () => void }) {
  const route = useRoute();
  const [helping, setHelping] = useState(false);
  const help = useCallback(() => setHelping(true), []);
  useKeyboard(PAGES, help);
  const where = route.parts.join("/");
  const main = useRef<HTMLElement>(null);
  const arrived = useRef(false);
  useEffect(() => {
    // Whoever goes to another page begins at its top, with the keyboard and the eyes.
    if (arrived.current) {
      main.current?.focus();
      scrollTo(0, 0);
    }
    arrived.current = true;
  }, [where]);
  const may = useMay();
  const page = pageOf(route);
  useEffect(() => {
    // Whoever may not see the overview begins with what they may see.
    const first = PAGES.find(({ scope }) => may(scope));
    if (where === "" && first && !may(page.scope)) go(`#/${first.path}`, { replace: true });
  }, [where]);
  const Page = page.show;
  return (
    <Frame route={route} help={help} leave={leave} main={main}>
      {may(page.scope) ? <Page key={where} route={route} /> : <Closed scope={page.scope} />}
      {helping && <Help onClose={() => setHelping(false)} />}
    </Frame>
  );
}

function Closed({ scope }: { scope: Scope }) {
  return (
    <PageFrame title="Not for this token">
      <p>
        This page needs the scope <code>{scope}</code>. Ask for a token that has it.
      </p>
    </PageFrame>
  );
}
