"use strict";
// What the chat page has besides talking: the request to come, what markers covered, the panel's
// folds, width and filter, renaming, and sending an earlier message anew. In a window of its own
// the panel has this file alone.
(() => {
  const { one, all, on, memory, hooks, keys, acts, post, settle, say } = window.studio;
  const SVG = "http://www.w3.org/2000/svg";
  const drawn = (name, attributes) => { const made = document.createElementNS(SVG, name); for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value); return made; };
  const short = (n) => (n < 1000 ? `${n}` : n < 999500 ? `${+(n / 1000).toFixed(n < 99950 ? 1 : 0)}k` : `${+(n / 1e6).toFixed(1)}M`);

  // ---- the request to come
  const next = one("#next");
  let asked = 0, later = 0, missing = false;
  const brief = { instructions: "system", message: "messages", reminder: "hints", prompt: "new" };
  const label = (block) => brief[block.kind] || block.kind;
  const ring = (share) => {
    const svg = drawn("svg", { viewBox: "0 0 24 24" }), length = 2 * Math.PI * 10;
    svg.append(drawn("circle", { class: "all", cx: 12, cy: 12, r: 10 }), drawn("circle", { cx: 12, cy: 12, r: 10, "stroke-dasharray": `${Math.min(1, share) * length} ${length}` }));
    return svg;
  };
  const bar = (blocks, whole) => {
    const svg = drawn("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
    let at = 0;
    for (const block of blocks) {
      const width = 100 * block.tokens / whole;
      svg.append(drawn("rect", { x: at, width, height: 8, "data-kind": block.kind }));
      at += width;
    }
    return svg;
  };
  const part = (block) => {
    const made = document.createElement("span"), spot = drawn("svg", { viewBox: "0 0 8 8", "aria-hidden": "true" });
    spot.append(drawn("rect", { width: 8, height: 8, rx: 2, "data-kind": block.kind }));
    made.append(spot, `${label(block)} ${short(block.tokens)}`);
    return made;
  };
  const draw = (found) => {
    const { total, window: room, fits, fix, blocks } = found, share = room ? total / room : 0;
    const tight = fits === false ? "over" : share >= 0.8 ? "high" : "";
    next.dataset.level = tight;
    one("#next-ring").replaceChildren(...(room ? [ring(share)] : []));
    one("#next-words").textContent = `next ${short(total)}${room ? ` / ${short(room)}` : ""}${fits === false ? " · will not fit" : ""}${fix && tight ? ` · ${fix}` : ""}`;
    one("#next-bar").replaceChildren(bar(blocks, Math.max(total, room && fits === false ? room : total, 1)));
    one("#next-parts").replaceChildren(...blocks.filter((block) => block.tokens).map(part));
    next.setAttribute("aria-label", `Next request: about ${total} tokens${room ? ` of ${room}` : ""}${fits === false ? ", which will not fit" : ""}. ${blocks.map((block) => `${label(block)} ${block.tokens}`).join(", ")}. Look at it`);
    next.hidden = false;
  };
  const foresee = async () => {
    if (!next || missing || document.hidden) return;
    const mine = ++asked;
    try {
      const answer = await post(next.dataset.url, { draft: one("#message").value });
      if (mine !== asked) return;
      if (answer.ok && !answer.redirected) draw(await answer.json()); else missing = answer.status === 404;
    } catch { /* the next key asks again */ }
  };
  const soon = () => { clearTimeout(later); later = setTimeout(foresee, 400); };
  let mark = "";
  const moved = () => {
    const now = `${one("#gauges")?.dataset.etag} ${one("#title")?.dataset.etag}`;
    if (now !== mark) { mark = now; soon(); }
  };

  // ---- which messages a marker is about
  let bracketed = null;
  const bracket = (marker) => {
    if (marker === bracketed) return;
    bracketed = marker;
    const first = marker ? +marker.dataset.first : 1, last = marker ? +marker.dataset.last : 0;
    for (const entry of all("#log [data-position]")) {
      const at = +entry.dataset.position;
      entry.classList.toggle("bracketed", first <= at && at <= last);
    }
  };
  const over = (e) => bracket(e.target.closest?.(".marker[data-first]") || document.activeElement?.closest?.(".marker[data-first]") || null);

  // ---- the panel: folds, filter, width
  const folds = () => memory.get("om-folds") || {};
  const fold = () => { const kept = folds(); for (const each of all("#panel > section > .fold")) if (kept[each.id] === false && !each.dataset.kept) { each.open = false; each.dataset.kept = ""; } };
  on("toggle", (e) => {
    if (!e.target.matches?.("#panel > section > .fold")) return;
    if (folds()[e.target.id] !== e.target.open) memory.set("om-folds", { ...folds(), [e.target.id]: e.target.open });
  }, true);
  const sieve = () => {
    const form = one("#sieve");
    if (!form) return;
    form.hidden = !one("#observations .line");
    const text = one("#sieve-text").value.trim().toLowerCase(), kinds = new Set(all("#sieve :checked").map((box) => box.value));
    const whole = !text && kinds.size === 3;
    for (const line of all("#observations .line")) {
      const kind = line.dataset.kind === "done" || line.dataset.kind === "plain" ? "low" : line.dataset.kind;
      line.toggleAttribute("data-sieved", !whole && !(kinds.has(kind) && line.querySelector(".statement").textContent.toLowerCase().includes(text)));
    }
  };
  const split = one("#split"), studio = one("#studio");
  const widen = (width, keep = true) => {
    const to = Math.round(Math.min(640, Math.max(320, width)));
    studio.style.setProperty("--panel", `${to}px`);
    split.setAttribute("aria-valuenow", String(to));
    if (keep) memory.set("om-panel-width", to);
  };
  if (split) {
    split.hidden = false;
    widen(memory.get("om-panel-width") || 392, false);
    split.addEventListener("pointerdown", (e) => { split.setPointerCapture(e.pointerId); e.preventDefault(); });
    split.addEventListener("pointermove", (e) => { if (split.hasPointerCapture(e.pointerId)) widen(innerWidth - e.clientX); });
    split.addEventListener("dblclick", () => widen(392));
    split.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: 16, ArrowRight: -16 }[e.key], to = { Home: 640, End: 320 }[e.key];
      if (by || to) { e.preventDefault(); widen(to || +split.getAttribute("aria-valuenow") + by); }
    });
  }

  // ---- renaming, and sending an earlier message anew
  const rename = () => {
    const dialog = one("#rename"), button = one("[data-rename]");
    if (!dialog || !button) return;
    one("form", dialog).elements.title.value = button.dataset.title;
    one("#rename-errors").replaceChildren();
    dialog.showModal();
    one("form", dialog).elements.title.select();
  };
  const edit = (turn, text) => {
    const field = one("#message");
    if (!field) return;
    one("#again").value = turn;
    one("#editing").hidden = false;
    field.value = text;
    field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const unedit = () => {
    one("#again").value = "";
    one("#editing").hidden = true;

    one("#message").value = "";
    one("#message").focus();
  };
  const said = (turn) => one(`#log [data-turn="${CSS.escape(turn)}"] > .words`)?.textContent || "";
  const resend = async () => {
    const field = one("#message"), alert = one("#refusal");
    alert.hidden = true;
    try {
      const answer = await post(one("#composer").action, { again: one("#again").value, text: field.value });
      if (answer.ok) { memory.set(`om-draft-${document.body.dataset.own}`, ""); await settle(answer); return; }
      alert.textContent = await answer.text();
    } catch { alert.textContent = "The server cannot be reached. Nothing was sent."; }
    alert.hidden = false;
  };
  window.chatEditing = { on: () => Boolean(one("#again")?.value), send: resend };

  // ---- a message that a link leads to may lie before the window
  const sought = async () => {
    const at = +(/^#message-(\d+)$/.exec(location.hash)?.[1] || 0);
    if (!at || !one("#log")) return;
    const entries = all("#log [data-position]");
    const target = one(`#message-${at}`) || entries.filter((entry) => +entry.dataset.position >= at)[0];
    // Before the page's own window: where nothing is loaded, or what is loaded ends before it.
    if (!one(`#message-${at}`) && one("#earlier").dataset.from !== `${at}` && entries.length && at < +one("#entries").dataset.first) { location.replace(`?from=${at}#message-${at}`); return; }
    target?.scrollIntoView({ block: "center" });
    (target?.closest("[data-entry]") || target)?.focus?.({ preventScroll: true });
  };

  // ---- what is new to this person, and how far they have read
  const news = () => {
    const from = +document.body.dataset.new, first = from && all("#log [data-position]").find((entry) => +entry.dataset.position >= from);
    for (const entry of all("#log .news-begin")) if (entry !== first) entry.classList.remove("news-begin");
    if (first) first.classList.add("news-begin");
  };
  let read = 0, reading = 0;
  const reads = () => {
    const log = one("#log");
    if (!log || document.hidden || log.scrollHeight - log.scrollTop - log.clientHeight >= 80) return;
    clearTimeout(reading);
    reading = setTimeout(async () => {
      const last = +one("#entries").dataset.last;
      if (last <= read || document.hidden) return;
      read = last;
      try { if (!(await post(`/chat/${document.body.dataset.thread}/looked`, { through: last }, { keepalive: true })).ok) read = 0; } catch { read = 0; }
    }, 600);
  };
  const seen = () => { document.body.dataset.new = ""; one("#news")?.remove(); news(); };

  hooks.swap.push(() => { fold(); sieve(); moved(); news(); reads(); if (bracketed) { const again = one(`#${CSS.escape(bracketed.id)}`); bracketed = null; bracket(again); } });
  acts.unedit = () => unedit();
  Object.assign(keys, { e: () => { const entry = document.activeElement?.closest?.("[data-turn]"); if (entry) edit(entry.dataset.turn, said(entry.dataset.turn)); } });
  on("input", (e) => { if (e.target.id === "message") soon(); if (e.target.closest("#sieve")) sieve(); });
  on("submit", (e) => {
    if (e.target.id === "sieve") e.preventDefault();
    if (e.target.id === "news") { e.preventDefault(); post(e.target.action).catch(() => {}); seen(); (one("#message") || one("#log")).focus(); }
  });
  on("scroll", (e) => { if (e.target.id === "log") reads(); }, true);
  on("mouseover", over);
  on("focusin", over);
  on("click", (e) => {
    const hit = e.target.closest?.("[data-rename],[data-edit],[data-popout]");
    if (!hit || e.ctrlKey || e.metaKey) return;
    if (hit.dataset.edit) { e.preventDefault(); edit(hit.dataset.edit, said(hit.dataset.edit)); }
    else if (hit.matches("[data-popout]")) { e.preventDefault(); window.open(hit.href, "om-panel", "width=480,height=900"); }
    else rename();
  });
  on("click", (e) => { if (e.target.closest?.("a[data-do=unedit]")) e.preventDefault(); });
  on("keydown", (e) => {
    if (e.key === "F2") { e.preventDefault(); rename(); }
    else if (e.target.id === "message" && e.key === "ArrowUp" && !e.target.value) {
      const turns = all("#log [data-turn]"), last = turns[turns.length - 1];
      if (last) { e.preventDefault(); edit(last.dataset.turn, said(last.dataset.turn)); say("Changing your last message"); }
    }
    else if (e.target.id === "message" && e.key === "Escape" && window.chatEditing.on()) { e.preventDefault(); unedit(); }
  });
  window.addEventListener("hashchange", sought);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { soon(); reads(); } });

  fold();
  sieve();
  moved();
  news();
  sought();
  reads();
})();
