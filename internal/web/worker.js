// The service worker of the dashboard. It shows messages that the server has pushed, and
// opens their pages. It sees no requests: no page is below its own address.
self.addEventListener("push", (e) => {
  let m = {};
  try {
    m = e.data.json();
  } catch {
    /* a message without a text */
  }
  e.waitUntil(
    self.registration.showNotification(String(m.title || "Yardmaster"), {
      body: String(m.text || ""),
      tag: String(m.tag || ""),
      data: String(m.url || "/ui/"),
    }),
  );
});

self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  const to = new URL(e.notification.data, self.location.origin);
  if (to.origin !== self.location.origin) return;
  e.waitUntil(self.clients.openWindow(to.href));
});
