"use strict";
// Draws the curves, steps through revisions, and takes a window dragged over a curve. What is
// shown comes from the server: this only changes the address and asks for the regions again.
(() => {
  const { one, all, on, hooks, keys, refresh, say } = window.studio;
  const travel = () => one("#travel"), slider = one("#step"), number = one("#revision");
  const charts = new Map();

  // ---- travelling: the address says when
  const go = async (url) => {
    history.replaceState(null, "", url);
    await refresh();
  };
  const stops = () => JSON.parse(travel().dataset.stops);
  const at = (when) => {
    const url = new URL(location.href);
    if (when) url.searchParams.set("at", when); else url.searchParams.delete("at");
    url.searchParams.delete("page");
    return go(url);
  };
  const to = (place) => {
    const list = stops();
    return at(list[Math.max(0, Math.min(place, list.length - 1))][0]);
  };
  const sync = () => {
    const list = stops(), place = Number(travel().dataset.place);
    one("#scrub").hidden = list.length < 2;
    slider.max = list.length - 1;
    if (!slider.matches(":active")) slider.value = place;
    number.max = travel().dataset.last;
    if (document.activeElement !== number) number.value = travel().dataset.revision;
    speak();
  };
  const speak = () => slider.setAttribute("aria-valuetext", stops()[Number(slider.value)]?.[1] || "now");
  let moving = 0;
  on("input", (e) => {
    if (e.target === slider) speak();
    else if (e.target !== number || !number.checkValidity()) return;
    clearTimeout(moving);
    moving = setTimeout(() => (e.target === slider ? to(Number(slider.value)) : at(number.value)), e.target === slider ? 120 : 300);
  });
  let playing = 0;
  const play = (start) => {
    clearTimeout(playing);
    playing = 0;
    one("#play").setAttribute("aria-pressed", String(start));
    one("#play").lastChild.textContent = start ? " Pause" : " Play";
    if (start) step(Number(slider.value) >= Number(slider.max) ? 0 : Number(slider.value) + 1);
  };
  const step = async (place) => {
    await to(place);
    if (one("#play").getAttribute("aria-pressed") !== "true") return;
    if (place >= Number(slider.max)) { play(false); return; }
    playing = setTimeout(() => step(place + 1), 1000 / Number(one("#speed").value));
  };
  on("click", (e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
    const way = e.target.closest?.("a[data-way]"), bar = e.target.closest?.("[data-at]");
    if (e.target.closest?.("#play")) play(one("#play").getAttribute("aria-pressed") !== "true");
    else if (way) { e.preventDefault(); play(false); leave(way); }
    else if (bar) at(bar.dataset.at);
  });
  const leave = async (way) => {
    const url = new URL(way.href), id = way.id;
    if (url.search.startsWith("?at=")) { const kept = new URL(location.href); kept.searchParams.set("at", url.searchParams.get("at")); url.search = kept.search; }
    await go(url);
    // The way taken may be gone, at either end; focus then goes to where one is.
    if (id && !document.contains(document.activeElement) || document.activeElement === document.body) (one(`#${id}`) || one("#travel a[data-way]"))?.focus();
  };
  keys["["] = () => one("#way-before")?.click();
  keys["]"] = () => one("#way-after")?.click();

  for (const [key, name] of Object.entries({ "<": "earlier", ">": "later", "+": "narrower", "-": "wider", 0: "all" })) keys[key] = () => one(`#window-${name}`)?.click();

  // ---- the lanes by keyboard: from event to event, with Shift over what took no time
  const left = (bar) => parseFloat(bar.getAttribute("x"));
  const bars = (runs) => all(runs ? "#lanes rect[data-at]" : "#lanes [data-at]").sort((a, b) => left(a) - left(b));
  const beside = (key, list) => {
    if (key === "Home") return list[0];
    if (key === "End") return null;
    const here = list.findIndex((bar) => bar.dataset.at === new URL(location.href).searchParams.get("at"));
    const place = parseFloat(one("#lanes .cursor")?.getAttribute("x1") ?? 101);
    if (key === "ArrowRight") return here < 0 ? list.find((bar) => left(bar) > place) : list[here + 1];
    return here < 0 ? list.findLast((bar) => left(bar) < place) : list[here - 1] || list[0];
  };
  on("keydown", (e) => {
    if (e.target.id !== "lanes" || e.ctrlKey || e.metaKey || e.altKey || !["ArrowLeft", "ArrowRight", "Home", "End"].includes(e.key)) return;
    e.preventDefault();
    play(false);
    const bar = beside(e.key, bars(e.shiftKey));
    at(bar?.dataset.at);
    say(bar ? one("title", bar).textContent : "now");
  });

  // ---- curves
  const colour = (name) => {
    const probe = document.createElement("span");
    probe.className = `curve ${name}`;
    probe.hidden = true;
    document.body.append(probe);
    const found = getComputedStyle(probe).stroke;
    probe.remove();
    return found;
  };
  const token = (name) => getComputedStyle(one(name)).color;
  const short = (n) => (n < 1000 ? String(Math.round(n)) : `${Math.round(n / 100) / 10}k`);
  const clock = (data, at) => new Date(at).toLocaleString([], { timeZone: data.zone, dateStyle: "medium", timeStyle: "medium" });
  const line = (u, y, dash, style, text) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = style;
    ctx.lineWidth = devicePixelRatio * 1.5;
    ctx.setLineDash(dash.map((n) => n * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.font = `${11 * devicePixelRatio}px ui-monospace, monospace`;
    ctx.textAlign = "right";
    ctx.fillText(text, bbox.left + bbox.width - 4 * devicePixelRatio, y - 4 * devicePixelRatio);
    ctx.restore();
  };
  const mark = (u, x, style) => {
    const { ctx, bbox } = u, at = u.valToPos(x, "x", true);
    ctx.save();
    ctx.strokeStyle = style;
    ctx.lineWidth = devicePixelRatio * 2;
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  };
  const read = (u, key, data) => {
    const index = u.cursor.idx, readout = one(`[data-readout=${key}]`);
    if (readout) readout.textContent = index == null ? "" : `${data[key][index].toLocaleString()} tokens · ${clock(data, data.at[index])}`;
  };
  const choose = (u, data) => {
    if (u.select.width < 6) return;
    const [from, until] = [u.select.left, u.select.left + u.select.width].map((x) => u.posToIdx(x));
    const url = new URL(location.href);
    url.searchParams.set("since", new Date(data.at[from]).toISOString());
    url.searchParams.set("until", new Date(data.at[until]).toISOString());
    url.searchParams.delete("page");
    if (until > from) location.href = url;
  };
  // Ctrl and the wheel: the curves follow at once, and the window of all once it rests.
  let view = [0, 1], zooming = 0;
  const timeAt = (data, x) => {
    const { x: places, at } = data, end = places.length - 1;
    if (x <= 0) return at[0] + x * (at[end] - at[0]);
    if (x >= 1) return at[end] + (x - 1) * (at[end] - at[0]);
    const next = places.findIndex((place) => place >= x);
    if (next < 1) return at[0];
    const wide = places[next] - places[next - 1];
    return at[next - 1] + (wide ? (x - places[next - 1]) / wide : 0) * (at[next] - at[next - 1]);
  };
  const zoom = (e, u, data) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    const about = u.posToVal(e.clientX - u.over.getBoundingClientRect().left, "x"), by = e.deltaY < 0 ? 0.7 : 1 / 0.7;
    view = view.map((end) => about + (end - about) * by);
    for (const chart of charts.values()) chart.setScale("x", { min: view[0], max: view[1] });
    clearTimeout(zooming);
    zooming = setTimeout(() => look(data), 400);
  };
  const look = (data) => {
    const url = new URL(location.href), [from, until] = view.map((x) => Math.round(timeAt(data, x)));
    for (const [name, at, beyond] of [["since", from, from <= data.whole[0]], ["until", until, until >= data.whole[1]]]) {
      if (beyond) url.searchParams.delete(name); else url.searchParams.set(name, new Date(at).toISOString());
    }
    url.searchParams.delete("page");
    if (url.href !== location.href && until - from > 1) location.href = url; else { view = [0, 1]; curves(true); }
  };
  const draw = (host, data) => {
    const key = host.dataset.plot, limit = data.limits[key], axis = token("#curves .sentence"), edge = token("#where");
    const highest = Math.max(limit, ...data[key]) * 1.12;
    const options = {
      width: host.parentElement.clientWidth,
      height: 132,
      legend: { show: false },
      padding: [8, 0, 8, 0],
      cursor: { sync: { key: "timeline" }, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
      scales: { x: { time: false, range: () => view }, y: { range: [0, highest] } },
      axes: [{ show: false }, { stroke: axis, size: innerWidth > 900 ? 92 : 44, font: "11px ui-monospace, monospace", values: (u, at) => at.map(short), grid: { stroke: "rgb(128 128 128 / 0.18)", width: 1 }, ticks: { show: false }, space: 34 }],
      series: [{}, { stroke: colour(key), width: 2, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }],
      hooks: {
        draw: [(u) => {
          line(u, u.valToPos(limit, "y", true), [6, 5], axis, short(limit));
          if (data.cursor != null) mark(u, data.cursor, edge);
        }],
        setCursor: [(u) => read(u, key, data)],
        setSelect: [(u) => choose(u, data)],
      },
    };
    charts.get(key)?.destroy();
    host.replaceChildren();
    const chart = new uPlot(options, [data.x, data[key]], host);
    chart.over.addEventListener("wheel", (e) => zoom(e, chart, data), { passive: false });
    charts.set(key, chart);
  };
  let drawn = "";
  const curves = (always) => {
    const text = one("#curves").dataset.curves;
    const flats = all("[data-flat]");
    if (!window.uPlot) return;
    const data = JSON.parse(text);
    flats.forEach((flat) => flat.toggleAttribute("hidden", data.x.length > 0));
    if (!data.x.length || (text === drawn && !always)) return;
    drawn = text;
    // The last level holds up to the right edge.
    if (data.x.at(-1) < 1) { data.x.push(1); data.at.push(data.end); for (const name of ["messages", "observations"]) data[name].push(data[name].at(-1)); }
    for (const host of all("[data-plot]")) draw(host, data);
  };
  let resizing = 0;
  window.addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => curves(true), 150); });
  const again = () => requestAnimationFrame(() => curves(true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });

  hooks.swap.push(() => { sync(); curves(false); });
  for (const part of all("#scrub [data-scripted]")) part.hidden = false;
  sync();
  curves(true);
})();
