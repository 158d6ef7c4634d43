"use strict";
// The memory page: its keys, the editor in place, and comparing by Shift. What is shown and what
// is open stands in the address, so asking for it again keeps it.
(() => {
  const { one, all, on, keys, post, settle, refresh, toast } = window.studio;
  const main = () => one("#rows");
  if (!main()) return;

  const go = (url) => { history.replaceState(null, "", url); return refresh(); };
  const rows = () => all("#rows [data-row]").filter((row) => row.offsetParent);
  const row = () => document.activeElement?.closest?.("[data-row]");
  const focus = (target) => { target?.focus({ preventScroll: true }); target?.scrollIntoView({ block: "nearest" }); };
  const step = (by, of = rows()) => {
    const at = of.indexOf(row());
    focus(of[at < 0 ? (by > 0 ? 0 : of.length - 1) : Math.min(Math.max(at + by, 0), of.length - 1)]);
  };
  const press = (selector, root = document) => { const hit = root && one(selector, root); hit?.click(); return hit; };

  // ---- the editor
  const editor = () => one("#editor");
  const dirty = () => editor() && one("#edit-text").value !== one("#edit-text").defaultValue;
  const begin = async (link) => {
    if (dirty() && editor().dataset.line !== link.closest("[data-row]").id.slice(5)) {
      focus(one("#edit-text"));
      toast("Save or close the open editor first.");
      return;
    }
    await go(link.href);
    const field = one("#edit-text");
    if (!field) return;
    focus(field);
    field.setSelectionRange(field.value.length, field.value.length);
  };
  const close = async () => {
    const open = editor();
    if (!open) return;
    const line = open.closest("[data-row]").id;
    open.removeAttribute("hx-morph-skip");
    await go(open.dataset.close || location.pathname);
    focus(document.getElementById(line) || rows()[0]);
  };
  const save = async (button) => {
    const form = one("#edit-form"), at = rows().indexOf(button.closest("[data-row]"));
    form.setAttribute("aria-busy", "true");
    try {
      const answer = await post(button.formAction, new FormData(form, button));
      if (answer.status === 204) {
        const open = editor();
        open.removeAttribute("hx-morph-skip");
        history.replaceState(null, "", open.dataset.close || location.pathname);
      }
      const plain = !(answer.headers.get("Content-Type") || "").startsWith("text/html");
      if (await settle(answer, plain ? null : one("#edit-errors"))) focus(rows()[Math.min(at, rows().length - 1)]);
    } catch { toast("The server cannot be reached. Nothing was changed; what you typed is still here."); }
    finally { form.removeAttribute("aria-busy"); }
  };

  // ---- listeners
  on("submit", (e) => { if (e.target.id === "edit-form") { e.preventDefault(); save(e.submitter); } });
  on("click", (e) => {
    const hit = e.target.closest?.("a[data-edit],a[data-close-editor],a[data-confirm],a.rev[data-number],[data-forget]");
    if (!hit) return;
    if (hit.matches("[data-forget]")) { waiting = rows().indexOf(hit.closest("[data-row]")); return; }
    if (e.ctrlKey || e.metaKey) return;
    if (hit.matches(".rev")) { if (e.shiftKey) { e.preventDefault(); compare(hit.dataset.number); } return; }
    e.preventDefault();
    if (hit.matches("[data-edit]")) begin(hit);
    else if (hit.matches("[data-close-editor]")) close();
    else confirm(hit.href);
  });
  const compare = (number) => {
    const other = one(".rev[aria-current][data-number]")?.dataset.number || number;
    const [low, high] = [number, other].map(Number).sort((a, b) => a - b);
    location.search = new URLSearchParams({ rev: high, with: low, view: "diff" });
  };
  const confirm = async (url) => {
    const answer = await fetch(url, { headers: { "HX-Request": "true" } });
    if (!answer.ok) { location.href = url; return; }
    one("#confirm-body").innerHTML = await answer.text();
    one("#confirm-title").textContent = one("#confirm-body [data-title]")?.dataset.title || "Restore";
    one("#confirm").showModal();
    one("#confirm-title").focus();
  };
  on("studio:done", (e) => {
    if (e.target.closest("#confirm")) go(location.pathname);
    if (e.target.closest("#add-note")) { e.target.reset(); one("#add-note").open = false; focus(rows().at(-1)); }
  });

  // A line that was forgotten takes the focus with it: the next one gets it.
  let waiting = -1;
  window.studio.hooks.swap.push(() => {
    if (waiting < 0 || document.activeElement !== document.body) return;
    const of = rows();
    focus(of[Math.min(waiting, of.length - 1)]);
    waiting = -1;
  });

  on("keydown", (e) => {
    if (e.target.id === "edit-text" && e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); press("#editor .primary"); }
    else if (e.key === "Escape" && e.target.closest?.("#editor")) { e.preventDefault(); e.stopPropagation(); close(); }
  }, true);
  const line = (selector) => () => { const here = row(); if (here) press(selector, here); };
  Object.assign(keys, {
    "[": () => press("a[rel=prev]"), "]": () => press("a[rel=next]"), "{": () => reflection(-1), "}": () => reflection(1),
    j: () => step(1), k: () => step(-1),
    n: () => step(1, changes()), N: () => step(-1, changes()),
    e: line("[data-edit]"), p: line("[data-pin]"), Delete: line("[data-forget]"), o: line("[data-source]"),
    u: () => press("[data-undo]"), a: () => { const note = one("#add-note"); if (note) { note.open = true; focus(one("#note-text")); } },
    d: () => press("[data-key=d]"), r: () => press("[data-key=r]"), l: () => press("[data-key=l]"),
    "/": () => focus(one("#memory-q")),
  });
  const reflection = (by) => {
    const here = Number(one("#shown-title .num")?.textContent);
    const of = all(".rev[data-cause=reflect]").map((each) => [Number(each.dataset.number), each]).filter(([number]) => (number - here) * by > 0);
    of.sort(([a], [b]) => (a - b) * by)[0]?.[1].click();
  };
  const changes = () => rows().filter((each) => each.hasAttribute("data-change"));

  // A deep link to a line that is not shown here leads to where it stands, or last stood.
  const wanted = /^#line-([0-9a-f-]{36})$/.exec(location.hash)?.[1];
  if (wanted && !document.getElementById(`line-${wanted}`) && !location.search) location.replace(`/memory/lines/${wanted}/`);
  else if (editor()) focus(one("#edit-text"));
  else if (wanted) focus(document.getElementById(`line-${wanted}`));
})();
