// The sheet of what the first page has not. It is asked for once, beside the code of a page,
// which is drawn when both have come.
let coming: Promise<void> | undefined;

// more resolves when the sheet has come. One that cannot be loaded is asked for again by the
// next page.
export function more(): Promise<void> {
  coming ??= new Promise((come, fail) => {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = document.getElementById("app")!.dataset["more"]!;
    sheet.onload = () => come();
    sheet.onerror = () => {
      coming = undefined;
      sheet.remove();
      fail(new Error("A style sheet could not be loaded."));
    };
    document.head.append(sheet);
  });
  return coming;
}
