// Messages to this browser. They come through the browser's own service, encrypted, to a
// service worker. Its address is the one trusted type of the dashboard.
const address = "/ui/a/worker.js";

export const canPush = () => "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

// bytesOf reads base64, of either alphabet.
export function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

let policy: { createScriptURL(s: string): string } | undefined;

function trusted(): string {
  const types = (globalThis as any).trustedTypes;
  if (!types) return address;
  policy ??= types.createPolicy("worker", {
    createScriptURL: (s: string) => {
      if (s !== address) throw new TypeError("no other script");
      return s;
    },
  });
  return policy!.createScriptURL(address);
}

// subscribe asks the person and the browser, and returns what the server has to know.
export async function subscribe(
  publicKey: string,
): Promise<{ endpoint: string; keys: { auth: string; p256dh: string } }> {
  if ((await Notification.requestPermission()) !== "granted")
    throw new Error("This browser does not let the page show messages. Its settings for this site say so.");
  const worker = await navigator.serviceWorker.register(trusted());
  const s = (
    await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(publicKey) })
  ).toJSON();
  return { endpoint: s.endpoint ?? "", keys: { auth: s.keys?.["auth"] ?? "", p256dh: s.keys?.["p256dh"] ?? "" } };
}

// unsubscribe ends the messages to this browser.
export async function unsubscribe(): Promise<void> {
  if (!canPush()) return;
  for (const r of await navigator.serviceWorker.getRegistrations())
    await (await r.pushManager.getSubscription())?.unsubscribe();
}
