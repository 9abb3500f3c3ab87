// The official MCP client against a server: with a token, and by itself
// through OAuth, where this program is also the person at the browser.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const base = process.env.YARD_URL;
const endpoint = new URL("/v1/mcp", base);

async function talk(transport, who) {
  const client = new Client({ name: "conformance", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert(tools.length > 50, `${tools.length} tools`);
  // The client checks every answer against the tool's output schema.
  const me = await client.callTool({ name: "account.me", arguments: {} });
  assert.equal(me.structuredContent.user.login, "ada");
  const none = await client.callTool({ name: "task.attempts", arguments: { id: "0199d3a4-5b6c-7d8e-9f01-23456789abcd" } });
  assert(none.isError && none.structuredContent.status === 404);
  for (const tool of tools.filter((t) => t.annotations.readOnlyHint && !(t.inputSchema.required ?? []).length)) {
    const answer = await client.callTool({ name: tool.name, arguments: {} });
    // 503 with a reason or a name of its own says what is not configured, such as the board of goals.
    const { status, reason, type } = answer.structuredContent;
    const unset = status === 503 && (reason || !type.endsWith("/problems/unavailable"));
    assert(!answer.isError || status < 500 || unset, `${tool.name}: ${JSON.stringify(answer)}`);
  }
  await assert.rejects(client.callTool({ name: "task.fly", arguments: {} }));
  await client.ping();
  await client.close();
  console.log(`the MCP client works ${who}: ${tools.length} tools`);
}

await talk(new StreamableHTTPClientTransport(endpoint, { requestInit: { headers: { Authorization: `Bearer ${process.env.YARD_TOKEN}` } } }), "with a token");

// A browser that knows no script: it keeps cookies and sends forms.
const jar = new Map();
async function visit(address, form) {
  const response = await fetch(new URL(address, base), {
    method: form ? "POST" : "GET",
    body: form && new URLSearchParams(form),
    redirect: "manual",
    headers: { accept: "text/html", origin: base, cookie: [...jar].map((c) => c.join("=")).join("; ") },
  });
  for (const set of response.headers.getSetCookie()) {
    const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
    jar.set(name, value);
  }
  const to = response.headers.get("location");
  if (!to) return { page: await response.text() };
  return to.startsWith("http") && !to.startsWith(base) ? { to: new URL(to) } : visit(to);
}

const plain = (text) => text.replaceAll("&#34;", '"').replaceAll("&#39;", "'").replaceAll("&amp;", "&").replaceAll("&#43;", "+");
function submit(page, fields) {
  // The form of the page itself, not the one that signs out.
  const [, action, inside] = [...page.matchAll(/<form [^>]*\baction="([^"]*)"[^>]*>([\s\S]*?)<\/form>/g)]
    .find(([, action]) => !action.startsWith("/auth/logout"));
  const form = Object.fromEntries([...inside.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map((m) => [m[1], plain(m[2])]));
  return visit(plain(action), { ...form, ...fields });
}

let registered, tokens, verifier, heard;
const provider = {
  redirectUrl: "http://127.0.0.1:7777/callback",
  clientMetadata: { client_name: "Conformance", redirect_uris: ["http://127.0.0.1:7777/callback"], token_endpoint_auth_method: "none" },
  state: () => "some state",
  clientInformation: () => registered,
  saveClientInformation: (c) => void (registered = c),
  tokens: () => tokens,
  saveTokens: (t) => void (tokens = t),
  codeVerifier: () => verifier,
  saveCodeVerifier: (v) => void (verifier = v),
  async redirectToAuthorization(url) {
    const login = await visit(url.href);
    const consent = await submit(login.page, { login: "ada", password: process.env.YARD_PASSWORD });
    ({ to: heard } = await submit(consent.page, { decision: "authorize" }));
  },
};
const transport = new StreamableHTTPClientTransport(endpoint, { authProvider: provider });
await assert.rejects(new Client({ name: "conformance", version: "1" }).connect(transport), UnauthorizedError);
assert.equal(heard.searchParams.get("state"), "some state");
assert.equal(heard.searchParams.get("iss"), base);
await transport.finishAuth(heard.searchParams.get("code"));
await talk(new StreamableHTTPClientTransport(endpoint, { authProvider: provider }), "through OAuth");
