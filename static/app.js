"use strict";
// Everything shown comes from the server; this file keeps the connection, the clocks, the
// keyboard and unsent text. All listeners sit on the document, so its order does not matter.
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const on = (name, act, capture = false) => document.addEventListener(name, act, capture);
  const thread = document.body.dataset.thread;
  const base = `/chat/${thread}/`;
  const memory = {
    get(name) { try { return JSON.parse(localStorage.getItem(name)); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* full or forbidden */ } },
  };

  // ---- clocks and announcements
  let skew = 0;
  const syncClock = (now) => { if (now) skew = Date.parse(now) - Date.now(); };
  const elapsed = (s) => (s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`);
  const ago = (s) => (s < 60 ? "just now" : s < 3600 ? `${Math.floor(s / 60)} min ago` : s < 86400 ? `${Math.floor(s / 3600)} h ago` : null);
  const seconds = (since) => Math.max(0, Math.floor((Date.now() + skew - Date.parse(since)) / 1000));
  const tick = () => {
    for (const clock of all("time[data-since]")) {
      const text = (clock.hasAttribute("data-ago") ? ago : elapsed)(seconds(clock.dataset.since));
      if (text && clock.textContent !== text) clock.textContent = text;
    }
  };
  const said = new Map();
  let unsaid = [], lastSaid = 0;
  const say = (text) => { if (text) { unsaid.push(text); flushSaid(); } };
  const flushSaid = () => {
    if (!unsaid.length || Date.now() - lastSaid < 5000) return;
    one("#status").textContent = unsaid.slice(-3).join(". ");
    [unsaid, lastSaid] = [[], Date.now()];
  };
  const hear = (aloud) => {
    for (const region of all("[data-say]")) {
      const text = region.dataset.say;
      if (aloud && text && said.get(region.id) !== text) say(text);
      said.set(region.id, text);
    }
  };

  // ---- connection
  let socket = null, state = "", lostAt = Date.now(), ended = "", polling = false, refused = new Set();
  const names = { connecting: "Connecting", live: "Live", polling: "Polling every 10 s", offline: "Offline" };
  const show = (next, text = names[next]) => {
    const chip = one("#connection");
    if (!chip || (state === next && one("b", chip).textContent === text)) return;
    if (state && state !== next && next !== "connecting") say(`Connection: ${text}`);
    state = chip.dataset.state = next;
    one("b", chip).textContent = text;
    drawOutbox();
  };
  const transmit = (frame) => socket?.readyState === 1 && (socket.send(JSON.stringify(frame)), true);
  const etags = () => Object.fromEntries(all("[data-etag]").map((region) => [region.id, region.dataset.etag]));
  const judge = () => {
    if (ended) show("ended", ended);
    else if (!navigator.onLine) show("offline");
    else if (socket?.readyState === 1) show("live");
    else if (Date.now() - lostAt > 15000) show("polling");
  };
  const over = (text) => { ended = text; one("#sign-in-again").hidden = text !== "Signed out"; judge(); };
  const post = (path, fields) => fetch(base + path, { method: "POST", body: new URLSearchParams({ ...fields, csrfmiddlewaretoken: one("[name=csrfmiddlewaretoken]").value }), headers: { "HX-Request": "true" } });
  const swap = (text) => htmx.swap({ sourceElement: one("#studio"), target: one("#studio"), swap: "none", text });
  const poll = async () => {
    if (state !== "polling" || polling) return;
    polling = true;
    try {
      const answer = await fetch(`${base}regions?${new URLSearchParams(etags())}`, { headers: { "HX-Request": "true" } });
      if (answer.redirected || answer.status === 401) over("Signed out");
      else if (answer.ok) { await swap(await answer.text()); await postOutbox(); }
    } catch { /* the next round tries again */ } finally { polling = false; }
  };

  // ---- unsent messages: kept until the server says it has them
  const box = `om-outbox-${thread}`, note = `om-draft-${thread}`;
  const outbox = () => memory.get(box) || [];
  const drop = (key) => { memory.set(box, outbox().filter((item) => item.key !== key)); drawOutbox(); };
  const drawOutbox = () => {
    const list = one("#outbox");
    if (!list) return;
    list.replaceChildren(...outbox().map((item) => {
      const row = document.createElement("li"), text = document.createElement("span"), why = document.createElement("span"), undo = document.createElement("button");
      text.textContent = item.text;
      why.textContent = state === "live" ? "Sending…" : "Will be sent when back";
      why.className = "aside-text";
      undo.textContent = "Remove";
      undo.className = "button quiet small";
      undo.dataset.drop = item.key;
      row.append(text, why, undo);
      return row;
    }));
  };
  const sendOutbox = () => { for (const { key, text } of outbox()) if (!refused.has(key) && transmit({ type: "send", key, text })) refused.add(key); };
  const postOutbox = async () => { for (const { key, text } of outbox()) if ((await post("send", { key, text })).ok) drop(key); };
  const uuid = () => crypto.randomUUID?.() ?? "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (c) => (c ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (c / 4)))).toString(16));
  const submit = () => {
    const field = one("#message"), text = field.value;
    if (!text.trim()) return;
    memory.set(box, [...outbox(), { key: uuid(), text }]);
    field.value = "";
    memory.set(note, "");
    one("#refusal").hidden = true;
    grow();
    drawOutbox();
    sendOutbox();
    follow = true;
    toEnd();
  };
  const refuse = (frame) => {
    const lost = outbox().find((item) => item.key === frame.key), field = one("#message"), alert = one("#refusal");
    if (lost) { drop(lost.key); if (!field.value) { field.value = lost.text; grow(); } }
    alert.textContent = frame.message;
    alert.hidden = false;
  };

  // ---- the log
  let follow = true;
  const toEnd = () => { const log = one("#log"); if (log && follow) log.scrollTop = log.scrollHeight; };
  const grow = () => { const field = one("#message"); if (!CSS.supports("field-sizing", "content")) { field.style.height = "auto"; field.style.height = `${field.scrollHeight}px`; } };
  const earlier = async (from) => {
    const first = one("#entries").dataset.first;
    const answer = await fetch(`${base}earlier?from=${from}&before=${first}`, { headers: { "HX-Request": "true" } });
    if (!answer.ok) return;
    const log = one("#log"), below = log.scrollHeight - log.scrollTop;
    await swap(await answer.text());
    log.scrollTop = log.scrollHeight - below;
  };
  const afterSwap = () => {
    tick();
    hear(true);
    const log = one("#log"), old = one("#earlier"), now = one("#entries"), name = one("h1");
    if (!log) return;
    document.title = `${name.textContent} – OM Studio`;
    toEnd();
    one("#newer").hidden = follow || log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    if (old.dataset.from && (old.dataset.before !== now.dataset.first || old.dataset.mark !== now.dataset.mark)) {
      old.dataset.before = now.dataset.first;
      old.dataset.mark = now.dataset.mark;
      earlier(old.dataset.from);
    }
  };
  const step = (by) => {
    const rows = all("#log [data-entry]"), at = rows.indexOf(document.activeElement?.closest("[data-entry]"));
    rows.at(at < 0 ? -1 : Math.min(Math.max(at + by, 0), rows.length - 1))?.focus();
  };

  // ---- drawer, panel, theme
  const drawer = async (link) => {
    const answer = await fetch(link.href, { headers: { "HX-Request": "true" } }), dialog = one("#drawer");
    one("#drawer-body").innerHTML = answer.ok ? await answer.text() : "This could not be loaded.";
    if (!dialog.open) { if (innerWidth < 900) dialog.showModal(); else dialog.show(); }
    one("#drawer-title").focus();
  };
  const panel = () => {
    if (innerWidth <= 1100) { one(one("#view-memory").checked ? "#view-chat" : "#view-memory").click(); return; }
    const studio = one("#studio");
    studio.dataset.panel = studio.dataset.panel === "off" ? "on" : "off";
    memory.set("om-panel", studio.dataset.panel);
  };
  const theme = () => {
    const root = document.documentElement, next = { "": "light", light: "dark", dark: "" }[root.dataset.theme || ""];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    document.cookie = `theme=${next};path=/;max-age=31536000;samesite=lax`;
    say(`Theme: ${next || "as the system"}`);
  };
  const cycle = (back) => {
    const stops = ["#threads-pane", "#log", "#message", "#panel"].map((name) => one(name)).filter((stop) => stop?.offsetParent);
    const at = stops.findIndex((stop) => stop.contains(document.activeElement));
    stops.at((at + (back ? -1 : 1) + stops.length) % stops.length)?.focus();
  };

  // ---- listeners
  on("htmx:ws:before:connection", (e) => { const n = e.detail.connection.attempt; if (n && navigator.onLine && Date.now() - lostAt < 15000) show("reconnecting", `Reconnecting · try ${n}`); });
  on("htmx:ws:after:connection", (e) => {
    socket = e.detail.connection.socket;
    refused = new Set();
    judge();
    transmit({ type: "have", etags: etags() });
    sendOutbox();
  });
  on("htmx:ws:close", (e) => {
    if (socket) lostAt = Date.now();
    socket = null;
    const code = e.detail.code;
    if (code === 4401) over("Signed out");
    else if (code === 4404) over("Not available");
    else judge();
  });
  on("htmx:ws:before:message:incoming", (e) => {
    let frame;
    try { frame = JSON.parse(e.detail.message.data); } catch { return; }
    syncClock(frame.now);
    if (frame.type === "accepted") drop(frame.key);
    if (frame.type === "error") refuse(frame);
  });
  on("htmx:after:swap", afterSwap);
  on("submit", (e) => { if (e.target.id === "composer") { e.preventDefault(); submit(); } });
  on("input", (e) => { if (e.target.id === "message") { memory.set(note, e.target.value); grow(); } });
  on("scroll", (e) => {
    if (e.target.id !== "log") return;
    follow = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 80;
    if (follow) one("#newer").hidden = true;
  }, true);
  on("click", (e) => {
    const hit = e.target.closest?.("[data-frame],[data-drop],[data-do],[data-fill],a[data-drawer],a[data-earlier]");
    if (!hit) return;
    const { frame, drop: key, do: act, fill } = hit.dataset;
    if (frame) { if (transmit(JSON.parse(frame))) { e.preventDefault(); one("#message")?.focus(); } }
    else if (key) drop(key);
    else if (fill) { one("#message").value = fill; one("#message").focus(); }
    else if (act) ({ theme, panel, close: () => hit.closest("dialog").close(), keys: () => one("#keys").showModal(), end: () => { follow = true; toEnd(); one("#newer").hidden = true; } })[act]?.();
    else { e.preventDefault(); if (hit.matches("[data-drawer]")) drawer(hit); else earlier(hit.dataset.earlier); }
  });
  on("change", (e) => { if (e.target.id === "single-keys") memory.set("om-single-keys", e.target.checked); });
  on("keydown", (e) => {
    const typing = e.target.matches?.("input,textarea,select,[contenteditable]"), stop = one("[data-stop]");
    if (e.target.id === "message" && e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
    else if (e.key === "." && (e.ctrlKey || e.metaKey)) { if (stop) { e.preventDefault(); stop.click(); } }
    else if (e.key === "F6" && thread) { e.preventDefault(); cycle(e.shiftKey); }
    else if (e.key === "Escape" && one("#drawer")?.open) one("#drawer").close();
    else if (!typing && thread && !e.ctrlKey && !e.metaKey && !e.altKey && memory.get("om-single-keys") !== false) {
      const act = { b: panel, n: () => one("#new-thread")?.focus(), "?": () => one("#keys").showModal(), "/": () => one("#message")?.focus(), j: () => step(1), k: () => step(-1) }[e.key];
      if (act) { e.preventDefault(); act(); }
    }
  });
  window.addEventListener("online", judge);
  window.addEventListener("offline", judge);

  syncClock(document.body.dataset.now);
  tick();
  if (!thread) return;
  if (memory.get("om-panel") === "off") one("#studio").dataset.panel = "off";
  one("#single-keys").checked = memory.get("om-single-keys") !== false;
  if (one("#message") && !one("#message").value) one("#message").value = memory.get(note) || "";
  hear(false);
  drawOutbox();
  show("connecting");
  toEnd();
  setInterval(() => { tick(); flushSaid(); judge(); }, 1000);
  setInterval(() => transmit({ type: "have", etags: etags() }), 5000);
  setInterval(poll, 10000);
  // Cures a page whose extension was registered after htmx had looked for it.
  setTimeout(() => { if (!socket && state === "connecting") htmx.process(document.body); }, 3000);
})();
