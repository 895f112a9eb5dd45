import { render } from "preact";
import { App } from "./app";
import { applyTheme } from "./lib/theme";

applyTheme();
const root = document.getElementById("root");
if (root) render(<App />, root);
