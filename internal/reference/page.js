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
