"use strict";
// The chat page: unsent messages, the log, the panel. The frame around it is studio.js.
(() => {
  const { one, all, on, memory, hooks, keys, acts, swap, transmit, say, get } = window.studio;
  const thread = document.body.dataset.thread;
  const base = `/chat/${thread}/`;

  // ---- unsent messages: kept until the server says it has them
  // Of this person alone: others may use the same browser.
  const own = document.body.dataset.own, box = `om-outbox-${own}`, note = `om-draft-${own}`;
  let refused = new Set();
  const outbox = () => memory.get(box) || [];
  const drop = (key) => { memory.set(box, outbox().filter((item) => item.key !== key)); drawOutbox(); };
  const drawOutbox = () => {
    const list = one("#outbox");
    if (!list) return;
    list.replaceChildren(...outbox().map((item) => {
      const row = document.createElement("li"), text = document.createElement("span"), why = document.createElement("span"), undo = document.createElement("button"), again = document.createElement("button");
      text.textContent = [item.text, ...(item.files || []).map((file) => file.name)].filter(Boolean).join(" · ");
      why.textContent = item.refused ? "Not sent" : window.studio.state() === "live" ? "Sending…" : "Will be sent when back";
      why.className = "aside-text";
      undo.textContent = "Remove";
      undo.className = "button quiet small";
      undo.dataset.drop = item.key;
      again.textContent = "Send again";
      again.className = "button quiet small";
      again.dataset.again = item.key;
      row.append(text, why, ...(item.refused ? [again] : []), undo);
      return row;
    }));
  };
  const tokens = (files) => (files || []).map((file) => file.token);
  const sendOutbox = () => { for (const { key, text, files, refused: not } of outbox()) if (!not && !refused.has(key) && transmit({ type: "send", key, text, files: tokens(files) })) refused.add(key); };
  const postOutbox = async () => {
    for (const { key, text, files, refused: not } of outbox()) {
      if (not) continue;
      const answer = await window.studio.post(`${base}send`, { key, text, attachments: tokens(files).join(" ") });
      if (answer.ok) drop(key);
      else if ([413, 422, 429].includes(answer.status)) refuse({ key, message: await answer.text() });
    }
  };
  const resend = (key) => {
    memory.set(box, outbox().map((item) => (item.key === key ? { ...item, refused: false } : item)));
    refused.delete(key);
    one("#refusal").hidden = true;
    drawOutbox();
    if (window.studio.state() === "polling") postOutbox(); else sendOutbox();
  };
  const uuid = () => crypto.randomUUID?.() ?? "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (c) => (c ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (c / 4)))).toString(16));
  const submit = () => {
    const field = one("#message"), text = field.value, shelf = window.attached;
    if (window.chatEditing?.on()) { window.chatEditing.send(); return; }
    if (shelf?.holds(submit)) return;
    const files = shelf?.take() || [];
    if (!text.trim() && !files.length) return;
    memory.set(box, [...outbox(), { key: uuid(), text, files }]);
    field.value = "";
    memory.set(note, "");
    one("#refusal").hidden = true;
    grow();
    drawOutbox();
    window.studio.resume();
    sendOutbox();
    follow = true;
    toEnd();
  };
  const refuse = (frame) => {
    const lost = outbox().find((item) => item.key === frame.key), field = one("#message"), alert = one("#refusal");
    // What was refused goes back into the box; where something else stands there by now, it waits.
    if (lost && !field.value && !window.chatEditing?.on()) {
      drop(lost.key);
      field.value = lost.text;
      memory.set(note, lost.text);
      grow();
      window.attached?.restore(lost.files || []);
    } else if (lost) {
      memory.set(box, outbox().map((item) => (item.key === lost.key ? { ...item, refused: true } : item)));
      drawOutbox();
    }
    alert.textContent = frame.message;
    alert.hidden = false;
  };

  // ---- the log
  let follow = true;
  const toEnd = () => { const log = one("#log"); if (log && follow) log.scrollTop = log.scrollHeight; };
  const grow = () => { const field = one("#message"); if (field && !CSS.supports("field-sizing", "content")) { field.style.height = "auto"; field.style.height = `${field.scrollHeight}px`; } };
  const earlier = async (from) => {
    const first = one("#entries").dataset.first;
    const answer = await get(`${base}earlier?from=${from}&before=${first}`);
    if (!answer.ok) return;
    // What is in sight stays where it is, if it is still there.
    const log = one("#log"), box = log.getBoundingClientRect();
    const seen = all("#log [data-entry][id]").map((entry) => [entry.id, entry.getBoundingClientRect()]).filter(([, at]) => at.bottom > box.top && at.top < box.bottom);
    await swap(await answer.text());
    const kept = seen.find(([id]) => one(`#${CSS.escape(id)}`));
    if (kept) log.scrollTop += one(`#${CSS.escape(kept[0])}`).getBoundingClientRect().top - kept[1].top;
  };
  const afterSwap = () => {
    const log = one("#log"), old = one("#earlier"), now = one("#entries"), name = one("h1");
    document.title = `${name.textContent} – OM Studio`;
    toEnd();
    one("#newer").hidden = follow || log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    const slid = old.dataset.before && old.dataset.before !== now.dataset.first;
    if (old.dataset.from && (slid || old.dataset.mark !== now.dataset.mark)) {
      if (slid) old.dataset.before = now.dataset.first;
      old.dataset.mark = now.dataset.mark;
      earlier(old.dataset.from);
    }
  };
  const step = (by) => {
    const rows = all("#log [data-entry]"), at = rows.indexOf(document.activeElement?.closest("[data-entry]"));
    rows.at(at < 0 ? -1 : Math.min(Math.max(at + by, 0), rows.length - 1))?.focus();
  };

  // ---- panel
  const panel = () => {
    if (innerWidth <= 1100) { one(one("#view-memory").checked ? "#view-chat" : "#view-memory").click(); return; }
    const studio = one("#studio");
    studio.dataset.panel = studio.dataset.panel === "off" ? "on" : "off";
    memory.set("om-panel", studio.dataset.panel);
  };
  const cycle = (back) => {
    const stops = ["#threads-pane", "#log", "#message", "#panel"].map((name) => one(name)).filter((stop) => stop?.offsetParent);
    const at = stops.findIndex((stop) => stop.contains(document.activeElement));
    stops.at((at + (back ? -1 : 1) + stops.length) % stops.length)?.focus();
  };

  // ---- listeners
  hooks.state.push(drawOutbox);
  hooks.open.push(() => { refused = new Set(); if (window.studio.state() === "polling") postOutbox(); else sendOutbox(); });
  hooks.frame.push((frame) => {
    if (frame.type === "accepted") drop(frame.key);
    if (frame.type === "error") refuse(frame);
  });
  // 1009: a frame was too large even to be answered. It would be so again, over and over.
  hooks.close.push((code) => {
    const largest = code === 1009 && outbox().filter((item) => !item.refused).sort((a, b) => b.text.length - a.text.length)[0];
    if (largest) refuse({ key: largest.key, message: "The message is too large to be sent. Shorten it, or attach it as a file." });
  });
  hooks.swap.push(afterSwap);
  acts.panel = panel;
  acts.end = () => { follow = true; toEnd(); one("#newer").hidden = true; };
  Object.assign(keys, { b: panel, n: () => one("#new-thread")?.focus(), "/": () => one("#message")?.focus(), j: () => step(1), k: () => step(-1) });
  on("submit", (e) => { if (e.target.id === "composer") { e.preventDefault(); submit(); } });
  on("input", (e) => { if (e.target.id === "message") { if (!window.chatEditing?.on()) memory.set(note, e.target.value); grow(); } });
  on("scroll", (e) => {
    if (e.target.id !== "log") return;
    follow = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 80;
    if (follow) one("#newer").hidden = true;
  }, true);
  on("click", (e) => {
    const hit = e.target.closest?.("[data-frame],[data-drop],[data-again],[data-fill],a[data-earlier]");
    if (!hit) return;
    const { frame, drop: key, again, fill } = hit.dataset;
    if (frame) { if (transmit(JSON.parse(frame))) { e.preventDefault(); one("#message")?.focus(); } }
    else if (key) drop(key);
    else if (again) resend(again);
    else if (fill) { one("#message").value = fill; one("#message").focus(); }
    else { e.preventDefault(); earlier(hit.dataset.earlier); }
  });
  on("keydown", (e) => {
    const stop = one("[data-stop]");
    if (e.target.id === "message" && e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
    else if (e.key === "." && (e.ctrlKey || e.metaKey)) { if (stop) { e.preventDefault(); stop.click(); } }
    else if (e.key === "F6") { e.preventDefault(); cycle(e.shiftKey); }
  });

  if (memory.get("om-panel") === "off") one("#studio").dataset.panel = "off";
  if (one("#message") && !one("#message").value) one("#message").value = memory.get(note) || "";
  drawOutbox();
  toEnd();
})();
