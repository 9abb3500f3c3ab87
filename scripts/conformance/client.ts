// A program against the types that openapi-typescript makes of the document: it
// compiles, and talks to a server.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/api.js";

const api = createClient<paths>({
  baseUrl: process.env["YARD_URL"]!,
  headers: { Authorization: `Bearer ${process.env["YARD_TOKEN"]!}` },
});

const me = await api.GET("/v1/me");
assert.equal(me.data?.account?.login, "acme");

const made = await api.PUT("/v1/templates/{name}", {
  params: { path: { name: "nightly" } },
  body: { agent: "builtin" },
});
const template: components["schemas"]["Template"] | undefined = made.data;
assert.equal(template?.name, "nightly");

const tasks = await api.GET("/v1/tasks", { params: { query: { per_page: 5 } } });
assert.deepEqual(tasks.data?.data, []);
assert.equal(tasks.data?.next_cursor, null);

const refused = await api.GET("/v1/tasks/{id}/attempts", { params: { path: { id: "0199d3a4-5b6c-7d8e-9f01-23456789abcd" } } });
const problem: components["schemas"]["Problem"] | undefined = refused.error;
assert.equal(problem?.status, 404);
assert.equal(problem?.request_id, refused.response.headers.get("x-request-id"));
console.log("the TypeScript client works");
