// Asks a published OpenClaw package what its loop detection decides.
//
//   node ask.mjs RELEASE < cases.jsonl > answers.jsonl
//
// Each case (see cases.py) is played through the package's own agent loop with a scripted model and
// scripted tools. The line comes back as it was, with `release` and `expect` added:
//   expect.runs[i] = {run, actions: [{batch, tool, action, detector, count, paired?}], ended, aborted?}
// `action` is "warn" or "block" as the engine announced it, `batch` an index into the run's batches,
// `ended` is "critical_loop", "compaction_loop_persisted" or null.
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

const [, , release] = process.argv;
const here = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(process.env.LOOPSCAN_PACKAGES ?? path.join(here, "node_modules"), `openclaw-${release}`, "dist");
const batchesAreAdmitted = release !== "2026-6";
process.env.OPENCLAW_LOG_LEVEL ??= "silent";

const files = (await readdir(dist)).filter((name) => name.endsWith(".js") || name.endsWith(".mjs"));

/** Finds the built file whose name starts with `prefix` and whose text holds `text`. */
async function find(prefix, text) {
  for (const name of files.filter((file) => file.startsWith(prefix))) {
    const source = await readFile(path.join(dist, name), "utf8");
    if (source.includes(text)) return { url: pathToFileURL(path.join(dist, name)).href, source };
  }
  throw new Error(`${dist}: no file ${prefix}* with ${text}`);
}

/** Takes functions out of a built file by their own names: the export names are shortened. */
async function take(prefix, text, ...names) {
  const module = await import((await find(prefix, text)).url);
  const byName = new Map(Object.values(module).filter((item) => typeof item === "function").map((item) => [item.name, item]));
  return names.map((name) => byName.get(name) ?? (() => { throw new Error(`${prefix}*: no ${name}`); })());
}

const [Agent] = batchesAreAdmitted
  ? await take("agent-core-", "runAgentLoop", "Agent")
  : await take("session-manager-", "openClawAgentCoreRuntime", "Agent");
const BEFORE = ["agent-tools.before-tool-call-", "wrapToolWithBeforeToolCallHook"];
const [wrapTool] = await take(...BEFORE, "wrapToolWithBeforeToolCallHook");
const [listen] = await take("diagnostic-events-", "onInternalDiagnosticEvent", "onInternalDiagnosticEvent");
const [admit] = batchesAreAdmitted ? await take(...BEFORE, "admitToolCallBatch") : [];
const [setBatchHook, withLifecycle] = batchesAreAdmitted
  ? await take("internal-hooks-", "setInternalBeforeToolBatch", "setInternalBeforeToolBatch", "attachInternalToolBatchLifecycle")
  : [];

// The post-compaction guard is no export: its source is evaluated as it stands in the installed file.
const { source } = await find("embedded-agent-", "function createPostCompactionLoopGuard");
const begin = source.indexOf("//#region src/agents/embedded-agent-runner/post-compaction-loop-guard.ts");
const body = source.slice(begin, source.indexOf("/** Error raised", begin));
const nothing = () => {};
const createGuard = new Function("createSubsystemLogger", `${body}; return createPostCompactionLoopGuard;`)(
  () => ({ info: nothing, warn: nothing, error: nothing, debug: nothing }),
);

const announced = [];
listen((event) => { if (event.type === "tool.loop") announced.push(event); });

const tick = () => new Promise((resolve) => setImmediate(resolve));
const noTokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };
const usage = { ...noTokens, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const model = {
  id: "script", name: "script", api: "openai-completions", provider: "script", baseUrl: "http://127.0.0.1:9",
  reasoning: false, input: ["text"], cost: { ...noTokens }, contextWindow: 100_000, maxTokens: 1_000,
};

/** One model response as the agent loop wants it: a stream that starts and is done. */
function respond(content, stopReason) {
  const message = {
    role: "assistant", content, stopReason, usage, timestamp: Date.now(),
    api: model.api, provider: model.provider, model: model.id,
  };
  return {
    async *[Symbol.asyncIterator]() {
      yield { type: "start", partial: message };
      yield { type: "done", reason: stopReason, message };
    },
    result: async () => message,
  };
}

async function play(run, config, sessionKey) {
  const guard = batchesAreAdmitted
    ? createGuard({ enabled: config?.enabled !== false })
    : createGuard(config?.postCompactionGuard, { enabled: config?.enabled !== false });
  const scripted = new Map(run.batches.flatMap((batch) => (batch === "compaction" ? [] : batch)).map((call) => [call.id, call]));
  const actions = [];
  let position = 0;
  let aborted;
  let agent;

  const context = {
    sessionKey, sessionId: sessionKey, agentId: "main", loopDetection: config,
    ...(run.run ? { runId: run.run } : {}),
    onToolOutcome(outcome) {
      const verdict = guard.observe(outcome);
      if (!verdict.shouldAbort || aborted) return;
      aborted = { batch: position - 1, tool: verdict.toolName, count: verdict.count };
      agent.abort(new Error(verdict.message));
    },
  };
  const note = async () => {
    for (let i = 0; i < 4; i += 1) await tick();
    for (const event of announced.splice(0)) {
      const { toolName: tool, action, detector, count, pairedToolName: paired } = event;
      actions.push({ batch: position - 1, tool, action, detector, count, ...(paired ? { paired } : {}) });
    }
  };
  const execute = async (id) => {
    await tick(); // a real tool takes time, so that its siblings start before it is done
    const { outcome } = scripted.get(id);
    if ("error" in outcome) throw new Error(outcome.error);
    return structuredClone(outcome.result);
  };
  const tools = [...new Set([...scripted.values()].map((call) => call.tool))].map((name) =>
    wrapTool({ name, label: name, description: name, parameters: { type: "object", properties: {}, additionalProperties: true }, execute }, context),
  );

  agent = new Agent({
    initialState: { model, tools, systemPrompt: "", messages: [] },
    async streamFn() {
      await note();
      for (; run.batches[position] === "compaction"; position += 1) guard.armPostCompaction();
      const batch = run.batches[position];
      position += 1;
      if (!batch) return respond([{ type: "text", text: "." }], "stop");
      return respond(batch.map(({ id, tool, args }) => ({ type: "toolCall", id, name: tool, arguments: args })), "toolUse");
    },
  });
  if (batchesAreAdmitted) {
    const hook = async ({ calls }) => {
      const { commitReadyCalls, releaseSkippedCalls, ...answer } = await admit(calls, context);
      return commitReadyCalls && releaseSkippedCalls ? withLifecycle(answer, { commitReadyCalls, releaseSkippedCalls }) : answer;
    };
    setBatchHook(agent, config?.enabled === true ? hook : undefined);
  }
  await agent.prompt("go");
  await note();
  const last = JSON.stringify(agent.state.messages.at(-1)?.content ?? "");
  const stopped = last.includes("tool-loop recovery encountered another critical loop");
  const ended = aborted ? "compaction_loop_persisted" : stopped ? "critical_loop" : null;
  return { run: run.run ?? null, actions, ended, ...(aborted ? { aborted } : {}) };
}

let number = 0;
for await (const line of readline.createInterface({ input: process.stdin })) {
  const text = line.trim();
  if (!text) continue;
  const scenario = JSON.parse(text);
  const runs = [];
  number += 1;
  for (const run of scenario.runs) runs.push(await play(run, scenario.config, `case ${number}`));
  const answer = JSON.stringify({ release: release.replace("-", "."), expect: { runs } });
  // The case goes out letter by letter as it came in: JSON.stringify would respell -0, 1e400 and 2^53+1.
  process.stdout.write(`${text.slice(0, -1)},${answer.slice(1)}\n`);
}
process.stdout.write("", () => process.exit(0));
