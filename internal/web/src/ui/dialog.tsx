// Dialog is a form or a text over the page. It is open while it is drawn.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

export function Dialog(p: { title: string; close: () => void; class?: string; children?: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null),
    id = useId();
  // As it is drawn: a letter that comes later is meant for it, and not for the page.
  useLayoutEffect(() => {
    const el = box.current!,
      from = document.activeElement;
    el.showModal();
    return () => {
      el.close();
      if (from instanceof HTMLElement) from.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={p.class}
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault();
        p.close();
      }}
    >
      <header>
        <h2 id={id}>{p.title}</h2>
        <button type="button" aria-label="Close" onClick={p.close}>
          ✕
        </button>
      </header>
      {p.children}
    </dialog>
  );
}
