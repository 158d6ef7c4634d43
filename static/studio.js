"use strict";
// The frame of every page: connection, clocks, announcements, drawer, finder, toasts, keyboard.
// Everything shown comes from the server. All listeners sit on the document, so order does not
// matter, but for one rule: page scripts come after this one and use window.studio.
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const on = (name, act, capture = false) => document.addEventListener(name, act, capture);
  const memory = {
    get(name) { try { return JSON.parse(localStorage.getItem(name)); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* full or forbidden */ } },
  };
  const hooks = { state: [], frame: [], open: [], swap: [], tick: [], close: [] };
  const run = (name, ...values) => hooks[name].forEach((act) => act(...values));

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
  let socket = null, link = null, state = "", since = Date.now(), lostAt = Date.now(), freshAt = Date.now(), ended = "";
  let paused = false, waiting = 0, updates = 0, lost = 0, tryAt = 0, askedAt = 0, trip = null;
  const names = { connecting: "Connecting", live: "Live", polling: "Polling every 10 s", offline: "Offline" };
  const hour = (at) => new Date(at).toLocaleTimeString("en-GB");
  const show = (next, text = names[next]) => {
    const chip = one("#connection");
    if (!chip || (state === next && one("b", chip).textContent === text)) return;
    const anew = state !== next;
    if (state && anew && next !== "connecting") say(`Connection: ${text}`);
    state = chip.dataset.state = next;
    one("b", chip).textContent = text;
    if (anew) since = Date.now();
    age();
    run("state", state);
  };
  // What stands on the page is told its age as long as nothing keeps it fresh.
  const age = () => {
    const old = !["live", "connecting"].includes(state), word = one("#as-of"), mend = one("#mend");
    document.body.toggleAttribute("data-stale", old);
    word.hidden = !old;
    one("time", word).textContent = hour(freshAt);
    mend.hidden = state === "ended";
    mend.textContent = state === "paused" ? "Resume" : "Retry now";
  };
  const transmit = (frame) => socket?.readyState === 1 && (socket.send(JSON.stringify(frame)), true);
  const etags = () => Object.fromEntries(all("[data-etag]").map((region) => [region.id, region.dataset.etag]));
  // htmx does not tell how long it waits before a try. Chance is taken out of its sums and put into
  // the delays they begin with, so that pages still do not all come back at once.
  const pace = (config) => {
    const chance = 0.7 + 0.6 * Math.random();
    Object.assign(config, { reconnectJitter: 0, reconnectDelay: 500 * chance, reconnectMaxDelay: config.reconnectMaxDelay * chance });
  };
  const plan = ({ attempt, config }) => { tryAt = attempt && Date.now() + Math.min(config.reconnectDelay * 2 ** (attempt - 1), config.reconnectMaxDelay); };
  const nextTry = () => {
    if (!link?.attempt || socket || ended) return "";
    const left = Math.ceil((tryAt - Date.now()) / 1000);
    return `try ${link.attempt} ${left > 0 ? `in ${left} s` : "now"}`;
  };
  const measure = () => { if (!askedAt && transmit({ type: "ping" })) askedAt = performance.now(); };
  const judge = () => {
    if (ended) show("ended", ended);
    else if (!navigator.onLine) show("offline");
    else if (paused) show("paused", `Paused · ${waiting} waiting`);
    else if (socket?.readyState === 1) { freshAt = Date.now(); show("live"); }
    else if (Date.now() - lostAt > 15000) show("polling");
    else if (state !== "connecting" || nextTry()) show("reconnecting", ["Reconnecting", nextTry()].filter(Boolean).join(" · "));
  };
  const over = (text) => { ended = text; one("#sign-in-again").hidden = text !== "Signed out"; judge(); };
  const fresh = () => {
    [waiting, freshAt] = [0, Date.now()];
    if (state) { judge(); age(); }
  };
  const pause = (on = !paused) => {
    paused = on;
    if (!on) { transmit({ type: "have", etags: etags() }); refresh(); }
    judge();
    describe();
  };
  // htmx waits longer and longer between its tries, and not at all for some reasons: begin anew.
  const retry = () => {
    if (socket || link?.socket?.readyState === WebSocket.CONNECTING) return;
    clearTimeout(link?.timer);
    delete one("#studio")._htmx.ws;
    htmx.process(one("#studio"));
    refresh();
  };
  const facts = () => [
    ["State", one("#connection b").textContent], ["Since", hour(since)], ["What is shown is as of", hour(freshAt)],
    ["Updates heard", updates], ["Updates waiting", waiting], ["Connections lost", lost],
    ["Next try", nextTry() || "none is due"], ["Round trip", trip === null ? "not measured yet" : `${trip} ms`], ["Server's clock ahead by", `${skew} ms`],
  ];
  const describe = () => {
    if (!one("#link").open) return;
    one("#link-facts").textContent = facts().map(([name, value]) => `${name}: ${value}`).join("\n");
    one("#link-pause").textContent = paused ? "Resume updates" : "Pause updates";
    one("#link-retry").hidden = Boolean(socket || ended);
  };
  // A request of somebody signed out is led on to the sign-in page, which must not pass for its answer.
  const heard = (answer) => {
    if (answer.redirected && new URL(answer.url).pathname === new URL(one("#sign-in-again").href).pathname) {
      over("Signed out");
      return new Response("You are signed out. What you typed is still here: copy it, then sign in again.", { status: 401, headers: { "Content-Type": "text/plain" } });
    }
    return answer;
  };
  const get = async (url, headers = {}) => heard(await fetch(url, { headers: { "HX-Request": "true", ...headers } }));
  // The page's own token: whoever signs in meanwhile has another, and sends nothing from here.
  const token = () => one("[name=csrfmiddlewaretoken]").value;
  const post = async (url, fields = {}, options = {}) => {
    const body = fields instanceof FormData ? fields : new URLSearchParams(fields);
    body.set("csrfmiddlewaretoken", token());
    return heard(await fetch(url, { ...options, method: "POST", body, headers: { "HX-Request": "true" } }));
  };
  let patched = [];
  const patch = () => {
    for (const [id, { base, ...attributes }] of patched) for (const [name, value] of Object.entries(attributes)) one(`#${id}`).setAttribute(name, value);
    patched = [];
  };
  const swap = (text) => htmx.swap({ sourceElement: one("#studio"), target: one("#studio"), swap: "none", text });

  // ---- regions: ask again for this page's address, and take what differs
  let asking = null, again = false;
  const ask = async () => {
    const from = document.body.dataset.regions;
    const answer = await get(from ? `${from}?${new URLSearchParams(etags())}` : location.href, { "X-Regions": JSON.stringify(etags()) });
    if (answer.status === 404) over("Not available");
    else if (answer.ok) { const text = await answer.text(); if (text) await swap(text); fresh(); return true; }
    return false;
  };
  const refresh = async () => {
    if (asking) { again = true; return asking; }
    if (!one("[data-etag]")) return false;
    asking = (async () => {
      try {
        let fine;
        do { again = false; fine = await ask(); if (again) await new Promise((wake) => setTimeout(wake, 150)); } while (again);
        return fine;
      } catch { return false; } finally { asking = null; }
    })();
    return asking;
  };
  const poll = async () => { if (state === "polling" && await refresh()) run("open"); };

  // ---- drawer, finder, toasts, theme
  const drawer = async (url, title) => {
    const dialog = one("#drawer");
    let text = "<p class=\"notice bad\">This could not be loaded. Is the server there?</p>";
    try {
      const answer = await get(url);
      text = answer.ok ? await answer.text() : `<p class="notice bad">This could not be loaded (${answer.status}).</p>`;
    } catch { /* said in the drawer */ }
    one("#drawer-body").innerHTML = text;
    one("#drawer-title").textContent = one("#drawer-body [data-title]")?.dataset.title || title || "Details";
    htmx.process(one("#drawer-body"));
    if (!dialog.open) { if (innerWidth < 900) dialog.showModal(); else dialog.show(); }
    one("#drawer-title").focus();
    tick();
  };
  let found = "", typed = 0;
  const finder = (url) => {
    found = url;
    one("#finder form").action = url;
    if (!one("#finder").open) one("#finder").showModal();
    const field = one("#finder-field");
    field.value = "";
    field.focus();
    find();
  };
  const find = async () => {
    const mine = ++typed, url = new URL(found, location.href);
    url.searchParams.set("q", one("#finder-field").value);
    try {
      const answer = await get(url);
      if (mine === typed) one("#finder-results").innerHTML = answer.ok ? await answer.text() : "<p class=\"caption\">The search failed.</p>";
    } catch { one("#finder-results").innerHTML = "<p class=\"caption\">The server cannot be reached.</p>"; }
    choose(0);
  };
  const options = () => all("#finder-results [role=option]");
  const choose = (by) => {
    const rows = options(), at = rows.findIndex((row) => row.getAttribute("aria-selected") === "true");
    const next = rows.at(by ? (Math.max(at, 0) + by + rows.length) % (rows.length || 1) : 0);
    rows.forEach((row) => row.setAttribute("aria-selected", String(row === next)));
    next?.scrollIntoView({ block: "nearest" });
    if (next) one("#finder-field").setAttribute("aria-activedescendant", next.id);
  };
  const toast = (text, { undo } = {}) => {
    const note = document.createElement("div"), words = document.createElement("span");
    note.className = "toast";
    words.textContent = text;
    note.append(words);
    if (undo) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button small";
      button.textContent = "Undo";
      button.addEventListener("click", async () => { note.remove(); await settle(await post(undo)); });
      note.append(button);
    }
    const shelf = one("#toasts");
    shelf.append(note);
    while (shelf.children.length > 2) shelf.firstChild.remove();
    say(text);
    let left = 8;
    const clock = setInterval(() => { if (!note.matches(":hover, :focus-within") && --left < 0) { clearInterval(clock); note.remove(); } }, 1000);
  };
  const theme = () => {
    const root = document.documentElement, next = { "": "light", light: "dark", dark: "" }[root.dataset.theme || ""];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    document.cookie = `theme=${next};path=/;max-age=31536000;samesite=lax`;
    say(`Theme: ${next || "as the system"}`);
  };

  // ---- the bell: asked for its mark when something moved, but not many times a minute
  let rangAt = 0, ringing = 0;
  const ring = async () => {
    clearTimeout(ringing);
    [ringing, rangAt] = [0, Date.now()];
    const bell = one("#bell"), count = () => Number(one("b", bell)?.textContent || 0), before = count();
    try {
      const answer = await get(bell.dataset.mark);
      if (answer.ok) bell.innerHTML = await answer.text();
    } catch { /* the chip beside says that the server is away */ }
    if (count() > before) say(bell.textContent.trim());
  };
  const ringSoon = () => { ringing ||= setTimeout(ring, Math.max(1000, rangAt + 20000 - Date.now())); };

  // ---- forms sent without leaving the page
  const settle = async (answer, errors) => {
    const text = answer.headers.get("X-Toast"), undo = answer.headers.get("X-Undo"), to = answer.headers.get("X-Go");
    if (answer.redirected || to) { location.href = to || answer.url; return true; }
    if (answer.ok) {
      if (errors) errors.replaceChildren();
      if (text) toast(decodeURIComponent(text), { undo });
      await refresh();
      return true;
    }
    const said = await answer.text();
    const plain = !(answer.headers.get("Content-Type") || "").startsWith("text/html");
    if (errors && !plain) { errors.innerHTML = said; htmx.process(errors); (one("[autofocus], [role=alert]", errors) || errors).focus?.(); }
    else toast(plain && said ? said : `This did not work (${answer.status}). Nothing was changed.`);
    return false;
  };
  const submit = async (form, button) => {
    const fields = new FormData(form, button);
    form.setAttribute("aria-busy", "true");
    try {
      const fine = await settle(await post(button?.formAction && button.hasAttribute("formaction") ? button.formAction : form.action, fields), form.dataset.errors && one(form.dataset.errors));
      if (fine) { form.closest("dialog")?.close(); form.dispatchEvent(new CustomEvent("studio:done", { bubbles: true })); }
    } catch { toast("The server cannot be reached. Nothing was changed."); } finally { form.removeAttribute("aria-busy"); }
  };

  // ---- listeners
  on("htmx:ws:before:connection", (e) => {
    link = e.detail.connection;
    if (!link.attempt && link.config.reconnectJitter) pace(link.config);
    plan(link);
    judge();
  });
  on("htmx:ws:after:connection", (e) => {
    socket = e.detail.connection.socket;
    judge();
    transmit({ type: "have", etags: etags() });
    measure();
    run("open");
  });
  on("htmx:ws:close", (e) => {
    if (socket) { lostAt = Date.now(); lost += 1; }
    [socket, askedAt] = [null, 0];
    const code = e.detail.code;
    run("close", code);
    if (code === 4401) over("Signed out");
    else if (code === 4404) over("Not available");
    else judge();
  });
  on("htmx:ws:before:message:incoming", (e) => {
    let frame;
    try { frame = JSON.parse(e.detail.message.data); } catch { return; }
    syncClock(frame.now);
    if (frame.type === "pong") [trip, askedAt] = [Math.round(performance.now() - askedAt), 0];
    const news = ["moved", "render", "watching"].includes(frame.type);
    if (news) updates += 1;
    if (news && paused) { e.preventDefault(); waiting += 1; judge(); return; }
    // What changed of a region is of use only to who has the version before.
    patched = Object.entries(frame.patched || {}).filter(([id]) => one(`#${id}`));
    if (patched.some(([id, { base }]) => one(`#${id}`).dataset.etag !== base)) { e.preventDefault(); patched = []; transmit({ type: "have", etags: etags() }); return; }
    if (news) ringSoon();
    if (news && frame.type !== "render") refresh();
    run("frame", frame);
  });
  on("htmx:after:swap", () => { patch(); tick(); hear(true); run("swap"); });
  on("studio:done", (e) => { if (e.target.matches("[data-bell]")) ring(); });
  on("submit", (e) => { if (e.target.matches("form[data-ajax]")) { e.preventDefault(); submit(e.target, e.submitter); } });
  on("input", (e) => { if (e.target.id === "finder-field") find(); });
  const acts = { theme, close: (hit) => hit.closest("dialog").close(), keys: () => one("#keys").showModal(), pause: () => pause(), retry, mend: () => (paused ? pause(false) : retry()), link: () => { one("#link").showModal(); describe(); } };
  on("click", (e) => {
    const hit = e.target.closest?.("[data-do],[data-open],[data-copy],a[data-drawer],a[data-finder]");
    if (!hit || e.ctrlKey || e.metaKey || e.shiftKey) return;
    if (hit.matches("a")) { e.preventDefault(); if (hit.matches("[data-drawer]")) drawer(hit.href, hit.dataset.title); else finder(hit.href); }
    else if (hit.dataset.open) one(hit.dataset.open)?.showModal();
    else if (hit.dataset.copy) navigator.clipboard?.writeText(one(hit.dataset.copy).textContent).then(() => toast("Copied."), () => toast("The browser did not allow copying."));
    else acts[hit.dataset.do]?.(hit);
  });
  on("change", (e) => {
    if (e.target.id === "single-keys") memory.set("om-single-keys", e.target.checked);
    if (e.target.matches("[data-submit]")) e.target.form.requestSubmit();
  });
  const places = { h: "/", c: "Chat", m: "Memory", x: "Context", t: "Timeline", l: "Lab", s: "Settings", a: "Agents" };
  const keys = { "?": () => one("#keys").showModal(), ".": () => { if (one("[hx-ws\\:connect]")) pause(); } };
  let going = 0;
  const go = (key) => {
    const links = all(".places a");
    (key === "h" ? links[0] : links.find((link) => link.textContent === places[key]))?.click();
  };
  on("keydown", (e) => {
    const typing = e.target.matches?.("input,textarea,select,[contenteditable]");
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") { e.preventDefault(); finder(one("a[data-finder]").href); }
    else if (e.target.id === "finder-field" && ["ArrowDown", "ArrowUp", "Enter"].includes(e.key)) {
      e.preventDefault();
      if (e.key === "Enter") one("#finder-results [aria-selected=true]")?.click();
      else choose(e.key === "ArrowDown" ? 1 : -1);
    }
    else if (e.key === "Escape" && one("#drawer")?.open) one("#drawer").close();
    else if (!typing && !e.ctrlKey && !e.metaKey && !e.altKey && memory.get("om-single-keys") !== false && !one("dialog:modal")) {
      if (Date.now() - going < 1500) { going = 0; if (places[e.key]) { e.preventDefault(); go(e.key); return; } }
      if (e.key === "g") { going = Date.now(); return; }
      if (keys[e.key]) { e.preventDefault(); keys[e.key](e); }
    }
  });
  window.addEventListener("online", judge);
  window.addEventListener("offline", judge);

  window.studio = { one, all, on, memory, hooks, keys, acts, say, toast, refresh, get, post, settle, swap, open: drawer, transmit, tick, etags, resume: () => { if (paused) pause(false); }, state: () => state };
  syncClock(document.body.dataset.now);
  tick();
  if (one("#single-keys")) one("#single-keys").checked = memory.get("om-single-keys") !== false;
  hear(false);
  if (one("#bell")) ring();
  setInterval(() => { tick(); describe(); if (one("#status")) flushSaid(); run("tick"); }, 1000);
  if (!one("[hx-ws\\:connect]")) return;
  show("connecting");
  setInterval(judge, 1000);
  setInterval(() => { if (!paused) transmit({ type: "have", etags: etags() }); measure(); }, 5000);
  setInterval(poll, 10000);
})();
