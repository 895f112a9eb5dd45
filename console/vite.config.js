import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const place = (path) => fileURLToPath(new URL(path, import.meta.url));

// Addresses are relative, so that the console works wherever the service is mounted.
export default defineConfig({
  base: "./",
  build: {
    outDir: process.env.CONSOLE_OUT ?? place("../src/lamplighter/server/console"),
    emptyOutDir: true,
    target: "es2022",
    // The first versions that know light-dark().
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: false,
    // Nothing is inlined: the policy of the page allows files of its own origin only.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8080" } },
});
