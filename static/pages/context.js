"use strict";
// The context pages: fold blocks, walk requests and blocks by key. What is open stands in the
// address, so that asking for the page again, as updates do, brings the same blocks open.
(() => {
  const { one, all, keys, toast } = window.studio;
  const folds = () => all("button.fold");
  const show = (fold, open) => {
    fold.setAttribute("aria-expanded", String(open));
    fold.value = open ? "" : fold.dataset.block;
    document.getElementById(fold.getAttribute("aria-controls")).hidden = !open;
  };
  const note = () => {
    const url = new URL(location.href);
    url.searchParams.delete("open");
    const open = folds().filter((fold) => fold.getAttribute("aria-expanded") === "true").map((fold) => fold.dataset.block);
    if (open.length) url.searchParams.set("open", open.join(","));
    history.replaceState(history.state, "", url);
  };
  document.addEventListener("click", (event) => {
    const fold = event.target.closest?.("button.fold");
    if (!fold || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(fold, fold.getAttribute("aria-expanded") !== "true");
    note();
  });
  const copy = async (url) => {
    try {
      const answer = await fetch(url);
      if (!answer.ok) throw new Error(answer.status);
      await navigator.clipboard.writeText(await answer.text());
      toast("Copied.");
    } catch { toast("It could not be copied. Open the link to see the text."); }
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-copy-url]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    copy(link.href);
  });
  const walk = (by) => (event) => {
    const rows = folds(), at = rows.indexOf(document.activeElement);
    if (!rows.length) return;
    event.preventDefault();
    rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))].focus();
  };
  const focus = (selector) => (event) => {
    const field = one(selector);
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.scrollIntoView({ block: "nearest" });
  };
  Object.assign(keys, {
    j: walk(1),
    k: walk(-1),
    a: () => {
      const rows = folds(), open = rows.some((fold) => fold.getAttribute("aria-expanded") !== "true");
      rows.forEach((fold) => show(fold, open));
      note();
    },
    "[": () => one("a[rel=prev]")?.click(),
    "]": () => one("a[rel=next]")?.click(),
    d: focus("#against"),
    w: focus("#where"),
  });
})();
