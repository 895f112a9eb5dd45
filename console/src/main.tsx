import { render } from "preact";
import { takeToken } from "./api/token";
import { App } from "./app";
import { applyTheme } from "./lib/theme";

takeToken();
applyTheme();
const root = document.getElementById("root");
if (root) render(<App />, root);
