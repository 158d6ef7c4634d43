"use strict";
// The lab's own keys, logs that stay at their end, and fields that empty once they were sent.
(() => {
  const { one, all, on, hooks, refresh } = window.studio;
  const following = new Map();
  const toEnds = () => { for (const log of all(".mini-log, .log-scroll")) if (following.get(log.id || "steps") !== false) log.scrollTop = log.scrollHeight; };
  on("scroll", (e) => {
    if (!e.target.matches?.(".mini-log, .log-scroll")) return;
    following.set(e.target.id || "steps", e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 40);
  }, true);
  on("studio:done", (e) => {
    if (e.target.matches("[data-clears]")) e.target.reset();
    one("#problems")?.replaceChildren();
  });
  const pane = (number) => {
    const tab = all("[name=pane-tab]")[number];
    if (!tab) return false;
    tab.checked = true;
    one(`#pane-${tab.value.toLowerCase()}-text`)?.focus();
    return true;
  };
  on("keydown", (e) => {
    if (e.target.matches?.(".say textarea") && e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); if (!e.target.form.matches("[aria-busy]")) e.target.form.requestSubmit(); }
    if (!(e.ctrlKey || e.metaKey) || e.shiftKey || e.altKey) return;
    if (/^[1-4]$/.test(e.key) && pane(Number(e.key) - 1)) e.preventDefault();
    if (e.key.toLowerCase() === "b") { e.preventDefault(); one("#broadcast-text")?.focus(); }
  });
  // The run log has no stamp of its own: while a run is under way it is asked for besides.
  let ticks = 0;
  hooks.tick.push(() => { if (one("#controls[data-running]") && ++ticks % 2 === 0) refresh(); });
  hooks.swap.push(toEnds);
  toEnds();
})();
