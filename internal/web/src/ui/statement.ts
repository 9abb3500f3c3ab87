// Signed statements about merges, read and verified as the command line does it: a DSSE
// envelope with an in-toto statement, by Ed25519 (docs/provenance.md).
import { bytesOf } from "../push";

type Run = {
  id: string;
  task_id: string;
  kind: string;
  outcome: string | null;
  template: string;
  agent: string;
  agent_version: string | null;
  models: string[];
  box_id: string;
  isolation: string | null;
  isolation_holds: string[];
  prompt_sha256: string | null;
};

export type Statement = {
  subject: { name: string; digest: Record<string, string> }[];
  predicate: {
    pull_request: { repo: string; number: number; head_sha: string; base_ref: string };
    merged_at: string;
    merged_by: string | null;
    asked: { requested_by: string | null; created_by: string; task_id: string; verdict: string | null } | null;
    runs: Run[];
    reviews: { head_sha: string; state: string; verdict: string | null; template: string }[];
    approvals: { kind: string; state: string; by: string | null; at: string | null; head_sha: string }[];
    checks: { state: string; reruns: { job: string }[] };
    spend: { usd: string | null; unpriced_calls: number };
  };
};

type Envelope = { payloadType: string; payload: string; signatures: { sig: string }[] };

const kind = "application/vnd.in-toto+json",
  form = "urn:yardmaster:merge:v1";

// statementOf reads what an envelope says, signed or not; nothing if it is none of these.
export function statementOf(envelope: string): Statement | undefined {
  try {
    const e = JSON.parse(envelope) as Envelope,
      s = JSON.parse(new TextDecoder().decode(bytesOf(e.payload)));
    return e.payloadType === kind && s.predicateType === form ? s : undefined;
  } catch {
    return undefined;
  }
}

// verify tells whether a key has signed an envelope. It fails with a text for people.
export async function verify(envelope: string, key: string): Promise<boolean> {
  if (!globalThis.crypto?.subtle) throw new Error("This browser checks signatures over https alone.");
  let pub: CryptoKey;
  try {
    const raw = bytesOf(key.trim());
    if (raw.length !== 32) throw new Error();
    pub = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  } catch (e) {
    if (e instanceof DOMException && e.name === "NotSupportedError")
      throw new Error("This browser does not know the signature.");
    throw new Error("A key has 43 characters of base64url.");
  }
  const e = JSON.parse(envelope) as Envelope,
    payload = bytesOf(e.payload),
    head = new TextEncoder().encode(`DSSEv1 ${e.payloadType.length} ${e.payloadType} ${payload.length} `),
    signed = new Uint8Array(head.length + payload.length);
  signed.set(head);
  signed.set(payload, head.length);
  for (const s of e.signatures) if (await crypto.subtle.verify("Ed25519", pub, bytesOf(s.sig), signed)) return true;
  return false;
}
