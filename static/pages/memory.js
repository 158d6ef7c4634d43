"use strict";
// The memory page: its keys, the editor in place, and comparing by Shift. What is shown and what
// is open stands in the address, so asking for it again keeps it.
(() => {
  const { one, all, on, keys, post, say, settle, refresh, toast } = window.studio;
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

  // ---- several lines at once: ticks are kept by id, since a region may be rendered anew
  const ticked = new Set();
  let last = null;
  const boxes = () => all("#rows input[name=line]");
  const count = () => {
    const bar = one("#several"), n = ticked.size;
    if (!bar) return;
    const pinned = boxes().filter((box) => box.checked && box.hasAttribute("data-pinned")).length;
    one("#ticked").textContent = n ? `${n} line${n > 1 ? "s" : ""} ticked` : "Tick lines to work on several at once";
    bar.classList.toggle("idle", !n);
    one("[data-what=pin]", bar).hidden = n > 0 && pinned === n;
    one("[data-what=unpin]", bar).hidden = !pinned;
    main().classList.toggle("ticking", n > 0);
  };
  const hold = () => {
    const there = boxes();
    for (const id of [...ticked]) if (!there.some((box) => box.value === id)) ticked.delete(id);
    for (const box of there) box.checked = ticked.has(box.value);
    count();
  };
  const tick = (box, range) => {
    const of = boxes(), from = range ? of.findIndex((each) => each.value === last) : -1, to = of.indexOf(box);
    const hit = from < 0 ? [box] : of.slice(Math.min(from, to), Math.max(from, to) + 1);
    for (const each of hit) { each.checked = box.checked; if (box.checked) ticked.add(each.value); else ticked.delete(each.value); }
    last = box.value;
    count();
    say(`${ticked.size} ticked`);
  };
  const untick = () => { ticked.clear(); hold(); };
  const copy = () => {
    const text = boxes().filter((box) => box.checked).map((box) => one(".words", box.closest("[data-row]")).textContent).join("\n");
    navigator.clipboard?.writeText(text).then(() => toast(`Copied ${ticked.size} line${ticked.size > 1 ? "s" : ""}.`), () => toast("The browser did not allow copying."));
  };
  const work = async (form, button) => {
    if (ticked.size > Number(form.dataset.most)) { toast(`${ticked.size} lines are ticked; tick at most ${form.dataset.most} at once.`); return; }
    if (button.dataset.what === "copy" && ticked.size) { copy(); return; }
    const at = rows().findIndex((each) => one("input[name=line]:checked", each));
    form.setAttribute("aria-busy", "true");
    try {
      if (await settle(await post(button.formAction, new FormData(form, button)))) { untick(); focus(rows()[Math.min(Math.max(at, 0), rows().length - 1)]); }
    } catch { toast("The server cannot be reached. Nothing was changed."); }
    finally { form.removeAttribute("aria-busy"); }
  };
  const several = (what) => (ticked.size ? press(`#several [data-what=${what}]:not([hidden])`) : null);
  let shifted = false;
  on("click", (e) => { if (e.target.closest?.(".tick")) shifted = e.shiftKey; }, true);
  on("change", (e) => { if (e.target.matches("#rows input[name=line]")) { tick(e.target, shifted); shifted = false; } });
  on("reset", (e) => { if (e.target.id === "several") { e.preventDefault(); untick(); } });

  // ---- listeners
  on("submit", (e) => { if (e.target.id === "several") { e.preventDefault(); work(e.target, e.submitter); } });
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
    const answer = await window.studio.get(url);
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

  window.studio.hooks.swap.push(hold);
  for (const box of boxes()) if (box.checked) ticked.add(box.value);
  count();

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
    e: line("[data-edit]"), p: () => several("pin") || several("unpin") || line("[data-pin]")(), Delete: () => several("forget") || line("[data-forget]")(), o: line("[data-source]"),
    x: () => toggle(false), X: () => toggle(true), c: () => several("copy"),
    u: () => press("[data-undo]"), a: () => { const note = one("#add-note"); if (note) { note.open = true; focus(one("#note-text")); } },
    d: () => press("[data-key=d]"), r: () => press("[data-key=r]"), l: () => press("[data-key=l]"),
    "/": () => focus(one("#memory-q")),
  });
  const toggle = (range) => {
    const box = row() && one("input[name=line]", row());
    if (box) { box.checked = range || !box.checked; tick(box, range); }
  };
  const reflection = (by) => {
    const here = Number(one("#shown-title .num")?.textContent);
    const of = all(".rev[data-cause=reflect]").map((each) => [Number(each.dataset.number), each]).filter(([number]) => (number - here) * by > 0);
    of.sort(([a], [b]) => (a - b) * by)[0]?.[1].click();
  };
  const changes = () => rows().filter((each) => each.hasAttribute("data-change"));

  // How far this person has looked; what was new when they came stays marked while they are here.
  let looked = 0;
  const look = async () => {
    const form = one("#looked"), latest = +one("#head").dataset.latest;
    if (!form || document.hidden || latest <= looked || new URLSearchParams(location.search).has("rev")) return;
    looked = latest;
    try { if (!(await post(form.action, { through: latest }, { keepalive: true })).ok) looked = 0; } catch { looked = 0; }
  };
  window.studio.hooks.swap.push(look);
  document.addEventListener("visibilitychange", look);
  look();

  // A deep link to a line that is not shown here leads to where it stands, or last stood.
  const wanted = /^#line-([0-9a-f-]{36})$/.exec(location.hash)?.[1];
  if (wanted && !document.getElementById(`line-${wanted}`) && !location.search) location.replace(`/memory/lines/${wanted}/`);
  else if (editor()) focus(one("#edit-text"));
  else if (wanted) focus(document.getElementById(`line-${wanted}`));
})();
