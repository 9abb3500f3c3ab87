"use strict";
// Leaves in the list what has every word of the search in its id, title or path.
const search = document.getElementById("search");
const entries = [...document.querySelectorAll("nav li")].map((li) => {
  const link = li.querySelector("a");
  const path = document.getElementById(link.hash.slice(1))?.querySelector(".route code")?.textContent ?? "";
  return { li, text: `${link.textContent} ${link.title} ${path}`.toLowerCase() };
});
const groups = [...document.querySelectorAll("nav .group")];
const open = groups.map((group) => group.open);

search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  document.querySelector("nav").classList.toggle("searching", words.length > 0);
  for (const { li, text } of entries) {
    li.hidden = !words.every((word) => text.includes(word));
    if (!li.hidden) found++;
  }
  groups.forEach((group, i) => {
    group.hidden = !group.querySelector("li:not([hidden])");
    group.open = words.length > 0 || open[i];
  });
  document.getElementById("none").hidden = found > 0;
});

search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") document.querySelector("nav li:not([hidden]) a")?.click();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== search && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    search.focus();
  }
});

// On a phone the contents fold away once something was chosen there.
document.querySelector("nav").addEventListener("click", (event) => {
  if (event.target.closest("li a")) document.getElementById("menu").checked = false;
});

function button(kind, text, label) {
  const b = document.createElement("button");
  b.type = "button";
  b.className = kind;
  b.textContent = text;
  if (label) b.setAttribute("aria-label", label);
  return b;
}

// Samples and examples can be copied.
for (const pre of document.querySelectorAll("main pre")) {
  const block = document.createElement("div");
  block.className = "block";
  pre.replaceWith(block);
  const copy = button("copy", "Copy");
  block.append(pre, copy);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
    } catch {
      // no secure context: what is marked can be copied by hand
      getSelection().selectAllChildren(pre);
      if (!document.execCommand("copy")) return;
    }
    copy.textContent = "Copied";
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 2000);
  });
}

// A schema that a table refers to opens in place, made when it is asked for.
function openable(within) {
  for (const link of within.querySelectorAll('td a[href^="#schema-"]')) {
    const row = link.closest("tr");
    const table = document.querySelector(`${CSS.escape ? "#" + CSS.escape(link.hash.slice(1)) : link.hash} table`);
    if (!table || row.closest("table") === table) continue;
    const open = button("open", "+", `Show the members of ${link.textContent} here`);
    open.setAttribute("aria-expanded", "false");
    link.after(open);
    let inside = null;
    open.addEventListener("click", () => {
      const show = open.getAttribute("aria-expanded") !== "true";
      if (show && !inside) {
        const copy = table.cloneNode(true);
        for (const old of copy.querySelectorAll(".open, .inside")) old.remove();
        inside = document.createElement("tr");
        inside.className = "inside";
        const cell = document.createElement("td");
        cell.colSpan = 3;
        cell.append(copy);
        inside.append(cell);
        row.after(inside);
        openable(copy);
      }
      inside.hidden = !show;
      open.setAttribute("aria-expanded", String(show));
      open.textContent = show ? "−" : "+";
    });
  }
}
openable(document.querySelector("main"));
