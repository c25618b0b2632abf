import { defineConfig } from "vitest/config";

export default defineConfig({
  // Relative: the page may stand under a path of its own (server.base_path).
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/headwater/server/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  test: { include: ["test/**/*.test.ts"], environment: "node" },
});
