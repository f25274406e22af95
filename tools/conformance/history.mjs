// Asks a published OpenClaw package about histories that its agent loop cannot be brought to: calls whose
// outcome never comes, comes late, or comes when the history has dropped the call.
//
//   node history.mjs RELEASE < cases.jsonl > answers.jsonl
//
// A case is {id, config, steps}: {ask: {tool, args, run}}, {call: {id, tool, args, run}} or {outcome: {id, result | error}}.
// The line comes back with `answers` added: per `ask` the verdict {detector, level, count, paired?}, or null.
import { readdir } from "node:fs/promises";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

const [, , release] = process.argv;
const here = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(process.env.LOOPSCAN_PACKAGES ?? path.join(here, "node_modules"), `openclaw-${release}`, "dist");
process.env.OPENCLAW_LOG_LEVEL = "silent";
const said = process.stdout.write.bind(process.stdout);
process.stdout.write = () => true; // the package logs to standard output; answers alone belong there

const file = (await readdir(dist)).find((name) => /^tool-loop-detection-(?!config)[\w-]+\.m?js$/.test(name));
const exported = Object.values(await import(pathToFileURL(path.join(dist, file)).href));
const named = (name) => exported.find((item) => typeof item === "function" && item.name === name);
const [record, settle, detect] = ["recordToolCall", "recordToolCallOutcome", "detectToolCallLoop"].map(named);
const scopeOf = (run) => (run ? { runId: run } : undefined);

for await (const line of readline.createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const { config, steps } = JSON.parse(line);
  const state = {};
  const calls = new Map();
  const answers = [];
  for (const { ask, call, outcome } of steps) {
    if (ask) {
      const found = detect(state, ask.tool, ask.args, config, scopeOf(ask.run));
      const { detector, level, count, pairedToolName: paired } = found;
      answers.push(found.stuck ? { detector, level, count, ...(paired ? { paired } : {}) } : null);
    } else if (call) {
      calls.set(call.id, call);
      record(state, call.tool, call.args, call.id, config, scopeOf(call.run));
    } else {
      const { tool, args, run } = calls.get(outcome.id);
      const came = "error" in outcome ? { error: new Error(outcome.error) } : { result: outcome.result };
      settle(state, { toolName: tool, toolParams: args, toolCallId: outcome.id, ...came, config, ...scopeOf(run) });
    }
  }
  said(`${line.trim().slice(0, -1)},${JSON.stringify({ release: release.replace("-", "."), answers }).slice(1)}\n`);
}
said("", () => process.exit(0));
