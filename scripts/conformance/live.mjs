// Starts a server, sets it up, and runs every client against it:
// live.mjs PROGRAM GO-CLIENT
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [program, goClient] = process.argv.slice(2);
const password = "a long password";
const setup = `${"c".repeat(40)}`;
const data = mkdtempSync(join(tmpdir(), "conformance-"));
const port = await new Promise((resolve) => {
  const free = createServer().listen(0, "127.0.0.1", () => {
    const { port } = free.address();
    free.close(() => resolve(port));
  });
});
const url = `http://127.0.0.1:${port}`;
const server = spawn(program, ["serve", "--data", data, "--listen", `127.0.0.1:${port}`, "--setup-token", setup], { stdio: ["ignore", "ignore", openSync(join(data, "log"), "a")] });
// A pipe would fill while a client is waited for, and the server would stand still.

async function answers() {
  for (const until = Date.now() + 60_000; ; ) {
    try {
      if ((await fetch(`${url}/healthz`)).ok) return;
    } catch (error) {
      if (Date.now() > until || server.exitCode !== null) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function post(path, body, headers) {
  const response = await fetch(url + path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

function run(name, command, args, env, check = () => true) {
  const done = spawnSync(command, args, { env: { ...process.env, ...env }, encoding: "utf8", timeout: 120_000, maxBuffer: 64 << 20 });
  if (done.status !== 0 || !check(done.stdout)) {
    throw new Error(`${name} fails (${done.status ?? done.error}):\n${done.stdout}\n${done.stderr}`);
  }
  return done.stdout;
}

try {
  await answers();
  const made = await post(`/setup/${setup}`, { login: "ada", email: "ada@example.com", password, account: "acme" });
  const cookie = made.headers.get("set-cookie").split(";")[0];
  const { mintable_scopes } = await (await fetch(`${url}/v1/tokens`, { headers: { cookie } })).json();
  const { token } = await (await post("/v1/tokens", { name: "conformance", scopes: mintable_scopes, expires_in_days: 1 }, { cookie, origin: url })).json();
  const env = { YARD_URL: url, YARD_TOKEN: token, YARD_PASSWORD: password };

  process.stdout.write(run("the TypeScript client", "node", ["generated/client.js"], env));
  process.stdout.write(run("the Go client", goClient, [], env));
  process.stdout.write(run("the MCP client", "node", ["mcp.mjs"], env));
  const inspect = (...args) => JSON.parse(run("the MCP inspector", "npx", ["--no-install", "mcp-inspector", "--cli", `${url}/v1/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${token}`, ...args], env));
  const { tools } = inspect("--method", "tools/list");
  const me = inspect("--method", "tools/call", "--tool-name", "account.me");
  if (me.isError || me.structuredContent.user.login !== "ada") throw new Error(JSON.stringify(me));
  console.log(`the MCP inspector works: ${tools.length} tools`);
} catch (error) {
  console.error(readFileSync(join(data, "log"), "utf8").slice(-20_000));
  throw error;
} finally {
  server.kill("SIGTERM");
  await new Promise((resolve) => (server.exitCode !== null ? resolve() : server.once("exit", resolve)));
  rmSync(data, { recursive: true, force: true });
}
